/**
 * The numbers of the ends of a rollout's calls on a fleet. A fleet numbers ends some time after the calls, and turns are
 * not written twice: a later turn notes the numbers. Pure.
 */
import type { FleetCallNote, TurnEnd } from "../../contract/trajectory.ts";

interface Called {
  readonly fleet_call?: FleetCallNote;
}

/** The calls whose ends have no number yet, by turn. */
export function openCalls(turns: readonly Called[]): { readonly turn: number; readonly number: number }[] {
  const noted = notedEnds(turns);
  return turns.flatMap(({ fleet_call }, turn) =>
    fleet_call?.open === true && !noted.has(turn) ? [{ turn, number: fleet_call.number }] : [],
  );
}

/** Notes ends in the last turn. */
export function noteEnds<Turn extends Called>(turns: readonly Turn[], ends: readonly TurnEnd[]): readonly Turn[] {
  const last = turns.findLastIndex(({ fleet_call }) => fleet_call !== undefined);
  if (ends.length === 0 || last === -1) return turns;
  return turns.map((turn, at) => {
    if (at !== last || turn.fleet_call === undefined) return turn;
    return { ...turn, fleet_call: { ...turn.fleet_call, ends: [...(turn.fleet_call.ends ?? []), ...ends] } };
  });
}

/** The turns of a rollout that is over: each call has its end. An end that was never numbered is null. */
export function withEnds<Turn extends Called>(turns: readonly Turn[]): readonly Turn[] {
  const noted = notedEnds(turns);
  return turns.map((turn, at) => {
    if (turn.fleet_call === undefined) return turn;
    const { open, ends, ...note } = turn.fleet_call;
    if (open === undefined && ends === undefined) return turn;
    return { ...turn, fleet_call: open === true ? { ...note, end: noted.get(at) ?? null } : note };
  });
}

function notedEnds(turns: readonly Called[]): Map<number, number | null> {
  return new Map(turns.flatMap(({ fleet_call }) => (fleet_call?.ends ?? []).map(({ turn, end }) => [turn, end])));
}
