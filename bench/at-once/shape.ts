/** What the benchmark plays and the simulation simulates. */
import * as z from "zod";
import { seededRandom } from "../../src/contract/random.ts";

export const Shape = z.strictObject({
  /** Rollouts at once. */
  rollouts: z.int(),
  turns: z.int(),
  /** The mean time of a turn after all are in flight. */
  turnMs: z.number(),
});
export type Shape = Readonly<z.infer<typeof Shape>>;

/** A turn takes from half to one and a half times the mean. */
const SPREAD = 0.5;

/** Milliseconds of the next turn; the same for the same shape. */
export function turnTimes({ turnMs }: Shape): () => number {
  const random = seededRandom("turns at once");
  return () => turnMs * (1 - SPREAD + 2 * SPREAD * random());
}
