/** The failed tool calls of a turn with the text of their results. Pure. */
import { looksFailed } from "../../../contract/looks-failed.ts";
import type { MessageBeginning, OutlineTurn, ShownTurn } from "../../../contract/turns.ts";
import { countText } from "../../components/format.ts";
import { formOf } from "./tool-tally.ts";

export interface FailedCall {
  readonly rollout: string;
  /** From 0. */
  readonly turn: number;
  readonly tool: string;
  /** The beginning of its result; null if the next turn does not have it. */
  readonly text: string | null;
}

/**
 * How many tool calls of the turn failed. Without a record this is guessed from the text of the results, which is in
 * the next turn.
 */
export function failedIn({ tool_calls, tool_calls_failed }: OutlineTurn, next: OutlineTurn | undefined): number {
  const guessed = next === undefined || next.after !== undefined ? 0 : next.failed;
  return Math.min(tool_calls, tool_calls_failed ?? guessed);
}

/** `after`: the messages after the turn. */
export function failedCallsOf(
  rollout: string,
  { index, completion, tool_failed }: Pick<ShownTurn, "index" | "completion" | "tool_failed">,
  after: readonly MessageBeginning[],
): readonly FailedCall[] {
  const results = new Map(
    after.map(({ tool_call_id, content }) => [tool_call_id, content.map(({ text }) => text).join("\n")]),
  );
  return (completion.tool_calls ?? []).flatMap(({ id, name }, at): FailedCall[] => {
    const text = results.get(id) ?? null;
    const failed = tool_failed?.[at] ?? (text !== null && looksFailed(text));
    return failed ? [{ rollout, turn: index, tool: name, text }] : [];
  });
}

/** The call whose result has the most frequent form; null without any text. */
export function mostFrequent(calls: readonly FailedCall[]): FailedCall | null {
  const withText = calls.filter(({ text }) => text !== null);
  const forms = Map.groupBy(withText, ({ tool, text }) => `${tool} ${formOf(text ?? "")}`);
  const [first = []] = [...forms.values()].sort((one, other) => other.length - one.length);
  return first[0] ?? null;
}

export interface TurnsRead {
  readonly slot: number;
  readonly read: number;
  readonly turns: number;
}

/** Of which members not all turns were read; null if all were. */
export function unreadText(members: readonly TurnsRead[]): string | null {
  const cut = members.filter(({ read, turns }) => read < turns);
  if (cut.length === 0) return null;
  const parts = cut.map(({ slot, read, turns }) => {
    return `of member ${slot} the first ${countText(read)} of ${countText(turns)}`;
  });
  return `Not all turns are read: ${parts.join(", ")}.`;
}
