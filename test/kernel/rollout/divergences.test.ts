/** Rules of docs/verifiers.md that only the running platform shows. The others are in test/core/divergences.test.ts. */
import { evictDurableObject } from "cloudflare:test";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { dataset, defineEnvironment, SingleTurnEnv } from "../../../src/core/entry.ts";
import { verifiersRow } from "../../../src/core/verifiers/row.ts";
import { openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

/** Its group function returns how many rollouts it was given. */
const together = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: dataset(z.object({ question: z.string() }), [{ question: "Say anything." }]),
      rubric: { groupRewards: { shown: (group) => group.map(() => group.length) } },
    }),
});

let platform: TestApi;
beforeAll(async () => {
  const { args, needs, load } = together;
  const known = { id: "together", version: "1.0.0", digest: "sha256:together" };
  registerOnce({ ...known, args, needs, load });
  platform = await openPlatform();
});

test("D11: max_concurrent counts rollouts, in groups too, which are scored when all have ended", async () => {
  const group = { environment: "together", num_examples: 1, rollouts_per_example: 4 };
  const hanging = script([{ fault: { kind: "hang" } }]);
  const run = await platform.start({ ...group, model: hanging, max_concurrent: 2 });
  await requestsOf(hanging, 2);
  expect((await platform.run(run.id)).counts).toMatchObject({ dispatched: 2, pending: 2 });
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  const answered = { ...group, model: script(RIGHT), max_concurrent: 2 };
  const { report } = await platform.finish(answered);
  expect(report.reward).toMatchObject({ mean: 4, n_rollouts: 4 });
});

test("D18: a sampling seed belongs to the run: each rollout and turn gets its own, and the same request gives the same ones", async () => {
  const seedsOf = async (sampling: object) => {
    const model = script(RIGHT);
    const dataset = questions(2);
    const asked = { environment: "gsm8k", dataset, model, rollouts_per_example: 3, sampling };
    await platform.finish(asked);
    const sent = (await requestsOf(model)).map(({ idempotency_key, sampling: { seed } }) => {
      return [idempotency_key.split("_").slice(2, 5).join("_"), seed] as const;
    });
    return Object.fromEntries(sent);
  };
  const first = await seedsOf({ seed: 5 });
  expect(new Set(Object.values(first)).size).toBe(6);
  expect(await seedsOf({ seed: 5 })).toEqual(first);
  expect(Object.values(await seedsOf({ seed: 6 }))).not.toEqual(Object.values(first));
  expect(new Set(Object.values(await seedsOf({})))).toEqual(new Set([undefined]));
  expect(new Set(Object.values(await seedsOf({ extra_body: { seed: 5 } })))).toEqual(new Set([5]));
});

test("A9: every rollout is a durable record with verifiers' keys, even if its run's object is evicted", async () => {
  const run = await platform.finish({
    environment: "gsm8k",
    dataset: questions(2),
    model: script(RIGHT),
    rollouts_per_example: 2,
  });
  const rows = await platform.results(run.id);
  await evictDurableObject(platform.runStub(run.id));
  expect(await platform.results(run.id)).toEqual(rows);
  const lines = rows.map((row) => JSON.stringify(verifiersRow(row)));
  expect(lines).toHaveLength(4);
  for (const line of lines) {
    const keys = Object.keys(JSON.parse(line));
    expect(keys.slice(0, 3)).toEqual(["example_id", "prompt", "completion"]);
    expect(keys).toEqual(expect.arrayContaining(["reward", "error", "timing", "metrics"]));
  }
});
