/** Describes how much more or less one run cost than another. Pure. */
import { costDifference } from "../../../contract/cost-difference.ts";
import type { RunView } from "../../../contract/run.ts";
import { dollarsText, NOTHING } from "../../components/format.ts";

type Paid = Pick<RunView, "cost" | "counts">;

/** `+$0.0021 per rollout, +$0.12 in all`; nothing if a part of the cost of a run is unknown. */
export function costDifferenceText(run: Paid | undefined, baseline: Paid | undefined): string {
  const difference = run === undefined || baseline === undefined ? null : costDifference(run, baseline);
  if (difference === null) return NOTHING;
  const inAll = `${signedDollars(difference.all)} in all`;
  return difference.per_rollout === null ? inAll : `${signedDollars(difference.per_rollout)} per rollout, ${inAll}`;
}

function signedDollars(micros: number): string {
  // Less than a millionth of a dollar is a rounding error.
  if (Math.abs(micros) < 1) return dollarsText(0);
  return micros > 0 ? `+${dollarsText(micros)}` : dollarsText(micros);
}
