/** A trajectory of the maximum length, made from a short one that was played: each turn calls 128 tools. */
import type { ToolCall } from "../../src/contract/messages.ts";
import type { StoredTurn, Trajectory } from "../../src/contract/trajectory.ts";

export const CALLS_PER_TURN = 128;

/** The number of messages, calls and results in this many turns. */
export function eventsIn(turns: number): number {
  return turns * (1 + 2 * CALLS_PER_TURN);
}

/** One turn per second, a slow one every hundred; every hundredth result reads like an error. */
export function longTrajectory(short: Trajectory, count: number): Trajectory {
  const [first] = short.turns;
  if (first === undefined) throw new Error("the rollout has no turn to go by");
  // The invented calls have no record of failures.
  const { tool_failed: _, ...model } = first;
  const turns = Array.from({ length: count }, (_, index): StoredTurn => {
    const results = index === 0 ? model.prompt.append : resultsOf(index - 1);
    return {
      ...model,
      index,
      prompt: { keep: index === 0 ? 0 : 1 + index * (CALLS_PER_TURN + 1) - CALLS_PER_TURN, append: results },
      completion: { role: "assistant", content: `turn ${index}`, tool_calls: callsOf(index) },
      latency_ms: index % 100 === 99 ? 900 : 200,
      answered_at: short.started_at + 1000 * (index + 1),
      state_after: null,
    };
  });
  return {
    ...short,
    turns,
    completion: turns.map(({ completion }) => completion),
    ended_at: short.started_at + 1000 * count,
  };
}

function idOf(turn: number, call: number): string {
  return (turn * CALLS_PER_TURN + call).toString(36);
}

function callsOf(turn: number): ToolCall[] {
  return Array.from({ length: CALLS_PER_TURN }, (_, call) => ({
    id: idOf(turn, call),
    type: "function",
    function: { name: "add", arguments: "{}" },
  }));
}

function resultsOf(turn: number) {
  return Array.from({ length: CALLS_PER_TURN }, (_, call) => ({
    role: "tool" as const,
    content: (turn * CALLS_PER_TURN + call) % 100_000 === 99 ? "error: no" : "7",
    tool_call_id: idOf(turn, call),
  }));
}
