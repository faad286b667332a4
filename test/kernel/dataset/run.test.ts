import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { exampleAt } from "../../../src/core/rollout/task.ts";
import { uploadKeys } from "../../../src/kernel/kit/names.ts";
import { expectLaw, openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";
import { jsonLines, kept, uploaded } from "../upload.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

test("a run over an uploaded dataset plays its rows, wherever they are, and scores them", async () => {
  const rows = questions(600);
  const dataset = await uploaded(platform, jsonLines(rows), "name=six-hundred&environment=gsm8k");
  const run = await platform.finish({
    environment: "gsm8k",
    dataset: "six-hundred",
    model: script(RIGHT),
    shuffle: true,
    seed: 3,
    num_examples: 12,
    rollouts_per_example: 2,
  });
  expect(run).toMatchObject({ status: "completed", dataset: dataset.id, num_examples: 12 });
  expectLaw(run.counts);
  expect(run.counts.scored).toBe(24);
  expect(run.report.reward.mean).toBe(1);
  const results = await platform.results(run.id, "limit=1000");
  for (const { example_id, prompt } of results) {
    expect(prompt.at(-1)).toEqual({ role: "user", content: rows[example_id]?.question });
  }
  const examples = new Set(results.map(({ example_id }) => example_id));
  expect(examples.size).toBe(12);
  expect(new Set([...examples].map((index) => Math.floor(index / 256))).size).toBeGreaterThan(1);
});

test("long rows are read in blocks of fewer rows, and are played unchanged", async () => {
  const rows = questions(300).map(({ question, answer }) => ({
    question: question.padEnd(6000, "."),
    answer,
  }));
  const { id } = await uploaded(platform, jsonLines(rows));
  const run = await platform.finish({
    environment: "gsm8k",
    dataset: id,
    model: script(RIGHT),
    shuffle: true,
    num_examples: 6,
  });
  expect(run.counts.scored).toBe(6);
  for (const { example_id, prompt } of await platform.results(run.id)) {
    expect(prompt.at(-1)?.["content"]).toBe(rows[example_id]?.question);
  }
});

async function refusedRun(dataset: string) {
  const request = {
    environment: "gsm8k",
    dataset,
    model: "m",
    endpoint: { base_url: env.MODEL_URL },
  };
  const response = await platform.post("/v1/runs", request);
  const { error } = await response.json<{
    error: { code: string; param: string; message: string };
  }>();
  return { status: response.status, ...error };
}

test("a run is refused a dataset that is missing, belongs to another owner, or has lost its rows", async () => {
  const other = await uploaded(await openPlatform(), jsonLines(questions(1)), "name=theirs");
  const gone = await uploaded(platform, jsonLines(questions(1)));
  await env.STORE.delete(uploadKeys(platform.scope, gone.id).index_key);
  for (const named of ["nobody", "theirs", other.id, gone.id]) {
    const refused = { status: 404, code: "not_found", param: "dataset" };
    expect(await refusedRun(named)).toMatchObject(refused);
  }
});

test("if a dataset was not checked against the environment, its first rows are checked when the run is created", async () => {
  const plain = [...questions(2), { question: "without its answer" }];
  const { id } = await uploaded(platform, jsonLines(plain));
  expect(await refusedRun(id)).toMatchObject({
    status: 400,
    code: "invalid_row",
    param: "rows[2].answer",
    message: "row 3: answer is required",
  });
});

/** The first seed whose order has the row among the first `count`. */
function seedWith(row: number, length: number, count: number): number {
  const has = (seed: number) =>
    Array.from({ length: count }, (_, at) => exampleAt(at, { length, shuffle: true, seed })).includes(row);
  for (let seed = 0; ; seed += 1) if (has(seed)) return seed;
}

test("a bad row that was not checked ends only its own rollouts", async () => {
  const rows = [...questions(256), { question: "without its answer" }];
  const { id } = await uploaded(platform, jsonLines(rows));
  const run = await platform.finish({
    environment: "gsm8k",
    dataset: id,
    model: script(RIGHT),
    shuffle: true,
    seed: seedWith(256, rows.length, 5),
    num_examples: 5,
    min_scored: 0,
  });
  expect(run.counts).toMatchObject({ scored: 4, failed: { environment: 1 } });
  const [failed] = await platform.results(run.id, "outcome=failed");
  expect(failed?.error).toMatchObject({ error: "RowError", message: "answer is required" });
});

test("a dataset cannot be deleted while an unfinished run names it", async () => {
  const api = await openPlatform();
  const { id } = await uploaded(api, jsonLines(questions(1)), "name=in-use");
  const model = script([{ fault: { kind: "hang" } }]);
  const run = await api.start({ environment: "gsm8k", dataset: "in-use", model });
  await requestsOf(model, 1);
  const refused = await api.ask(`/v1/datasets/${id}`, { method: "DELETE" });
  expect(refused.status).toBe(409);
  expect(await refused.json()).toMatchObject({
    error: { code: "conflict", message: expect.stringContaining(run.id) },
  });
  expect((await kept(api)).ids).toEqual([id]);
  await api.ask(`/v1/runs/${run.id}/cancel`, { method: "POST" });
  expect((await api.ended(run.id)).status).toBe("cancelled");
  // At once: the list of runs may be behind, but the run itself is not.
  expect((await api.ask(`/v1/datasets/${id}`, { method: "DELETE" })).status).toBe(200);
  expect((await api.run(run.id)).dataset).toBe(id);
});

test("a run whose rows are missing ends with that reason instead of waiting for them", async () => {
  const { id } = await uploaded(platform, jsonLines(questions(40)), "environment=gsm8k");
  await env.STORE.delete(uploadKeys(platform.scope, id).key);
  const run = await platform.finish({ environment: "gsm8k", dataset: id, model: script(RIGHT) });
  expect(run).toMatchObject({ status: "failed", error: { code: "dataset_missing" } });
  const [failed] = await platform.results(run.id);
  expect(failed).toMatchObject({ outcome: "failed", reason: "environment" });
  expect(failed?.error?.message).toContain("the rows of the dataset are missing");
});
