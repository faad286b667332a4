/** Tells which tool results of a rollout's completion are from failed calls, as recorded in its turns. */
import type { Messages } from "../../contract/messages.ts";
import { continuedBy, type ToolFailed, type Trajectory, type Turn } from "../../contract/trajectory.ts";
import { keysOf } from "../environments/tool-call.ts";

type Recorded = Pick<Turn, "completion" | "tool_failed">;
/** One per message: whether the call it answers failed; undefined if it answers no call. */
type Marks = (boolean | null | undefined)[];

/**
 * One per tool message of the completion, in order: null if the failure of its call was not recorded, or if it is
 * unclear which call it answers. Null if nothing was recorded at all.
 */
export function failuresIn({
  turns,
  final_env_response,
  completion,
}: Pick<Trajectory, "turns" | "final_env_response" | "completion">): ToolFailed | null {
  if (turns.every(({ tool_failed }) => tool_failed === undefined)) return null;
  const marks: Marks = [];
  for (const [index, turn] of lastConversation(turns)) {
    marks.length = Math.min(marks.length, turn.prompt.keep);
    marks.push(...marksOf(turn.prompt.append, turns[continuedBy(index, turn.prompt)]), undefined);
  }
  marks.push(...marksOf(final_env_response ?? [], turns.at(-1)));
  // The messages after the prompt are the end of the history.
  return marks.slice(marks.length - completion.length).filter((mark) => mark !== undefined);
}

/** The turns of the conversation that ends with the last one, in order, with their indexes. */
function lastConversation<T extends Pick<Turn, "prompt">>(turns: readonly T[]): (readonly [number, T])[] {
  const found: (readonly [number, T])[] = [];
  let at = turns.length - 1;
  for (;;) {
    const turn = turns[at];
    if (turn === undefined) return found.reverse();
    found.push([at, turn]);
    at = continuedBy(at, turn.prompt);
  }
}

/** By call id. If an id has more results than calls, a hook repeated results of earlier turns. */
function marksOf(messages: Messages, turn: Recorded | undefined): Marks {
  const { tool_failed = [], completion: { tool_calls = [] } = {} } = turn ?? {};
  const calls = tool_calls.map(({ id }) => id);
  const failedOf = new Map(keysOf(calls).map((key, index) => [key, tool_failed[index] ?? null]));
  const results = messages.flatMap(({ role, tool_call_id }) => (role === "tool" ? [tool_call_id ?? ""] : []));
  const [made, found] = [countOf(calls), countOf(results)];
  const marks = keysOf(results).map((key, index) => {
    const id = results[index] ?? "";
    return (found.get(id) ?? 0) > (made.get(id) ?? 0) ? null : (failedOf.get(key) ?? null);
  });
  let at = 0;
  return messages.map(({ role }) => (role === "tool" ? marks[at++] : undefined));
}

function countOf(ids: readonly string[]): ReadonlyMap<string, number> {
  const count = new Map<string, number>();
  for (const id of ids) count.set(id, (count.get(id) ?? 0) + 1);
  return count;
}
