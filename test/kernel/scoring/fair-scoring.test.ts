/** Slow scores do not block other organisations. */
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { dataset, defineEnvironment, SingleTurnEnv, spendWork } from "../../../src/core/entry.ts";
import { auditRun } from "../../../src/kernel/service/audit-run.ts";
import { LossyQueue } from "../hand-made.ts";
import { openPlatform, requestsOf } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { RIGHT } from "../rows.ts";
import { questionScript, script } from "../script.ts";

const { ROLLOUT_SCORES_HEAVY } = env;
const { ROLLOUT_JUDGEMENTS_SLOW, ROLLOUT_JUDGEMENTS_SLOW_1, ROLLOUT_JUDGEMENTS_SLOW_2, ROLLOUT_JUDGEMENTS_SLOW_3 } =
  env;
/** The queues of scoring groups whose judges are slow, or that need much work. */
const SLOW = {
  ROLLOUT_JUDGEMENTS_SLOW,
  ROLLOUT_JUDGEMENTS_SLOW_1,
  ROLLOUT_JUDGEMENTS_SLOW_2,
  ROLLOUT_JUDGEMENTS_SLOW_3,
};

/** A queue that accepts its first batch, twice, but reports an error, as if the sender had been killed. */
class UnheardQueue extends LossyQueue {
  override async sendBatch(messages: Iterable<MessageSendRequest>): Promise<QueueSendBatchResponse> {
    const first = this.given.length === 0;
    const batch = [...messages];
    const sent = await super.sendBatch(batch);
    if (!first) return sent;
    await super.sendBatch(batch);
    throw new Error("the sender is gone");
  }
}

/** Records what is sent to them from now on, until the test ends. */
function watchSlow(): () => unknown[] {
  const watched = Object.entries(SLOW).map(([name, queue]) => {
    const lossy = new LossyQueue(queue);
    lossy.losing = false;
    return [name, lossy] as const;
  });
  Object.assign(env, Object.fromEntries(watched));
  return () => watched.flatMap(([, { given }]) => given);
}

/** Texts of this length take about 1,000,000 steps to compare, and six graders compare them. */
const LONG = 14_000;
const ROWS = 10;
/** Each of these is computed twice. */
const JUDGED = 6;
/** Enough to outlast the delay of another organisation's run on a slow machine. */
const MANY_ROWS = 30;
const HEAVY_ROWS = Array.from({ length: MANY_ROWS }, (_, at) => ({
  question: questionScript([`${at}${"x".repeat(LONG)}`]),
  answer: "y".repeat(LONG),
}));
const GRADERS = Array.from({ length: 6 }, (_, at) => ({ type: "scorer", name: `g${at}`, scorer: "levenshtein" }));

/** Its groups are scored together, which only the consumer does. */
const bestOf = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: dataset(z.object({ question: z.string() }), [{ question: "Say one." }]),
      rubric: { groupRewards: { best: (group) => group.map(() => 1) } },
    }),
});

/** After its judge has answered it needs more work than the queues of quick judges allow. */
const weighed = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: dataset(z.object({ question: z.string() }), [{ question: "Say one." }]),
      rubric: {
        judges: ["default"],
        rewards: {
          liked: async (args) => {
            const liked = await args.judge("Is it good?", { range: [0, 1] });
            spendWork(args, 5_000_000, "weighing it");
            return liked;
          },
        },
      },
    }),
});

beforeAll(() => {
  for (const [id, { args, needs, load }] of Object.entries({ "best-of": bestOf, weighed })) {
    registerOnce({ id, version: "1.0.0", digest: `sha256:${id}`, args, needs, load });
  }
});
afterEach(() => {
  Object.assign(env, SLOW, { ROLLOUT_SCORES_HEAVY });
});

test("a run of another organisation is played, scored and read while heavy graders are computed", async () => {
  const [greedy, fair] = await Promise.all([openPlatform(), openPlatform()]);
  const heavy = await greedy.start({
    environment: "graded-dataset",
    environment_args: { graders: GRADERS },
    dataset: HEAVY_ROWS.slice(0, ROWS),
    model: script([]),
  });
  const scored = async () => (await greedy.run(heavy.id)).counts.scored;
  // Its first scoring group is scored: from now on the others are computed one after another.
  await expect.poll(scored).toBeGreaterThan(0);
  const dataset = [{ question: "What is 2 + 2?", answer: "#### 4" }];
  const run = await fair.finish({ environment: "gsm8k", dataset, model: script(RIGHT) });
  expect(run.counts.scored).toBe(1);
  expect(await scored()).toBeLessThan(ROWS);
  expect((await greedy.ended(heavy.id)).counts.scored).toBe(ROWS);
});

test("an organisation's heavy run, and one whose groups are scored together, end while another has more heavy groups", async () => {
  const [greedy, fair] = await Promise.all([openPlatform(), openPlatform()]);
  const graded = { environment: "graded-dataset", environment_args: { graders: GRADERS }, model: script([]) };
  const heavy = await greedy.start({ ...graded, dataset: HEAVY_ROWS });
  const scored = async () => (await greedy.run(heavy.id)).counts.scored;
  await expect.poll(scored).toBeGreaterThan(0);
  const group = await fair.finish({ environment: "best-of", rollouts_per_example: 2, model: script(["one"]) });
  expect(group.counts.scored).toBe(2);
  const run = await fair.finish({ ...graded, dataset: HEAVY_ROWS.slice(0, 2) });
  expect(run.counts.scored).toBe(2);
  expect(await scored()).toBeLessThan(MANY_ROWS);
  expect((await greedy.ended(heavy.id)).counts.scored).toBe(MANY_ROWS);
});

test("a run of another organisation is played, scored and read while scoring groups with judges and heavy graders are computed", async () => {
  const [greedy, fair] = await Promise.all([openPlatform(), openPlatform()]);
  const JUDGE = {
    ...{ type: "score_model", name: "taste", model: "judge", range: [0, 1] },
    input: [{ role: "user", content: "Grade {{ item.answer }}" }],
  };
  const sentToSlow = watchSlow();
  const judge = { endpoint: { base_url: env.MODEL_URL }, model: script(['{"reason": "fine", "verdict": 0.5}']) };
  const heavy = await greedy.start({
    environment: "graded-dataset",
    environment_args: { graders: [...GRADERS.slice(0, 5), JUDGE] },
    dataset: HEAVY_ROWS.slice(0, JUDGED),
    model: script([]),
    judges: { judge },
  });
  const scored = async () => (await greedy.run(heavy.id)).counts.scored;
  await expect.poll(scored).toBeGreaterThan(0);
  const dataset = [{ question: "What is 2 + 2?", answer: "#### 4" }];
  const run = await fair.finish({ environment: "gsm8k", dataset, model: script(RIGHT) });
  expect(run.counts.scored).toBe(1);
  expect(await scored()).toBeLessThan(JUDGED);
  // Scoring groups of quick judges do not wait for them.
  expect(sentToSlow()).toContainEqual(expect.objectContaining({ run_id: heavy.id, pace: "slow" }));
  expect((await greedy.ended(heavy.id)).counts.scored).toBe(JUDGED);
});

test("a scoring group that needs much work after its judge has answered moves to another queue, and its judge is called once", async () => {
  const sentToSlow = watchSlow();
  const platform = await openPlatform();
  const model = script(['{"reason": "fine", "verdict": 0.5}']);
  const judges = { default: { endpoint: { base_url: env.MODEL_URL }, model } };
  const run = await platform.finish({ environment: "weighed", model: script(["one"]), judges });
  expect(run).toMatchObject({ counts: { scored: 1 }, report: { reward: { mean: 0.5 } } });
  expect(sentToSlow()).toEqual([expect.objectContaining({ run_id: run.id, pace: "slow" })]);
  expect(await requestsOf(model)).toHaveLength(1);
});

test("heavy scoring groups that are forwarded twice, because the consumer was killed in between, are scored and charged once", async () => {
  const heavy = new UnheardQueue(ROLLOUT_SCORES_HEAVY);
  heavy.losing = false;
  Object.assign(env, { ROLLOUT_SCORES_HEAVY: heavy });
  const platform = await openPlatform();
  const run = await platform.finish({
    environment: "graded-dataset",
    environment_args: { graders: GRADERS },
    dataset: HEAVY_ROWS.slice(0, 2),
    model: script([]),
  });
  expect(run.counts).toMatchObject({ planned: 2, scored: 2, unscored: {}, failed: {} });
  expect(heavy.given).toContainEqual(expect.objectContaining({ run_id: run.id, heavy: true }));
  expect(await auditRun(env, platform.scope, run.id, Date.now())).toMatchObject({ value: { violations: [] } });
});
