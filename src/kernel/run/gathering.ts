/**
 * When the calls to a run's object are gathered, and how many of them one call carries. A run with many rollouts at once
 * has several gatherers, each for a part of its callers.
 */

/** A run with more rollouts at once than this has gatherers, each for half as many. */
const GATHERED_ABOVE = 5000;
/** The maximum, even if the variable is low: each makes four calls a second to the run's object. */
const MOST_GATHERERS = 64;
/** Calls that are sent together. */
export const CALLS_TOGETHER = 250;
/**
 * Their arguments, in characters of JSON: some 1,000 small reports, which the run's object stores in one go and in about
 * 0.3 s. A single call may have more.
 */
export const CHARACTERS_TOGETHER = 1024 * 1024;
/** Results of `gathered` beyond this size (characters of trajectories) are left for the next call. */
export const REPLY_CHARACTERS = 4 * 1024 * 1024;

/** How many gatherers a run with so many rollouts at once has; 0: its callers call its object itself. */
export function gatherersOf({ GATHERED_ABOVE: variable }: Pick<Env, "GATHERED_ABOVE">, maxConcurrent: number): number {
  const given = Math.floor(Number(variable));
  const above = given > 0 ? given : GATHERED_ABOVE;
  if (maxConcurrent <= above) return 0;
  return Math.min(MOST_GATHERERS, Math.ceil((2 * maxConcurrent) / above));
}

/** How many of these sizes, from the first on, are sent together: at least one. */
export function togetherOf(sizes: readonly number[]): number {
  let [count, characters] = [0, 0];
  for (const size of sizes.slice(0, CALLS_TOGETHER)) {
    characters += size;
    if (count > 0 && characters > CHARACTERS_TOGETHER) break;
    count += 1;
  }
  return count;
}
