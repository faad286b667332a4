/** Which results of a rollout's completion are those of tool calls that failed, as its turns have recorded it. */
import type { Messages } from "../../contract/messages.ts";
import type { ToolFailed, Trajectory, Turn } from "../../contract/trajectory.ts";
import { keysOf } from "../environments/tool-call.ts";

type Recorded = Pick<Turn, "completion" | "tool_failed">;
/** One for each message: whether the call that it answers failed; undefined for one that answers none. */
type Marks = (boolean | null | undefined)[];

/**
 * One for each tool message of the completion, in order: null where its call's failure was not recorded, or where nobody can
 * say which call it answers. Null where nothing was recorded at all.
 */
export function failuresIn({
  turns,
  final_env_response,
  completion,
}: Pick<Trajectory, "turns" | "final_env_response" | "completion">): ToolFailed | null {
  if (turns.every(({ tool_failed }) => tool_failed === undefined)) return null;
  const marks: Marks = [];
  for (const [index, turn] of turns.entries()) {
    marks.length = Math.min(marks.length, turn.prompt.keep);
    marks.push(...marksOf(turn.prompt.append, turns[index - 1]), undefined);
  }
  marks.push(...marksOf(final_env_response ?? [], turns.at(-1)));
  // What was said after the prompt is the end of the history.
  return marks.slice(marks.length - completion.length).filter((mark) => mark !== undefined);
}

/** By the ids of the calls: where one comes oftener than its calls, a hook repeats results of earlier turns there. */
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
