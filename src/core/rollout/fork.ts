/**
 * Forks a rollout: makes the data with which another rollout continues after turn k of this one.
 *
 * Invariants. The turns up to k, their states and the environment's reply to turn k are copied from storage: no
 * environment code runs again for them, and the first new action is the call of turn k + 1. Inherited turns are shown
 * and counted by stop conditions; their calls and usage belong to the rollout that made them.
 */

import { type Trajectory, unpackTurns } from "../../contract/trajectory.ts";
import { sizeOf } from "../size.ts";
import { newRollout, type Rollout, type RolloutTask } from "./rollout.ts";
import { idsAfter } from "./tokens.ts";

/** The part of a trajectory that a fork after `turn` needs: the turns up to that one, and the next prompt. */
export interface ForkPoint
  extends Pick<
    Trajectory,
    | "schema"
    | "rollout_id"
    | "task_key"
    | "example_id"
    | "task"
    | "prompt"
    | "answer"
    | "info"
    | "initial_state"
    | "turns"
  > {
  readonly turn: number;
}

/** How many turns a rollout can be forked after: all but the last, which has no reply of the environment. */
export function forkableTurns({ turns }: Pick<Trajectory, "turns">): number {
  return Math.max(0, turns.length - 1);
}

/** The stored data of forks after `turn`, which must be below `forkableTurns`. */
export function forkPoint(trajectory: Trajectory, turn: number): ForkPoint {
  const { schema, rollout_id, task_key, example_id, task, prompt, answer, info } = trajectory;
  const { initial_state, turns } = trajectory;
  const frozen = { schema, rollout_id, task_key, example_id, task, prompt, answer, info };
  return { ...frozen, initial_state, turns: turns.slice(0, turn + 2), turn };
}

/** The rollout `id`, before its first own call. `at`: epoch milliseconds. */
export function forkedRollout(id: string, point: ForkPoint, at: number): Rollout {
  const { task_key, example_id, task, prompt, answer, info, initial_state, turn } = point;
  const frozen: RolloutTask = { id, task_key, example_id, task, prompt, answer, info };
  const turns = unpackTurns(initial_state, point.turns.slice(0, turn + 1));
  const next = point.turns[turn + 1];
  const state = turns[turn]?.state_after;
  if (next === undefined || state === undefined || state === null) {
    throw new RangeError(`nothing follows turn ${turn}`);
  }
  return {
    ...newRollout(frozen, at),
    phase: "sample",
    initial_state,
    state,
    turns,
    last_ids: idsAfter(turns, turn),
    intent: { ...next.prompt, calls: 0, failures: 0, not_before: 0 },
    forked_from: { rollout_id: point.rollout_id, turn },
    held: sizeOf(point.turns.slice(0, turn + 1)),
  };
}
