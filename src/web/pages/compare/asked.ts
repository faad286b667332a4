/** Reads the parameters of the comparison page from its URL. */
import type { CompareQuery } from "../../../contract/comparison.ts";
import type { Search } from "../../address.ts";

export const MOST_RUNS = 8;

export const KINDS = [
  { kind: "flipped", description: "pass in one run and fail in the other (a mean of 0.5 passes)" },
  { kind: "different", description: "differ" },
  { kind: "worse", description: "got worse" },
  { kind: "better", description: "got better" },
  { kind: "all", description: "match (all)" },
] as const satisfies readonly { readonly kind: CompareQuery["tasks"]; readonly description: string }[];

export interface Asked {
  /** All named runs, in their order. */
  readonly runs: readonly string[];
  readonly baseline: string;
  /** The runs without the baseline. */
  readonly others: readonly string[];
  readonly metric: string;
  readonly kind: CompareQuery["tasks"];
}

/**
 * `?runs=a,b&baseline=a&metric=reward&only=different`. The first run is the baseline if the URL names none of the runs.
 */
export function askedOf(search: Search): Asked {
  const named = (search["runs"] ?? "").split(",").filter((one) => one !== "");
  const runs = [...new Set(named)].slice(0, MOST_RUNS);
  const baseline = runs.find((one) => one === search["baseline"]) ?? runs[0] ?? "";
  return {
    runs,
    baseline,
    others: runs.filter((one) => one !== baseline),
    metric: search["metric"] || "reward",
    kind: KINDS.find(({ kind }) => kind === search["only"])?.kind ?? "flipped",
  };
}
