/**
 * Calls of one plan, in the order their model saw them: none is sent again but for a reason, and once a later turn was
 * asked for, the one before it is stored.
 *
 * A call's time counts from its departure, which the model does not see: on a busy machine it may arrive late. So of a rollout's call its own record says that it was given up, and the book says whether it can have had its
 * whole time by then. A judge's call leaves when it is made, and has no such record.
 */
import type { Account, Death } from "./account.ts";
import type { Asked, AskedCall } from "./fault-model.ts";
import { CALL_TIMEOUT_MS } from "./limits.ts";

type Excuse = (before: Asked, again: Asked) => boolean;

/** A call is sent again for a reason only: it failed, its time passed, or its sender was killed. */
export function sentAgainForNoReason(account: Account): string[] {
  const { calls, judge_calls, deaths } = account;
  return [
    ...[...calls].flatMap(([key, call]) => again(key, call, deaths, givenUp(key, call, account))),
    ...[...judge_calls].flatMap(([key, call]) => again(key, call, deaths, hadItsTime)),
  ];
}

function again(key: string, { requests }: AskedCall, deaths: readonly Death[], excuse: Excuse): string[] {
  return requests.slice(1).flatMap((request, index) => {
    const before = requests[index];
    if (before === undefined || before.ended === "fault" || before.ended === "open") return [];
    if (diedBetween(before.at, request.at, deaths) || excuse(before, request)) return [];
    return [`${key} was sent again after ${request.at - before.at} ms for no reason`];
  });
}

/** Its rollout noted between the two that the call's time had passed, and no sooner than that can have been. */
function givenUp(key: string, { rollout, turn }: AskedCall, { told, calls }: Account): Excuse {
  const noted = told.timed_out.get(key) ?? [];
  // It left after the turn before was answered, and after it was given up the time before.
  const asked = calls.get(`${rollout}:${turn - 1}`)?.requests.at(-1)?.at ?? 0;
  const passed = noted.filter((second, index) => {
    const left = Math.max(asked, (noted[index - 1] ?? 0) * 1000);
    return endOf(second) - left >= CALL_TIMEOUT_MS;
  });
  return (before, { at }) => passed.some((second) => endOf(second) >= before.at && second * 1000 <= at);
}

/** The last millisecond of a second. */
function endOf(second: number): number {
  return second * 1000 + 999;
}

/** On a busy machine the model sees a call later than it left. */
const ARRIVES_WITHIN_MS = 250;

function hadItsTime(before: Asked, { at }: Asked): boolean {
  return at - before.at >= CALL_TIMEOUT_MS - ARRIVES_WITHIN_MS;
}

export function diedBetween(from: number, to: number, deaths: readonly Death[]): boolean {
  return deaths.some(({ after, before }) => from <= before && to >= after);
}

/** Once a later turn was asked for, the one before it is stored, and stays so. */
export function turnsInOrder(calls: Account["calls"]): string[] {
  const asked = [...calls.values()].flatMap(({ rollout, turn, requests }) =>
    requests.map(({ at }) => ({ rollout, turn, at })),
  );
  const latest = new Map<string, number>();
  return asked
    .sort((a, b) => a.at - b.at || a.turn - b.turn)
    .flatMap(({ rollout, turn }) => {
      const known = latest.get(rollout) ?? 0;
      latest.set(rollout, Math.max(known, turn));
      return turn < known ? [`${rollout} asked for turn ${turn} after turn ${known}`] : [];
    });
}
