/**
 * The part of a run's cap that judging uses. A claim of a scoring group reserves the bound of all its calls, with all
 * tries, and returns what it reports as not spent. A claim that is never closed counts as having spent everything.
 */
import { closeBudget, letOut, type Spending, withCalls } from "../../../core/costs/call-budget.ts";
import { capOf } from "../../../core/costs/run-costs.ts";
import type { RolloutEntry } from "../../messages/run-records.ts";
import type { RunSpec } from "../../messages/wire.ts";
import { remainingOf, reserveAll } from "../cap.ts";
import type { JudgingEntry } from "../judging-store.ts";
import { nameOfClaim } from "../lost-reservations.ts";
import type { RunStore } from "../store.ts";

/** True if the rest covers the next claim of this scoring group; those that are already sent come first. */
export function coversScoringGroup(store: RunStore, spec: RunSpec, { needs }: JudgingEntry): boolean {
  return capOf(spec) === null || needs <= remainingOf(store, spec) - store.judging.neededBySent();
}

/** Reserves the bound of a claim; null if the rest is too small. An earlier claim's reservation counts as spent. */
export function openClaim(store: RunStore, spec: RunSpec, entry: JudgingEntry): { readonly allowance: number } | null {
  if (capOf(spec) === null) return { allowance: 0 };
  closeClaim(store, entry, undefined);
  const { needs } = entry;
  if (needs > remainingOf(store, spec)) return null;
  const head = store.head();
  store.saveHead({ ...head, cap: { ...head.cap, ...letOut(head.cap, needs) } });
  store.judging.setScoringGroup(entry.unit, { allowance: needs });
  return { allowance: needs };
}

/** `spent` undefined: unknown. */
export function closeClaim(
  store: RunStore,
  { unit: scoringGroup }: Pick<JudgingEntry, "unit">,
  spent: Spending | undefined,
): void {
  const entry = store.judging.scoringGroup(scoringGroup);
  if (entry === null || entry.allowance === 0) return;
  const taken = spent ?? reserveAll(store, nameOfClaim(scoringGroup, entry.claim), entry.allowance);
  const lost = withCalls({ calls: entry.lost_calls, micros: entry.lost_micros }, taken.lost);
  const head = store.head();
  store.saveHead({ ...head, cap: { ...head.cap, ...closeBudget(head.cap, entry.allowance, taken) } });
  store.judging.setScoringGroup(scoringGroup, {
    allowance: 0,
    spent_micros: entry.spent_micros + taken.micros,
    lost_calls: lost.calls,
    lost_micros: lost.micros,
  });
}

/** Ends the judging of a scoring group. Returns what it spent, for the rollout that ends last. */
export function dropScoringGroup(
  store: RunStore,
  scoringGroup: number,
): Pick<JudgingEntry, "spent_micros" | "lost_calls" | "lost_micros"> {
  closeClaim(store, { unit: scoringGroup }, undefined);
  const { spent_micros = 0, lost_calls = 0, lost_micros = 0 } = store.judging.scoringGroup(scoringGroup) ?? {};
  store.judging.dropScoringGroup(scoringGroup);
  return { spent_micros, lost_calls, lost_micros };
}

/** Adds this spending to the columns of the rollout that ends the scoring group. */
export function withScoringGroupSpending(
  row: RolloutEntry,
  { spent_micros, lost_calls, lost_micros }: ReturnType<typeof dropScoringGroup>,
): Partial<RolloutEntry> {
  if (spent_micros === 0 && lost_calls === 0) return {};
  return {
    spent_micros: row.spent_micros + spent_micros,
    lost_calls: row.lost_calls + lost_calls,
    lost_micros: row.lost_micros + lost_micros,
  };
}
