/** Which of several equal queues gets the messages of a run. */

/** Starts have so many queues, and scores too. */
export const SHARDS = 4;
/** The end of a run's id, which is random. */
const SHARDED_BY = 8;

/**
 * The number of the queues that get a run's messages, from 0: always the same, so a repeated message goes the same way. 0
 * is the queue that earlier releases used for all runs. A sum of random characters is about equally often each number.
 */
export function shardOf(run_id: string): number {
  return [...run_id.slice(-SHARDED_BY)].reduce((sum, character) => sum + character.charCodeAt(0), 0) % SHARDS;
}

/** `name`: of the first queue, as in wrangler.toml. */
export function queueOfShard(name: string, shard: number): string {
  return shard === 0 ? name : `${name}-${shard}`;
}
