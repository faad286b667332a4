/** Rollouts whose score depends only on their own trajectory: scored in the object that played them. */
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { dataset, defineEnvironment, SingleTurnEnv } from "../../../src/core/entry.ts";
import { spendWork } from "../../../src/core/rubrics/work.ts";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";
import { scoreScoringGroups } from "../../../src/kernel/scoring/consume-scores.ts";
import { allShards, LossyQueue } from "../hand-made.ts";
import { expectLaw, openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const {
  ROLLOUT_SCORES_1,
  ROLLOUT_SCORES_2,
  ROLLOUT_SCORES_3,
  ROLLOUT_SCORES: SCORES,
  ROLLOUT_SCORES_HEAVY: HEAVY,
} = env;
const ScoresScoringGroups = z.object({ run_id: z.string(), units: z.array(z.int()) });
let platform: TestApi;
let passes = 0;

/** Its one function takes `steps` of counted work, in three parts. */
const heavy = defineEnvironment({
  args: z.strictObject({ steps: z.int() }),
  build: ({ steps }) =>
    new SingleTurnEnv({
      dataset: dataset(z.object({ question: z.string() }), [{ question: "Say one." }]),
      rubric: {
        rewards: {
          one: (args) => {
            passes += 1;
            for (let part = 0; part < 3; part += 1) spendWork(args, steps / 3, "weighing it");
            return 1;
          },
        },
      },
    }),
});

beforeAll(async () => {
  platform = await openPlatform();
  const { args, needs, load } = heavy;
  registerOnce({ id: "heavy", version: "1.0.0", digest: "sha256:heavy", args, needs, load });
});
afterEach(() => {
  Object.assign(env, { ROLLOUT_SCORES: SCORES, ROLLOUT_SCORES_1, ROLLOUT_SCORES_2, ROLLOUT_SCORES_3 });
  env.ROLLOUT_SCORES_HEAVY = HEAVY;
  passes = 0;
});

test("a rollout without judges or calls is scored with its report: no message is sent for it", async () => {
  const queue = new LossyQueue(SCORES);
  Object.assign(env, allShards("ROLLOUT_SCORES", queue));
  const run = await platform.finish({ environment: "gsm8k", dataset: questions(7), model: script(RIGHT) });
  expectLaw(run.counts);
  expect(run).toMatchObject({ status: "completed", counts: { scored: 7 }, report: { reward: { mean: 1 } } });
  expect(queue.given.filter((message) => JSON.stringify(message).includes(run.id))).toEqual([]);
});

test.each([
  ["at once, where it takes little work", 1000, 1],
  ["by the consumer, where it takes more than its neighbours should wait for", 2_000_000, 2],
  ["by the consumer of heavy units, where it takes more than others in the queue should wait for", 4_500_000, 3],
])("it is scored %s, with the same score", async (_, steps, times) => {
  const model = script(["one"]);
  const request = { environment: "heavy", environment_args: { steps }, num_examples: 1, model };
  const run = await platform.finish(request);
  expect(run).toMatchObject({ counts: { scored: 1 }, report: { reward: { mean: 1 } } });
  expect({ passes, calls: (await requestsOf(model)).length }).toEqual({ passes: times, calls: 1 });
});

test.each([
  ["the object", 2_000_000, 1],
  ["the light queue", 4_500_000, 2],
])("once a rollout was too heavy for %s, the others of its run are not tried there", async (_, steps, wasted) => {
  const rollouts = 5;
  const request = { environment: "heavy", environment_args: { steps }, rollouts_per_example: rollouts };
  const run = await platform.finish({ ...request, num_examples: 1, max_concurrent: 1, model: script(["one"]) });
  expect(run.counts.scored).toBe(rollouts);
  expect(passes).toBe(wasted + rollouts);
});

test("a heavy scoring group is forwarded once: others of its message are scored where they are", async () => {
  const queue = new LossyQueue(HEAVY);
  queue.losing = false;
  env.ROLLOUT_SCORES_HEAVY = queue;
  const model = script(["one"]);
  const light = await platform.finish({ environment: "heavy", environment_args: { steps: 3_000_000 }, model });
  const heavy = await platform.finish({ environment: "heavy", environment_args: { steps: 4_500_000 }, model });
  const kind = { kind: "scores", scope: platform.scope, heavy: true };
  expect(queue.given).toEqual([{ ...kind, run_id: heavy.id, units: [1] }]);
  expect([light.counts.scored, heavy.counts.scored]).toEqual([1, 1]);
});

test("heavy scoring groups that are too much for one pass go to the end of the heavy queue", async () => {
  const [light, heavy] = [new LossyQueue(SCORES), new LossyQueue(HEAVY)];
  Object.assign(env, allShards("ROLLOUT_SCORES", light), { ROLLOUT_SCORES_HEAVY: heavy });
  heavy.losing = false;
  const request = { environment: "heavy", environment_args: { steps: 5_500_000 }, rollouts_per_example: 5 };
  const { id: run_id } = await platform.start({ ...request, model: script(["one"]) });
  // A queue may get a group twice, and the groups of a run before.
  const messages = () => light.given.map((message) => ScoresScoringGroups.parse(message));
  const sent = () => [...new Set(messages().flatMap((one) => (one.run_id === run_id ? one.units : [])))].toSorted();
  await expect.poll(sent).toEqual([1, 2, 3, 4, 5]);
  const message = { kind: "scores", scope: platform.scope, run_id, units: sent(), heavy: true } as const;
  await scoreScoringGroups(env, message, new Subrequests());
  expect((await platform.ended(run_id)).counts.scored).toBe(5);
  expect(heavy.given).toEqual([{ ...message, units: [5] }]);
  expect(sent()).toEqual(message.units);
});

test("a scoring group that exceeds the overall work limit is unscored, with the reason", async () => {
  const request = { environment: "heavy", environment_args: { steps: 20_000_000 }, num_examples: 1, min_scored: 0 };
  const run = await platform.finish({ ...request, model: script(["one"]) });
  expect(run.counts).toMatchObject({ scored: 0, unscored: { scorer: 1 } });
  const [result] = await platform.results(run.id);
  expect(result).toMatchObject({ reward: null, scoring_errors: [{ function: "one" }] });
});
