/** Scoring groups that wait for scores, in the form that their consumer gets. */
import { LIMITS } from "../../contract/limits.ts";
import { newestPossible } from "../../core/training/numbering.ts";
import type { RolloutEntry } from "../messages/run-records.ts";
import type { Member, RunSpec, Unit } from "../messages/wire.ts";
import { completedUnit, SCORING_DEADLINE_MS } from "./accounting.ts";
import type { RunStore } from "./store.ts";

/** The rollouts of a scoring group that wait for scores. */
export function waitingRows(store: RunStore, spec: RunSpec, unit: number): RolloutEntry[] {
  const rows = spec.whole_groups ? store.group(unit) : [store.bySeq(unit)];
  return rows.filter((row) => row !== null).filter((row) => row.status === "scoring");
}

/**
 * The same if the scoring group is complete; else none. A retried group keeps its number, so a late message about its
 * first scores may arrive while its members are sampled again.
 */
export function wholeUnit(store: RunStore, spec: RunSpec, unit: number): RolloutEntry[] {
  const rows = waitingRows(store, spec, unit);
  const [first] = rows;
  return first === undefined || completedUnit(store, spec, first) === null ? [] : rows;
}

/**
 * The first of these scoring groups that still wait, with their members: up to the size limit, at least one.
 * `suspectUpTo`: the last rollout (`seq`) that is quarantined.
 */
export function unitsWaiting(store: RunStore, spec: RunSpec, units: readonly number[], suspectUpTo: number): Unit[] {
  const waiting: (Omit<Unit, "members"> & { readonly rows: readonly RolloutEntry[] })[] = [];
  const { training } = store.head();
  const known = training === null ? {} : { newest_version: newestPossible(training.trainer) };
  let left: number = LIMITS.scoringCharacters;
  for (const unit of units) {
    const rows = wholeUnit(store, spec, unit);
    if (rows.length === 0) continue;
    left -= rows.reduce((sum, { bytes }) => sum + bytes, 0);
    if (left < 0 && waiting.length > 0) break;
    const suspect = rows.some(({ seq }) => seq <= suspectUpTo);
    waiting.push({ unit, rows, ...known, ...(suspect && { suspect }) });
  }
  const texts = store.trajectories(waiting.flatMap(({ rows }) => rows.map(({ seq }) => seq)));
  return waiting.map(({ rows, ...unit }) => ({ ...unit, members: rows.map((row) => memberOf(row, texts)) }));
}

/** Delays the reconciliation of scoring groups that a consumer works on: they are not silent. */
export function holdUnits(store: RunStore, units: readonly Unit[], now: number): void {
  store.transaction(() => {
    for (const member of units.flatMap(({ members }) => members)) {
      const row = store.rollout(member);
      if (row !== null) store.setRollout(row.seq, { ask_at: now + SCORING_DEADLINE_MS });
    }
  });
}

function memberOf(row: RolloutEntry, texts: ReadonlyMap<number, string>): Member {
  const { group_index: group, slot, attempt, id: rollout_id, host, digest } = row;
  return { group, slot, attempt, rollout_id, host, digest, text: texts.get(row.seq) ?? null };
}
