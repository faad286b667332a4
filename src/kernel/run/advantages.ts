/**
 * Computes advantages of a run's rollouts from the current rewards of their groups. They are computed at each read, so
 * a retry of one member changes the advantages of the others. In a training run they are the ones sent to its trainer.
 */
import { advantagesOf, isLengthWeighted } from "../../core/training/advantage.ts";
import { rulesOf } from "../../core/training/members.ts";
import type { RolloutEntry } from "../messages/run-records.ts";
import type { TrainingSpec } from "../messages/training-wire.ts";
import type { RunSpec } from "../messages/wire.ts";
import { groupSizeIn } from "./standing.ts";
import type { RunStore } from "./store.ts";
import type { Credit } from "./training-state.ts";

/** By `seq`. No advantage: in a group that is not complete, in a group of one, or superseded. */
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
  const whole = members.length === groupSizeIn(store, spec, group) || store.head().settled_at !== null;
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

/** As sent to the trainer. For a group that was not trained on they follow from its rewards, unless lengths matter. */
function creditedIn(
  store: RunStore,
  training: TrainingSpec,
  group: number,
  members: readonly Member[],
): (number | null)[] {
  const credits = store.training.group(group)?.credits ?? null;
  if (credits !== null) {
    const shipped = JSON.parse(credits) as Record<string, Credit>;
    return members.map(({ id }) => shipped[id]?.advantage ?? null);
  }
  const { advantage, length_penalty } = rulesOf(training, training.members ? store.training.memberOf(group) : null);
  if (length_penalty !== null || isLengthWeighted(advantage)) return [];
  return advantagesOf(
    advantage,
    members.map(({ reward }) => reward),
  );
}
