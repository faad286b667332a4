/**
 * Some turns of a rollout that is not over, from the rows of its object. No other turn's row is read, however long the
 * rollout is. The turns have the same form as in its trajectory.
 */
import { packState, type StoredTurn, type Turn } from "../../contract/trajectory.ts";
import { migrateRollout } from "../../core/rollout/migrations.ts";
import { type Rollout, usageOf } from "../../core/rollout/rollout.ts";
import { utf8Bytes } from "../../core/size.ts";
import { rangeOf, type TrajectoryRest, type TurnSlice, type TurnsAsk } from "../messages/turn-wire.ts";
import { FACT, type FactsTable } from "./facts.ts";

/** Null before the first save of the rollout. */
export function turnSlice(table: FactsTable, id: string, ask: TurnsAsk): TurnSlice | null {
  const head = table.item(id, FACT.head, 0);
  if (head === null) return null;
  const { started_at, initial_state } = migrateRollout(JSON.parse(head)) as Rollout;
  const total = table.count(id, FACT.turns);
  const texts = new Map<number, string>();
  const textOf = (index: number) => {
    const text = texts.get(index) ?? table.item(id, FACT.turns, index) ?? "null";
    texts.set(index, text);
    return text;
  };
  const range = rangeOf(total, ask, (index) => utf8Bytes(textOf(index)));
  const turnAt = (index: number) => JSON.parse(textOf(index)) as Turn;
  const first = range.from === 0 || range.from === range.to ? null : turnAt(range.from - 1);
  let before = first?.state_after ?? initial_state;
  const turns: StoredTurn[] = [];
  for (let index = range.from; index < range.to; index += 1) {
    const { state_after, ...turn } = turnAt(index);
    turns.push({ ...turn, state_after: state_after && packState(before, state_after, index) });
    before = state_after ?? before;
  }
  const bytes = turns.map((turn) => utf8Bytes(JSON.stringify(turn)));
  return { total, started_at, ...range, turns, bytes };
}

/** The present content of its trajectory, without turns and long texts. */
export function restOf(rollout: Rollout): TrajectoryRest & Pick<Rollout, "initial_state"> {
  const { task_key, example_id, answer, final_env_response, stop_condition, is_truncated } = rollout;
  const { cleanup_errors, failed_calls, error, cancelled, started_at, forked_from, initial_state } = rollout;
  return {
    ...{ task_key, example_id, answer, final_env_response, stop_condition, is_truncated },
    ...{ cleanup_errors, failed_calls, error, cancelled, started_at, initial_state },
    usage: usageOf(rollout),
    ended_at: rollout.ended_at ?? started_at,
    ...(forked_from && { forked_from }),
  };
}
