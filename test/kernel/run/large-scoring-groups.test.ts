/** Trajectories that are too large to be in memory together: their scoring groups are scored one after the other. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { trajectoryKey } from "../../../src/kernel/kit/names.ts";
import { sha256Hex } from "../../../src/kernel/kit/secrets.ts";
import type { RolloutReport } from "../../../src/kernel/messages/wire.ts";
import { NO_MEMORY_MS } from "../../../src/kernel/scoring/held-trajectories.ts";
import { acceptedOnly, allShards, createLossy, deliver, LossyQueue, segmentLines } from "../hand-made.ts";
import { MEMORY } from "../memory-budget.ts";
import { openPlatform, rolloutAt, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const UNITS = [1, 2, 3];
/** Two of them exceed the limit. */
const LARGE = LIMITS.scoringCharacters * 0.6;

/** A run whose three rollouts have reported trajectories of this size, and whose messages are lost. */
async function answeredLarge() {
  const asked = { environment: "gsm8k", dataset: questions(UNITS.length), model: script(RIGHT) };
  const template = await platform.finish(asked);
  const row = await acceptedOnly(platform, template.id, { model: script(RIGHT) });
  const lossy = await createLossy(platform, row);
  for (const { trajectory } of await segmentLines(platform, template.id)) {
    if (trajectory === null) throw new Error("the template has no trajectory");
    const { example_id: group, task_key, usage, stop_condition, started_at, ended_at } = trajectory;
    const rollout_id = rolloutAt(row.id, group);
    const text = JSON.stringify({ ...trajectory, rollout_id });
    const digest = sha256Hex(text);
    await env.STORE.put(trajectoryKey(platform.scope, row.id, digest), text);
    const report: RolloutReport = {
      ...{ group, slot: 0, attempt: 0, rollout_id, example_id: group, task_key },
      ...{ failure: null, cancelled: null, error: null, stop_run: null },
      ...{ digest, bytes: LARGE, trajectory: null, stop_condition, is_truncated: false },
      ...{ turns: 1, calls: 1, usage, started_at, ended_at },
    };
    await lossy.within((run) => run.answered([report]));
  }
  return { ...lossy, id: row.id };
}

test("a scorer gets as many scoring groups as fit into memory, at least one, and scores all of a message", async () => {
  const { within, id } = await answeredLarge();
  const handed = async (scoringGroups: readonly number[]) =>
    (await within((run) => run.scoringGroupsToScore(scoringGroups)))?.units.map(
      ({ unit: scoringGroup }) => scoringGroup,
    );
  expect(await handed(UNITS)).toEqual([1]);
  expect(await handed([3, 2])).toEqual([3]);
  const message = { kind: "scores", scope: platform.scope, run_id: id, units: UNITS } as const;
  expect(await deliver("rollout-scores", [message])).toEqual(["0"]);
  expect((await platform.ended(id)).counts).toMatchObject({ scored: UNITS.length, in_flight: 0 });
});

test("scoring groups without memory go back to the end of their queue, and none of them counts that as a try", async () => {
  const { id } = await answeredLarge();
  const queue = new LossyQueue(env.ROLLOUT_SCORES);
  await platform.inRun(id, (_, { storage }) => storage.sql.exec("update rollouts set asks = 3"));
  // All that there is, and what one large scoring group may have beyond it.
  const { most } = MEMORY.trajectories.bytes;
  const held = [most, most].map((bytes) => MEMORY.trajectories.take(platform.scope.orgId, Date.now(), bytes));
  const message = { kind: "scores", scope: platform.scope, run_id: id, units: UNITS } as const;
  expect(await deliver("rollout-scores", [message], { bindings: allShards("ROLLOUT_SCORES", queue) })).toEqual(["0"]);
  for (const memory of held) memory?.leave();
  expect([queue.given, queue.delays]).toEqual([[message], [NO_MEMORY_MS / 1000]]);
  const rows = await platform.inRun(id, (_, { storage }) =>
    storage.sql.exec<{ ask_at: number }>("select asks, ask_at from rollouts").toArray(),
  );
  expect(rows).toMatchObject(UNITS.map(() => ({ asks: 0 })));
  expect(Math.min(...rows.map(({ ask_at }) => ask_at))).toBeGreaterThan(Date.now());
  expect(await deliver("rollout-scores", [message])).toEqual(["0"]);
  expect((await platform.ended(id)).counts).toMatchObject({ scored: UNITS.length, in_flight: 0 });
});
