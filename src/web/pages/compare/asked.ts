/** Reads the parameters of the comparison page from its URL. */
import type { CompareQuery } from "../../../contract/comparison.ts";
import { LIMITS } from "../../../contract/limits.ts";
import type { RunView } from "../../../contract/run.ts";
import type { Search } from "../../address.ts";

export const MOST_RUNS = LIMITS.comparedBaselines + 1;

export const KINDS = [
  { kind: "flipped", description: "pass in one run and fail in the other (a mean of 0.5 passes)" },
  { kind: "different", description: "differ" },
  { kind: "worse", description: "got worse" },
  { kind: "better", description: "got better" },
  { kind: "all", description: "match (all)" },
] as const satisfies readonly { readonly kind: CompareQuery["tasks"]; readonly description: string }[];

/** What the first run is: the candidate beside its baselines, or the baseline beside several candidates. */
export const ROLES = ["candidate", "baseline"] as const;
export type Role = (typeof ROLES)[number];

export interface Asked {
  /** All named runs, in their order. */
  readonly runs: readonly string[];
  /** The run that each other one is compared with; empty without runs. */
  readonly first: string;
  readonly role: Role;
  /** The runs without the first. */
  readonly others: readonly string[];
  readonly metric: string;
  readonly kind: CompareQuery["tasks"];
}

/** The properties of the parts of the page. */
export interface ComparedProps {
  readonly asked: Asked;
  /** All that could be read. */
  readonly runs: readonly RunView[];
}

/**
 * `?runs=a,b,c&candidate=c&metric=reward&only=different`, or `baseline=a`. Of two runs that are not the candidate's, the
 * other is the candidate. Without both parameters the first run is the baseline, or the candidate if it is the only run.
 */
export function askedOf(search: Search): Asked {
  const named = (search["runs"] ?? "").split(",").filter((one) => one !== "");
  const runs = [...new Set(named)].slice(0, MOST_RUNS);
  const { first, role } = firstOf(runs, search);
  return {
    runs,
    first,
    role,
    others: runs.filter((one) => one !== first),
    metric: search["metric"] || "reward",
    kind: KINDS.find(({ kind }) => kind === search["only"])?.kind ?? "flipped",
  };
}

function firstOf(runs: readonly string[], search: Search): Pick<Asked, "first" | "role"> {
  const candidate = runs.find((one) => one === search["candidate"]);
  if (candidate !== undefined) return { first: candidate, role: "candidate" };
  const baseline = runs.find((one) => one === search["baseline"]) ?? runs[0] ?? "";
  if (runs.length > 2) return { first: baseline, role: "baseline" };
  return { first: runs.find((one) => one !== baseline) ?? baseline, role: "candidate" };
}

/** The changes of the URL that give the runs these roles. */
export function addressOf({ runs, first, role }: Pick<Asked, "runs" | "first" | "role">): Search {
  const one = runs.includes(first) ? first : runs[0];
  return {
    runs: runs.join(",") || undefined,
    candidate: role === "candidate" ? one : undefined,
    baseline: role === "baseline" ? one : undefined,
  };
}

/** From the side of the first run: a list of tasks is always read for it. */
export function kindForFirst({ kind, role }: Pick<Asked, "kind" | "role">): CompareQuery["tasks"] {
  if (role === "candidate") return kind;
  return kind === "worse" ? "better" : kind === "better" ? "worse" : kind;
}
