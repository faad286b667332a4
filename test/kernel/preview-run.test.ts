/** The estimated cost of a run, from earlier runs; nothing is started. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { RunPreview } from "../../src/contract/run-preview.ts";
import { openPlatform, type RunOptions, type TestApi } from "./platform.ts";
import { questions, RIGHT } from "./rows.ts";
import { script } from "./script.ts";

async function preview(api: TestApi, request: RunOptions): Promise<RunPreview> {
  const reply = await api.post("/v1/runs/preview", { endpoint: { base_url: env.MODEL_URL }, ...request });
  expect(reply.status).toBe(200);
  return RunPreview.parse(await reply.json());
}

test("a preview has no estimate before the first run, and then uses what a rollout cost", async () => {
  const api = await openPlatform();
  const prices = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 2_000_000 };
  const made = await api.post("/v1/endpoints", { name: "priced", base_url: env.MODEL_URL, prices });
  expect(made.status).toBe(201);
  const request = { environment: "gsm8k", dataset: questions(4), model: script(RIGHT), endpoint: "priced" };
  expect(await preview(api, request)).toMatchObject({
    rollouts: 4,
    based_on: { runs: 0, rollouts: 0 },
    ...{ charged_micros: null, policy_micros: null, judge_micros: null, price_version: null },
  });
  const { id, report } = await api.finish(request);
  // The run's alarm writes the row that a preview reads.
  await api.inRun(id, async (run) => {
    run.now = () => Date.now() + 5000;
    await run.alarm();
  });
  const { prompt_tokens, completion_tokens } = report.usage;
  expect(await preview(api, { ...request, rollouts_per_example: 3 })).toMatchObject({
    rollouts: 12,
    based_on: { runs: 1, rollouts: 4 },
    charged_micros: { expected: 0, low: null, high: null },
    policy_micros: { expected: Math.round(3 * (prompt_tokens + 2 * completion_tokens)), low: null },
    judge_micros: { expected: 0 },
  });
  const { data } = await (await api.ask("/v1/runs")).json<{ data: unknown[] }>();
  expect(data.length).toBe(1);
});

test("a preview refuses what a run would refuse", async () => {
  const api = await openPlatform();
  const endpoint = { base_url: env.MODEL_URL };
  const reply = await api.post("/v1/runs/preview", { environment: "none-such", model: "m", endpoint });
  expect(reply.status).toBe(404);
});
