/**
 * Bounds the memory of large replies while they arrive: thousands may arrive at once, each of megabytes.
 *
 * Invariants. A small reply never waits. A larger one reserves memory before its text is kept. While it waits it is not
 * read, so what its server sends stays in the network's buffers. The wait is part of the call's time: when that ends, the
 * call times out as any other. The wait counts neither as a pause of the body nor as silence of its server. No model reply
 * may be larger than the memory of all replies.
 */

import { LIMITS } from "../../contract/limits.ts";
import type { ReplyReservation } from "../clients/reply-reservation.ts";
import { LARGE_CHARACTERS, turnOfLarge } from "./fair-scheduler.ts";
import { type Growing, type GrowingMemory, type Waiting, waitFor } from "./fair-semaphore.ts";
import { BYTES_PER_CHARACTER, isolateMemory } from "./isolate-memory.ts";

const ASK_AGAIN_MS = 20;

/** Waiting replies by organisation: the more there are, the less often each tries again. */
const waits = new Map<string, number>();

/** For one reply of a model or a judge. `org`: the organisation whose share it uses. */
export function replyReservation(env: Env, org: string, waiting?: Waiting): ReplyReservation {
  return reservationIn(isolateMemory(env).replies, org, waiting);
}

/** For one reply to an HTTP call of environment code. */
export function fetchedReservation(env: Env, org: string, waiting?: Waiting): ReplyReservation {
  return reservationIn(isolateMemory(env).fetched, org, waiting);
}

function reservationIn(
  memory: GrowingMemory,
  org: string,
  { now = () => Date.now(), pause = (ms) => scheduler.wait(ms) }: Waiting = {},
): ReplyReservation {
  let held: Growing | null = null;
  let [size, isWaiting] = [0, false];
  const take = (wanted: number, at: number): boolean => {
    held ??= memory.open(org, at);
    const fits = held.grow((wanted - size) * BYTES_PER_CHARACTER, at);
    if (fits) size = wanted;
    else held.stay(at);
    return fits;
  };
  const waitToTake = async (wanted: number, signal: AbortSignal) => {
    waits.set(org, waitsOf(org) + 1);
    isWaiting = true;
    try {
      const rest = () => pause(Math.max(ASK_AGAIN_MS, waitsOf(org)));
      const mayGoOn = (at: number) => signal.aborted || take(wanted, at) || null;
      await waitFor(mayGoOn, Number.POSITIVE_INFINITY, { now, pause: rest });
    } finally {
      if (waitsOf(org) === 1) waits.delete(org);
      else waits.set(org, waitsOf(org) - 1);
    }
    signal.throwIfAborted();
    isWaiting = false;
  };
  return {
    most: Math.min(LIMITS.streamedCharacters, Math.floor(memory.bytes.most / BYTES_PER_CHARACTER)),
    isWaiting: () => isWaiting,
    grow: (characters, most, signal) => {
      held?.stay(now());
      if (characters <= Math.max(size, LARGE_CHARACTERS)) return null;
      // So that it need not ask again for each piece.
      const wanted = Math.min(Math.max(characters, most), characters + LARGE_CHARACTERS);
      return take(wanted, now()) ? null : waitToTake(wanted, signal);
    },
    turn: (characters) => turnOfLarge(org, characters),
    leave: () => held?.leave(),
  };
}

function waitsOf(org: string): number {
  return waits.get(org) ?? 0;
}
