/**
 * Judges a run against one or several baselines by the 95 % intervals of the paired differences. With several, a drop
 * counts only if its p value is significant after Holm's correction: otherwise more baselines would mean more false
 * alarms. That a run lost no more than the allowed drop must hold against each baseline, which needs no correction.
 * Runs that have not completed are not judged: they have scores of only a part of their tasks.
 */
import type { RunComparison } from "../../contract/comparison.ts";
import type { GateVerdict } from "../../contract/gate.ts";
import { adjustByHolm } from "../../contract/holm.ts";
import { tTwoSidedP } from "../../core/statistics/spread.ts";
import { intervalText, pText, signedText } from "../terminal/format.ts";

const LEVEL = 0.05;
/** Allows for rounding errors: an interval may miss a threshold by its last digits. */
const SLACK = 1e-9;

interface DifferenceVerdict {
  readonly gate: "baseline";
  readonly verdict: GateVerdict;
  readonly message: string;
}

/** One result for each comparison, in their order. `maxDrop`: the allowed drop; null: only a significant drop fails. */
export function judgeDifferences(comparisons: readonly RunComparison[], maxDrop: number | null): DifferenceVerdict[] {
  const allowed = -(maxDrop ?? 0);
  const adjusted = adjustByHolm(comparisons.map(({ difference }) => pOfDrop(difference, allowed)));
  const isSeveral = comparisons.length > 1;
  return comparisons.map((comparison, at) => {
    const { baseline, difference } = comparison;
    const { verdict, message } =
      incomplete(comparison) ?? judgeDifference(difference, maxDrop, isSeveral ? (adjusted[at] ?? null) : null);
    return { gate: "baseline", verdict, message: isSeveral ? `against ${baseline.id}: ${message}` : message };
  });
}

type Judged = Pick<DifferenceVerdict, "verdict" | "message">;

/** The verdict if one of the two runs has not completed; null if both have. */
function incomplete({ run, baseline }: RunComparison): Judged | null {
  const found = [["run", run.status] as const, ["baseline", baseline.status] as const]
    .filter(([, status]) => status !== "completed")
    .map(([side, status]) => `the ${side} is ${status}`);
  if (found.length === 0) return null;
  return { verdict: "inconclusive", message: `${found.join(" and ")}: only completed runs are judged` };
}

type Difference = RunComparison["difference"];

/** Of the test that the true difference is `allowed`. Null: one task has no spread. */
function pOfDrop({ mean, se, ci95, df }: Difference, allowed: number): number | null {
  if (se === null || df === null || ci95 === null) return null;
  // Equal differences leave no doubt.
  if (se === 0) return Math.abs(mean - allowed) <= SLACK ? 1 : 0;
  return tTwoSidedP((mean - allowed) / se, df);
}

/** `adjusted`: the corrected p value; null for a single baseline. */
function judgeDifference({ mean, ci95 }: Difference, maxDrop: number | null, adjusted: number | null): Judged {
  if (ci95 === null) {
    const message = `only one task matches: its difference of ${signedText(mean)} is not enough to decide`;
    return { verdict: "inconclusive", message };
  }
  const [low, high] = ci95;
  const test = maxDrop === null ? "p by Holm" : `p of a drop of more than ${maxDrop}, by Holm`;
  const p = adjusted === null ? "" : `, ${test} ${pText(adjusted)}`;
  const said = `the paired difference ${signedText(mean)} (95 %: ${intervalText(ci95)}${p})`;
  const allowed = -(maxDrop ?? 0);
  if (high < allowed - SLACK && (adjusted === null || adjusted < LEVEL)) {
    const worse = maxDrop === null ? "is significantly worse" : `is a drop of more than ${maxDrop}`;
    return { verdict: "failed", message: `${said} ${worse}` };
  }
  if (maxDrop === null) return { verdict: "passed", message: `${said} is not significantly worse` };
  if (low >= allowed - SLACK) return { verdict: "passed", message: `${said} is not a drop of more than ${maxDrop}` };
  const message = `${said} may or may not be a drop of more than ${maxDrop}: more tasks are needed`;
  return { verdict: "inconclusive", message };
}
