/**
 * Advantages of a run's rollouts, from the rewards of their groups as they stand: derived where they are read, so that a
 * retry of one member gives the others theirs over what counts now. Those of a training run are what its trainer is told.
 */
import { advantagesOf } from "../../core/training/advantage.ts";
import type { RolloutEntry } from "../messages/run-records.ts";
import type { TrainingSpec } from "../messages/training-wire.ts";
import type { RunSpec } from "../messages/wire.ts";
import type { RunStore } from "./store.ts";
import type { Credit } from "./training-state.ts";

/** By `seq`. Those in a group that is still under way, in a group of one, or superseded have none. */
export function advantagesIn(
  store: RunStore,
  spec: RunSpec,
  rows: readonly Pick<RolloutEntry, "group_index">[],
): ReadonlyMap<number, number> {
  if (spec.rollouts_per_example === 1 && spec.training === undefined) return new Map();
  const groups = [...new Set(rows.map((row) => row.group_index))];
  return new Map(groups.flatMap((group) => groupAdvantages(store, spec, group)));
}

function groupAdvantages(store: RunStore, spec: RunSpec, group: number): [number, number][] {
  const members = store.groupRewards(group);
  const whole = members.length === spec.rollouts_per_example || store.head().settled_at !== null;
  const over = members.every(({ status }) => status === "done") && !store.retries.awaits(group);
  if (!whole || !over) return [];
  const advantages = spec.training ? creditedIn(store, spec.training, group, members) : meanAdvantages(members);
  return members.flatMap(({ seq }, at): [number, number][] => {
    const advantage = advantages[at] ?? null;
    return advantage === null ? [] : [[seq, advantage]];
  });
}

interface Member {
  readonly id: string;
  readonly reward: number | null;
}

function meanAdvantages(members: readonly Member[]): (number | null)[] {
  if (members.length === 1) return [];
  return advantagesOf(
    { name: "mean" },
    members.map(({ reward }) => reward),
  );
}

/** As shipped; what a group that trained nothing was worth follows from its rewards, but for lengths nobody kept. */
function creditedIn(
  store: RunStore,
  { advantage, length_penalty }: TrainingSpec,
  group: number,
  members: readonly Member[],
): (number | null)[] {
  const credits = store.training.group(group)?.credits ?? null;
  if (credits !== null) {
    const shipped = JSON.parse(credits) as Record<string, Credit>;
    return members.map(({ id }) => shipped[id]?.advantage ?? null);
  }
  if (length_penalty !== null) return [];
  return advantagesOf(
    advantage,
    members.map(({ reward }) => reward),
  );
}
