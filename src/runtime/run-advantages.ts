/**
 * Advantages of a run's rollouts, from the rewards of their groups as they stand: derived where they are read, so that a
 * retry of one member gives the others theirs over what counts now.
 */
import { advantagesOf } from "../core/rubrics/advantage.ts";
import type { RolloutEntry } from "./run-schema.ts";
import type { RunStore } from "./run-store.ts";
import type { RunSpec } from "./wire.ts";

/** By `seq`. Those in a group that is still under way, in a group of one, or superseded have none. */
export function advantagesIn(
  store: RunStore,
  spec: RunSpec,
  rows: readonly RolloutEntry[],
): ReadonlyMap<number, number> {
  if (spec.rollouts_per_example === 1) return new Map();
  const groups = [...new Set(rows.map((row) => row.group_index))];
  return new Map(groups.flatMap((group) => groupAdvantages(store, spec, group)));
}

function groupAdvantages(store: RunStore, spec: RunSpec, group: number): [number, number][] {
  const members = store.groupRewards(group);
  const whole = members.length === spec.rollouts_per_example || store.head().settled_at !== null;
  const over = members.every(({ status }) => status === "done") && !store.retries.awaits(group);
  if (!whole || !over || members.length === 1) return [];
  const advantages = advantagesOf(members.map(({ reward }) => reward));
  return members.flatMap(({ seq }, at): [number, number][] => {
    const advantage = advantages[at] ?? null;
    return advantage === null ? [] : [[seq, advantage]];
  });
}
