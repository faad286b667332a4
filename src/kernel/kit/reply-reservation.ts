/**
 * Bounds the memory of large model replies while they arrive: thousands may arrive at once, each of megabytes.
 *
 * Invariants. A small reply never waits. A larger one reserves memory before its text is kept. While it waits it is not
 * read, so what its server sends stays in the network's buffers. The wait counts neither as a pause of the body nor as
 * silence of its server. Replies that hold memory and wait for more cannot block each other for good: `repliesToEnd` of
 * them may always finish, beyond what is free; and none may be larger than the memory of all replies.
 */

import { LIMITS } from "../../contract/limits.ts";
import type { ReplyReservation } from "../clients/reply-reservation.ts";
import { LARGE_CHARACTERS, turnOfLarge } from "./fair-scheduler.ts";
import { FairSemaphore, type Reservation, type Waiting, waitFor } from "./fair-semaphore.ts";
import { BYTES_PER_CHARACTER, isolateMemory } from "./isolate-memory.ts";

/** Longer than a body may pause; replies that wait refresh their places. */
const SILENCE_MS = 2 * LIMITS.bodyPauseMs;
const ASK_AGAIN_MS = 20;

/** The replies of this process that may finish regardless of the others. */
export const REPLIES_TO_END = new FairSemaphore(LIMITS.repliesToEnd, SILENCE_MS);

/** Waiting replies by organisation: the more there are, the less often each tries again. */
const waits = new Map<string, number>();

/** For one reply. `org`: the organisation whose share it uses. */
export function replyReservation(
  env: Env,
  org: string,
  { now = () => Date.now(), pause }: Waiting = {},
): ReplyReservation {
  const { replies } = isolateMemory(env);
  let held: Reservation | null = null;
  let toEnd: Reservation | null = null;
  let size = 0;
  const stay = (at: number) => {
    held?.stay(at);
    toEnd?.stay(at);
  };
  const take = (wanted: number, at: number): boolean => {
    stay(at);
    held ??= replies.take(org, at, 0);
    const by = (wanted - size) * BYTES_PER_CHARACTER;
    if (held?.grow(by, at) !== true) {
      toEnd ??= REPLIES_TO_END.take(org, at);
      if (toEnd === null) return false;
      held?.exceed(by, at);
    }
    size = wanted;
    return true;
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
    most: Math.floor(replies.most / BYTES_PER_CHARACTER),
    grow: (characters, most, signal) => {
      stay(now());
      if (characters <= Math.max(size, LARGE_CHARACTERS)) return null;
      // So that it need not ask again for each piece.
      const wanted = Math.min(Math.max(characters, most), characters + LARGE_CHARACTERS);
      return take(wanted, now()) ? null : waitToTake(wanted, signal);
    },
    turn: (characters) => turnOfLarge(org, characters),
    leave: () => {
      held?.leave();
      toEnd?.leave();
    },
  };
}

/** The same reservation; `around` gets each of its waits for memory. */
export function withWaits(
  reservation: ReplyReservation,
  around: (wait: Promise<void>) => Promise<void>,
): ReplyReservation {
  return {
    ...reservation,
    grow: (characters, most, signal) => {
      const wait = reservation.grow(characters, most, signal);
      return wait === null ? null : around(wait);
    },
  };
}

function waitsOf(org: string): number {
  return waits.get(org) ?? 0;
}
