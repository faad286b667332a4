/** The environment that is data, on the real platform: what is refused before anything runs, and scorers that fail. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { EvalRequest } from "../../../src/contract/eval-request.ts";
import { resolveRun, wantedBy } from "../../../src/kernel/service/resolve/resolve-run.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const SAME = {
  type: "string_check",
  name: "same",
  input: "{{sample.output_text}}",
  reference: "{{item.answer}}",
  operation: "eq",
};
const rows = [{ item: { question: "2 + 2", answer: "4" } }, { item: { question: "2 + 3", answer: "5" } }];

function request(graders: readonly object[], more: object = {}) {
  const environment_args = { template: "What is {{item.question}}?", graders, ...more };
  return { environment: "graded-dataset", environment_args, dataset: rows, model: script(["4"]) };
}

async function refused(body: object): Promise<[status: number, param: string, message: string]> {
  const endpoint = { base_url: env.MODEL_URL };
  const reply = await platform.post("/v1/runs", { ...body, endpoint });
  const { error }: { error: { param: string; message: string } } = await reply.json();
  return [reply.status, error.param, error.message];
}

test("rows and graders alone make an eval: prompts are rendered, replies graded, and tasks stay the same under another template", async () => {
  const run = await platform.finish(request([SAME]));
  expect(run.report.reward).toMatchObject({ mean: 0.5, n_rollouts: 2 });
  const results = await platform.results(run.id);
  expect(results.map(({ prompt }) => prompt[0]?.["content"]).sort()).toEqual(["What is 2 + 2?", "What is 2 + 3?"]);
  const other = await platform.finish(request([SAME], { template: "{{item.question}} =" }));
  const keys = async (id: string) => (await platform.results(id)).map((row) => row.task_key).sort();
  expect(await keys(other.id)).toEqual(await keys(run.id));
});

test.each([
  [[SAME, { ...SAME, name: "b", operation: "similar" }], "environment_args.graders[1].operation"],
  [[{ type: "text_similarity", name: "n" }], "environment_args.graders[0].input"],
  [[{ ...SAME, refrence: "x" }], "environment_args.graders[0].refrence"],
  [[{ type: "python", name: "p", source: "…" }], "environment_args.graders[0].type"],
])("graders %j are refused by the field %s", async (graders, param) => {
  expect((await refused(request(graders))).slice(0, 2)).toEqual([400, param]);
});

test("a row that lacks a field of a template is refused by that field, and an unconfigured judge by its name", async () => {
  const dataset = [...rows, { item: { question: "2 + 4" } }];
  expect((await refused({ ...request([SAME]), dataset })).slice(0, 2)).toEqual([400, "rows[2].item.answer"]);
  const input = [{ role: "user", content: "{{sample.output_text}}" }];
  const judged = { type: "score_model", name: "taste", model: "gpt-4o", input };
  expect((await refused(request([judged]))).slice(0, 2)).toEqual([400, "judges.gpt-4o"]);
});

const mine = (url: string) => ({ type: "http", name: "mine", url, secret: "SCORER" });

test("a custom scorer needs a secret that is set and, where private addresses are refused, a public one", async () => {
  const body = request([mine("http://10.0.0.1/score")]);
  expect((await refused(body))[2]).toContain("needs secret:SCORER, which is not set");
  const parsed = EvalRequest.parse({ ...body, endpoint: "none" });
  const shut = { ...env, ALLOW_PRIVATE_ENDPOINTS: "false" };
  expect(await resolveRun(shut, platform.scope, wantedBy(parsed), Date.now())).toMatchObject({
    ok: false,
    error: {
      code: "url_not_allowed",
      param: "environment_args.graders[0].url",
      message: expect.stringContaining("10.0.0.1 is not a public address"),
    },
  });
});

test("a fault of a custom scorer gives no score and a reason, and the other graders count", async () => {
  await platform.post("/v1/secrets", { name: "SCORER", value: "a secret of ours" });
  // It answers like a model: that is not a score.
  const url = `${env.MODEL_URL}/chat/completions`;
  const run = await platform.finish({
    ...request([
      { ...SAME, weight: 1 },
      { ...mine(url), weight: 0 },
    ]),
    min_scored: 0,
  });
  expect(run.report.reward).toMatchObject({ mean: 0.5, n_unscored: 0 });
  expect(run.report.metrics["mine"]?.mean ?? null).toBeNull();
  const owed = await platform.finish({ ...request([mine(url)]), min_scored: 0 });
  expect(owed.counts).toMatchObject({ scored: 0, unscored: { scorer: 2 } });
  const [row] = await platform.results(owed.id);
  expect(row?.scoring_errors[0]).toMatchObject({ function: "mine" });
});

const alike = (evaluation_metric: string) => ({
  type: "text_similarity",
  id: `${evaluation_metric}-c4fdf789-2fa5-407f-8a41-a6f4f9afd482`,
  name: evaluation_metric,
  input: "{{ sample.output_text }}",
  reference: "{{ item.answer }}",
  evaluation_metric,
  pass_threshold: 0.5,
});

function similarityRun(embedding: string, more: object = {}) {
  const testing_criteria = [alike("meteor"), alike("cosine")];
  const environment_args = { template: "What is {{item.question}}?", testing_criteria };
  const judges = {
    embedding: {
      endpoint: { base_url: env.MODEL_URL },
      model: embedding,
      sampling: { extra_body: { dimensions: 2 } },
    },
  };
  return { ...request([]), environment_args, judges, ...more };
}

test("criteria that compare by meteor and cosine work as exported; embeddings are requested and counted like judges, once", async () => {
  const usage = { prompt_tokens: 7, completion_tokens: 0, total_tokens: 7 };
  const down = { fault: { kind: "status", status: 503 }, times: 1 } as const;
  const embedding = script([{ ...down, reply: { content: "[[3, 4], [4, 3]]", usage } }]);
  const run = await platform.finish(similarityRun(embedding));
  expect(run.counts).toMatchObject({ scored: 2, unscored: {} });
  const { metrics } = run.report;
  expect([metrics["meteor"]?.mean, metrics["cosine"]?.mean]).toEqual([0.25, expect.closeTo(0.96, 9)]);
  expect(metrics["cosine.passed"]?.mean).toBe(1);
  expect(run.report.usage.judge).toMatchObject({ calls: 4, prompt_tokens: 14, total_tokens: 14 });
  const seen = await requestsOf(embedding, 4);
  expect(seen).toHaveLength(4);
  expect(seen[0]).toMatchObject({
    messages: 2,
    sampling: { encoding_format: "float", dimensions: 2 },
  });
  // The same texts and model: the results are cached.
  const again = await platform.finish(similarityRun(embedding));
  expect(again.report.metrics["cosine"]?.mean).toBeCloseTo(0.96, 9);
  const { judgements } = await platform.rollout(rolloutAt(again.id));
  expect(judgements).toMatchObject([{ judge: "embedding", calls: 0, cached: true }]);
});

test("a cosine that cannot be computed is no score; a run without an embedding model is refused by that name", async () => {
  const more = { min_scored: 0, limits: { max_retries: 0 } };
  const broken = script([{ fault: { kind: "garbage" } }]);
  const run = await platform.finish(similarityRun(broken, more));
  expect(run.counts).toMatchObject({ scored: 0, unscored: { judge: 2 } });
  const [row] = await platform.results(run.id);
  expect(row?.scoring_errors[0]).toMatchObject({ function: "cosine" });
  const { judges: _none, ...unnamed } = similarityRun(broken);
  expect((await refused(unnamed)).slice(0, 2)).toEqual([400, "judges.embedding"]);
});
