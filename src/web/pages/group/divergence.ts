/** Finds the turn from which the members of a group differ. Pure: takes the first turns of each. */
import type { ShownTurn } from "../../../contract/turns.ts";

export interface Divergence {
  /** The first turn, from 0, that is not the same for all members. */
  readonly turn: number;
  /**
   * Members with the same output in that turn, the largest set first; the turn is `null` for members that had already
   * ended.
   */
  readonly sides: readonly { readonly turn: ShownTurn | null; readonly members: readonly number[] }[];
}

/**
 * `turns`: the first turns of each member, in order. Null if all turns that were read are the same. Texts are compared
 * by the part that was read and by their length.
 */
export function divergenceOf(turns: readonly (readonly ShownTurn[])[]): Divergence | null {
  const longest = Math.max(0, ...turns.map((of) => of.length));
  for (let turn = 0; turn < longest; turn += 1) {
    const sides = Map.groupBy(turns.keys(), (member) => shownTextOf(turns[member]?.[turn]));
    if (sides.size < 2) continue;
    const grouped = [...sides.values()].map((members) => ({ turn: turns[members[0] ?? 0]?.[turn] ?? null, members }));
    return { turn, sides: grouped.sort((one, other) => other.members.length - one.members.length) };
  }
  return null;
}

/** The model's text and its tool calls, as one text; without the ids of calls, which are different each time. */
function shownTextOf(turn: ShownTurn | undefined): string {
  if (turn === undefined) return "";
  const { content, tool_calls = [] } = turn.completion;
  return JSON.stringify([content, tool_calls.map(({ name, arguments: given }) => [name, given])]);
}
