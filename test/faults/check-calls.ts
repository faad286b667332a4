/**
 * Checks the calls of one plan, in the order in which the model received them: none is sent again without a reason, and
 * once a later turn is requested, the turn before it is stored.
 *
 * A call's timeout counts from its departure, which the model cannot observe: on a busy machine a call may arrive late.
 * For a call of a rollout, the rollout's own record shows the timeout, and the log shows whether the whole time can
 * have passed. A judge's call leaves when it is made, and has no such record.
 */
import type { Account, Death } from "./account.ts";
import type { Asked, AskedCall } from "./fault-model.ts";
import { CALL_TIMEOUT_MS } from "./limits.ts";

type Excuse = (before: Asked, again: Asked) => boolean;

/** A call is sent again only if it failed, it timed out, or its sender was killed. */
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

/** Between the two calls, its rollout recorded a timeout, not earlier than possible. */
function givenUp(key: string, { rollout, turn }: AskedCall, { told, calls }: Account): Excuse {
  const noted = told.timed_out.get(key) ?? [];
  // It left after the turn before was answered, and after its own previous timeout.
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

/** On a busy machine the model receives a call later than it left. */
const ARRIVES_WITHIN_MS = 250;

function hadItsTime(before: Asked, { at }: Asked): boolean {
  return at - before.at >= CALL_TIMEOUT_MS - ARRIVES_WITHIN_MS;
}

export function diedBetween(from: number, to: number, deaths: readonly Death[]): boolean {
  return deaths.some(({ after, before }) => from <= before && to >= after);
}

/** Once a later turn is requested, the turn before it is stored, and stays stored. */
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
