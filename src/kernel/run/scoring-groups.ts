/** Scoring groups that wait for scores, in the form that their consumer gets. */
import { LIMITS } from "../../contract/limits.ts";
import { newestPossible } from "../../core/training/numbering.ts";
import type { RolloutEntry } from "../messages/run-records.ts";
import type { Member, RunSpec, ScoringGroup } from "../messages/wire.ts";
import { completedScoringGroup, SCORING_DEADLINE_MS } from "./accounting.ts";
import type { RunStore } from "./store.ts";

/** The rollouts of a scoring group that wait for scores. */
export function waitingRows(store: RunStore, spec: RunSpec, scoringGroup: number): RolloutEntry[] {
  const rows = spec.whole_groups ? store.group(scoringGroup) : [store.bySeq(scoringGroup)];
  return rows.filter((row) => row !== null).filter((row) => row.status === "scoring");
}

/**
 * The same if the scoring group is complete; else none. A retried group keeps its number, so a late message about its
 * first scores may arrive while its members are sampled again.
 */
export function wholeScoringGroup(store: RunStore, spec: RunSpec, scoringGroup: number): RolloutEntry[] {
  const rows = waitingRows(store, spec, scoringGroup);
  const [first] = rows;
  return first === undefined || completedScoringGroup(store, spec, first) === null ? [] : rows;
}

/**
 * Rollouts that are played or scored just now. Members of a group of which others have not started are neither: while no
 * rollout starts, they wait.
 */
export function rolloutsUnderWay(store: RunStore, spec: RunSpec): number {
  const { running, in_flight } = store.head();
  if (!spec.whole_groups) return in_flight;
  return store.scoringGroups().reduce((sum, group) => sum + wholeScoringGroup(store, spec, group).length, running);
}

/**
 * The first of these scoring groups that still wait, with their members: up to `most` characters of trajectories, at
 * least one scoring group. `quarantineUpTo`: the last rollout (`seq`) that is quarantined.
 */
export function scoringGroupsWaiting(
  store: RunStore,
  spec: RunSpec,
  scoringGroups: readonly number[],
  quarantineUpTo: number,
  most: number = LIMITS.scoringCharacters,
): ScoringGroup[] {
  const waiting: (Omit<ScoringGroup, "members"> & { readonly rows: readonly RolloutEntry[] })[] = [];
  const { training } = store.head();
  const known = training === null ? {} : { newest_version: newestPossible(training.trainer) };
  let left = most;
  for (const scoringGroup of scoringGroups) {
    const rows = wholeScoringGroup(store, spec, scoringGroup);
    if (rows.length === 0) continue;
    left -= rows.reduce((sum, { bytes }) => sum + bytes, 0);
    if (left < 0 && waiting.length > 0) break;
    const quarantine = rows.some(({ seq }) => seq <= quarantineUpTo);
    waiting.push({ unit: scoringGroup, rows, ...known, ...(quarantine && { quarantine }) });
  }
  const texts = store.trajectories(waiting.flatMap(({ rows }) => rows.map(({ seq }) => seq)));
  return waiting.map(({ rows, ...scoringGroup }) => ({
    ...scoringGroup,
    members: rows.map((row) => memberOf(row, texts)),
  }));
}

/**
 * Delays the reconciliation of scoring groups that a consumer works on: they are not silent. `putOff`: there was no memory
 * to score them, and tries so far do not count.
 */
export function holdScoringGroups(
  store: RunStore,
  spec: RunSpec,
  scoringGroups: readonly number[],
  { now, putOff }: { readonly now: number; readonly putOff: boolean },
): void {
  store.transaction(() => {
    for (const row of scoringGroups.flatMap((one) => wholeScoringGroup(store, spec, one))) {
      const ask_at = Math.max(row.ask_at, now + SCORING_DEADLINE_MS);
      store.setRollout(row.seq, { ask_at, ...(putOff && { asks: 0 }) });
    }
  });
}

function memberOf(row: RolloutEntry, texts: ReadonlyMap<number, string>): Member {
  const { group_index: group, slot, attempt, id: rollout_id, host: shard, digest, bytes } = row;
  return { group, slot, attempt, rollout_id, host: shard, digest, bytes, text: texts.get(row.seq) ?? null };
}
