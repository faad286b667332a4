/** How many messages of a batch one invocation of consume.ts handles at once. Pure. */
import { LIMITS } from "../../contract/limits.ts";
import type { RunMessage } from "../messages/wire.ts";
import { PLACES_PER_MESSAGE, SCORING_GROUPS_PER_MESSAGE } from "../run/queues.ts";

/** Members of scoring groups that are read at once. With more members, groups are read one after the other. */
const MEMBERS_AT_ONCE = 72;

/** The part of a message that mostly computes. */
export const COMPUTES = Number.POSITIVE_INFINITY;

/** The part of what one invocation may handle at once; `COMPUTES` for messages that mostly compute, or hold much memory. */
export function partOf(message: RunMessage): number {
  switch (message.kind) {
    case "judgement":
      return message.members / MEMBERS_AT_ONCE;
    case "groups":
      return message.carries === true ? COMPUTES : partOfStarts(message.rollouts.length);
    case "scores":
      if (message.heavy || message.members === undefined) return COMPUTES;
      return partOfScores(message.units.length * message.members);
    case "segment":
      return COMPUTES;
  }
}

/** The part of a message that starts so many rollouts. */
export function partOfStarts(rollouts: number): number {
  return rollouts / PLACES_PER_MESSAGE;
}

/** The part of a message that scores so many rollouts, with little work. */
export function partOfScores(rollouts: number): number {
  return rollouts / SCORING_GROUPS_PER_MESSAGE;
}

/**
 * Messages mostly wait, for a judge, for trajectories or for the objects of rollouts, and their data fit in memory at once: then as many
 * as there are connections. Otherwise 1. `parts`: of all messages of the batch.
 */
export function sideBySide(parts: readonly number[]): number {
  return parts.reduce((sum, part) => sum + part, 0) <= 1 ? LIMITS.parallelFetches : 1;
}
