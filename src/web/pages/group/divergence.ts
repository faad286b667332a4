/** From which turn on the members of a group went apart: pure, over the first turns of each. */
import type { ShownTurn } from "../../../contract/turns.ts";

export interface Divergence {
  /** The first turn, from 0, that is not the same in all members. */
  readonly turn: number;
  /** Members by what they said in that turn, most members first; `null` said nothing any more. */
  readonly sides: readonly { readonly turn: ShownTurn | null; readonly members: readonly number[] }[];
}

/**
 * `turns`: the first turns of each member, in order. Null where all are the same as far as they were read. Texts are
 * compared by what was read of them and their length.
 */
export function divergenceOf(turns: readonly (readonly ShownTurn[])[]): Divergence | null {
  const longest = Math.max(0, ...turns.map((of) => of.length));
  for (let turn = 0; turn < longest; turn += 1) {
    const sides = Map.groupBy(turns.keys(), (member) => saidIn(turns[member]?.[turn]));
    if (sides.size < 2) continue;
    const grouped = [...sides.values()].map((members) => ({ turn: turns[members[0] ?? 0]?.[turn] ?? null, members }));
    return { turn, sides: grouped.sort((one, other) => other.members.length - one.members.length) };
  }
  return null;
}

/** What the model said and which tools it called, as one text; ids of calls are made up anew each time. */
function saidIn(turn: ShownTurn | undefined): string {
  if (turn === undefined) return "";
  const { content, tool_calls = [] } = turn.completion;
  return JSON.stringify([content, tool_calls.map(({ name, arguments: given }) => [name, given])]);
}
