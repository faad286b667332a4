/**
 * Bounds the memory of large model replies while they arrive: thousands may arrive at once, each of megabytes.
 *
 * Invariants. A small reply never waits. A larger one reserves memory before its text is kept. While it waits it is not read,
 * so what its server sends stays in the network's buffers. The wait is part of the call's time: when that ends, the call times
 * out as any other. The wait does not count as a pause of the body. Replies that hold memory and wait for more cannot block
 * each other for good: `repliesToEnd` of them may finish without further reservations.
 */

import { LIMITS } from "../../contract/limits.ts";
import type { ReplyReservation } from "../clients/reply-reservation.ts";
import { LARGE_CHARACTERS, turnOfLarge } from "../kit/fair-scheduler.ts";
import { FairSemaphore, type Reservation, type Waiting, waitFor } from "../kit/fair-semaphore.ts";

/** Longer than a body may pause; replies that wait refresh their places. */
const SILENCE_MS = 2 * LIMITS.bodyPauseMs;
const ASK_AGAIN_MS = 20;

/** In characters, for all objects of this process; and the replies that may finish regardless of the others. */
export const REPLIES_HELD = new FairSemaphore(LIMITS.repliesCharacters, SILENCE_MS);
export const REPLIES_TO_END = new FairSemaphore(LIMITS.repliesToEnd, SILENCE_MS);

/** Waiting replies by organisation: the more there are, the less often each tries again. */
const waits = new Map<string, number>();

/** For one reply. `org`: the organisation whose share it uses. */
export function replyReservation(org: string, { now = () => Date.now(), pause }: Waiting = {}): ReplyReservation {
  let held: Reservation | null = null;
  let toEnd: Reservation | null = null;
  let size = 0;
  const stay = (at: number) => {
    held?.stay(at);
    toEnd?.stay(at);
  };
  const hold = (wanted: number, at: number): boolean => {
    if (held !== null) return held.grow(wanted - size, at);
    held = REPLIES_HELD.take(org, at, wanted);
    return held !== null;
  };
  const take = (wanted: number, at: number): boolean => {
    stay(at);
    const fits = hold(wanted, at);
    if (fits) size = wanted;
    else toEnd = REPLIES_TO_END.take(org, at);
    return fits || toEnd !== null;
  };
  const waitToTake = async (wanted: number, signal: AbortSignal) => {
    waits.set(org, waitsOf(org) + 1);
    try {
      const rest = () => (pause ?? ((ms: number) => scheduler.wait(ms)))(Math.max(ASK_AGAIN_MS, waitsOf(org)));
      const mayGoOn = (at: number) => signal.aborted || take(wanted, at) || null;
      await waitFor(mayGoOn, Number.POSITIVE_INFINITY, { now, pause: rest });
    } finally {
      if (waitsOf(org) === 1) waits.delete(org);
      else waits.set(org, waitsOf(org) - 1);
    }
    signal.throwIfAborted();
  };
  return {
    grow: (characters, most, signal) => {
      stay(now());
      if (characters <= Math.max(size, LARGE_CHARACTERS) || toEnd !== null) return null;
      const wanted = Math.min(most, Math.max(characters, 2 * size));
      return take(wanted, now()) ? null : waitToTake(wanted, signal);
    },
    turn: (characters) => turnOfLarge(org, characters),
    leave: () => {
      held?.leave();
      toEnd?.leave();
    },
  };
}

function waitsOf(org: string): number {
  return waits.get(org) ?? 0;
}
