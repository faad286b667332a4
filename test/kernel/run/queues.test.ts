/** Which queue gets a run's messages. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { seededRandom } from "../../../src/contract/random.ts";
import { mintRunId } from "../../../src/core/ids.ts";
import { SHARDS, shardOf } from "../../../src/core/run-queues.ts";
import { idMac } from "../../../src/kernel/kit/secrets.ts";
import { QUEUES } from "../../../src/kernel/messages/queues.ts";
import { groupsQueue, scoresQueue } from "../../../src/kernel/run/queues.ts";

const mac = idMac(env.ROLLCALL_SECRET);

test("the runs of a deployment are spread evenly over four queues, and a run always has the same", () => {
  const draw = seededRandom("ids of runs");
  const random = (bytes: number) => Uint8Array.from({ length: bytes }, () => Math.floor(256 * draw()));
  const ids = Array.from({ length: 4000 }, (_, at) => mintRunId({ now: at, random, mac }));
  const counts = Array.from({ length: SHARDS }, (_, shard) => ids.filter((id) => shardOf(id) === shard).length);
  for (const count of counts) expect(Math.abs(count / (ids.length / SHARDS) - 1)).toBeLessThan(0.1);
  // A release that chose otherwise would send repeated messages another way.
  expect(["run_a", "run_b", "run_c", "run_d"].map(shardOf)).toEqual([1, 2, 3, 0]);
});

test("each shard has its own queue, and the first is the queue of earlier releases", () => {
  const ids = ["a", "b", "c", "d"].map((end) => `run_${end}`).toSorted((one, other) => shardOf(one) - shardOf(other));
  expect(ids.map(shardOf)).toEqual([0, 1, 2, 3]);
  const named = (queue: Queue) => QUEUES.find(({ binding }) => env[binding] === queue)?.queue;
  expect(ids.map((run_id) => named(groupsQueue(env, { run_id })))).toEqual([
    "rollout-groups",
    "rollout-groups-1",
    "rollout-groups-2",
    "rollout-groups-3",
  ]);
  expect(ids.map((run_id) => named(scoresQueue(env, { run_id })))).toEqual([
    "rollout-scores",
    "rollout-scores-1",
    "rollout-scores-2",
    "rollout-scores-3",
  ]);
  const heavy = ids.map((run_id) => named(scoresQueue(env, { run_id, heavy: true })));
  expect(heavy).toEqual(Array(SHARDS).fill("rollout-scores-heavy"));
});
