/**
 * What large replies of models take of a process while they come: thousands may come at once, each of megabytes.
 *
 * Invariants. A small reply waits for nothing. A larger one has its memory before it is kept, and a reply that waits is not
 * read: what its server sends meanwhile stays with the network. The wait ends with the time of its call, which is then
 * late as any other, and does not count as a pause of the body. Replies that hold memory while they wait for more cannot
 * stop each other for good: a few may go on to their end without asking, and wait for nobody.
 */
import type { ReplyRoom } from "../../clients/reply-room.ts";
import { LIMITS } from "../../contract/limits.ts";
import { LARGE_CHARACTERS, turnOfLarge } from "../kit/fair-turns.ts";
import { type Place, Places, type Waiting, waitFor } from "../kit/places.ts";

/** Longer than a body may pause; those that wait say that they are there. */
const SILENCE_MS = 2 * LIMITS.bodyPauseMs;
const ASK_AGAIN_MS = 20;

/** Of all objects of this process, in characters; and how many replies may go on to their end, whatever the others hold. */
export const REPLIES_HELD = new Places(LIMITS.repliesCharacters, SILENCE_MS);
export const REPLIES_TO_END = new Places(LIMITS.repliesToEnd, SILENCE_MS);

/** By organisation, how many replies wait: many of them look less often. */
const waits = new Map<string, number>();

/** The room of one reply of this organisation. */
export function replyRoom(org: string, { now = () => Date.now(), pause }: Waiting = {}): ReplyRoom {
  let held: Place | null = null;
  let toEnd: Place | null = null;
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
