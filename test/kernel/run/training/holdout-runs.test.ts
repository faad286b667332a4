/** What evals of a run play and what its training never uses, compared by stored task keys. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { dataset, defineEnvironment, SingleTurnEnv } from "../../../../src/core/entry.ts";
import { untilBatchReady } from "../../batch-ready.ts";
import { openPlatform, type TestApi } from "../../platform.ts";
import { registerOnce } from "../../registered.ts";
import { script } from "../../script.ts";
import { jsonLines, uploaded } from "../../upload.ts";

const Task = z.object({ question: z.string() });
const Noted = Task.transform(({ question }) => ({ question, noted: true }));
const rubric = { rewards: { one: () => 1 } };
const numbered = (count: number) => Array.from({ length: count }, (_, at) => ({ question: `What is ${at}?` }));
/** Twelve tasks, four of them twice. */
const ROWS = [...numbered(12), ...numbered(4)];
const HELD = 5;

const own = defineEnvironment({
  args: z.strictObject({}),
  build: () => new SingleTurnEnv({ dataset: dataset(Task, ROWS), rubric }),
});
/** The rows of its evals are among those of training. */
const apart = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: dataset(Task, ROWS),
      evalDataset: dataset(Task, ROWS.slice(3)),
      rubric,
    }),
});
/** It reads the rows of an eval in its own way. */
const noting = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: dataset(Task, "uploaded"),
      evalDataset: dataset(Noted, "uploaded"),
      rubric,
    }),
});
const bare = defineEnvironment({
  args: z.strictObject({}),
  build: () => new SingleTurnEnv({ dataset: dataset(Task, "uploaded"), rubric }),
});
for (const [id, { args, needs, load }] of Object.entries({ own, apart, noting, bare })) {
  registerOnce({
    id: `held-${id}`,
    version: "1.0.0",
    digest: `sha256:held-${id}`,
    args,
    needs,
    load,
  });
}

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

/** The questions of a run's finished rollouts, by task key. */
async function tasksOf(run: string): Promise<Map<string, string>> {
  const results = await api.results(run, "limit=1000");
  return new Map(results.map(({ task_key, prompt }) => [task_key, String(prompt.at(-1)?.["content"])]));
}

/** Waits for the eval of the initial weights. */
async function evalOf(id: string): Promise<string> {
  const begun = async () => (await api.run(id)).training?.evals[0]?.run_id;
  let evals = await begun();
  for (let tries = 0; evals == null && tries < 100; tries += 1) {
    await api.inRun(id, (run) => run.alarm());
    evals = await begun();
  }
  if (evals == null) throw new Error(`${id} began no eval`);
  await api.ended(evals);
  return evals;
}

/** A training run whose first batch takes as many groups as there are rows, and the eval of its initial weights. */
async function trained(asked: object): Promise<{ evals: string; training: string }> {
  const size = { group_size: 2, batch_size: { rollouts: 2 * ROWS.length }, max_steps: 1 };
  const kept = { filters: { zero_variance: "keep" }, lead: 0, holdout: HELD };
  const response = await api.post("/v1/runs", {
    ...{ kind: "training", endpoint: { base_url: env.MODEL_URL }, ...size, ...kept },
    eval: { every: 1, num_examples: HELD },
    ...asked,
  });
  if (response.status !== 202) throw new Error(await response.text());
  const { id } = await response.json<{ id: string }>();
  const evals = await evalOf(id);
  await untilBatchReady(api, id);
  await api.post(`/v1/runs/${id}/cancel`, {});
  await api.ended(id);
  return { evals, training: id };
}

const model = () => script(["no"], undefined, { slots: ["no", "no"], tokens: true });
const given = () => Promise.resolve(ROWS);
const byName = async () => (await uploaded(api, jsonLines(ROWS))).id;
const none = () => Promise.resolve(undefined);

test.each([
  ["rows of its own", "own", false, 0, none],
  ["rows of its own, shuffled", "own", true, 7, none],
  ["rows of its own for evals, shuffled", "apart", true, 1, none],
  ["rows that came with the run, shuffled", "bare", true, 2, given],
  ["rows in place of its own, shuffled", "apart", true, 3, given],
  ["an uploaded dataset, shuffled", "bare", true, 4, byName],
])(
  "of %s, training draws all tasks but those that evals with its seed and order play",
  async (_what, id, shuffle, seed, rows) => {
    const brought = await rows();
    const asked = {
      ...{ environment: `held-${id}`, shuffle, seed },
      model: model(),
      ...(brought !== undefined && { dataset: brought }),
    };
    const before = await api.finish({ ...asked, num_examples: HELD });
    const runs = await trained(asked);
    const [played, evaluated, drawn] = await Promise.all([before.id, runs.evals, runs.training].map(tasksOf));
    expect(evaluated).toEqual(played);
    const all = new Set(ROWS.map(({ question }) => question));
    const left = [...all].filter((question) => ![...(played?.values() ?? [])].includes(question));
    expect([...(drawn?.values() ?? [])].sort()).toEqual(left.sort());
    expect([...(drawn?.keys() ?? [])].filter((key) => played?.has(key))).toEqual([]);
  },
);

test("rows that evals read differently from training are held out in both forms", async () => {
  const asked = {
    environment: "held-noting",
    shuffle: true,
    seed: 5,
    model: model(),
    dataset: ROWS,
  };
  const { evals, training } = await trained(asked);
  const [played, drawn] = await Promise.all([evals, training].map(tasksOf));
  const questions = [...(played?.values() ?? [])];
  expect([...(drawn?.values() ?? [])].filter((question) => questions.includes(question))).toEqual([]);
});

test("an eval of the run's own environment, by name, uses its order too, and one of another uses that one's rows", async () => {
  const asked = { environment: "held-own", shuffle: true, seed: 9, model: model() };
  const evals = { every: 1, num_examples: HELD };
  const [unnamed, named, other] = await Promise.all(
    [{}, { environment: "held-own" }, { environment: "held-apart", num_examples: 2 }].map(async (which) =>
      tasksOf((await trained({ ...asked, eval: { ...evals, ...which } })).evals),
    ),
  );
  expect(named).toEqual(unnamed);
  expect([...(other?.values() ?? [])].toSorted()).toEqual(["What is 3?", "What is 4?"]);
});
