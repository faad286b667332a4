/** `max_cost_micros`: how much runs with a cap of their own spend at most, and how they end. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import type { RunAudit } from "../../../src/contract/audit.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { RunObject } from "../../../src/kernel/run/object.ts";
import { expectLaw, isOf, openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { GUESSES, questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const prices = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 2_000_000 };
const endpoint = { base_url: env.MODEL_URL, prices };
const sampling = { max_tokens: 100 };
const capped = { environment: "gsm8k", endpoint, sampling, min_scored: 0 } as const;

async function refusal(request: object, path = "/v1/runs"): Promise<unknown> {
  const reply = await platform.post(path, { ...capped, model: "m", dataset: questions(1), ...request });
  const { error } = await reply.json<{ error: { code: string; param: string } }>();
  return [reply.status, error.code, error.param];
}

test("a cap needs a bound for every call, and prices for every endpoint; a preview says so as well", async () => {
  const max_cost_micros = 1_000_000;
  const unbounded = [422, "max_tokens_required", "sampling.max_tokens"];
  expect(await refusal({ max_cost_micros, sampling: {} })).toEqual(unbounded);
  expect(await refusal({ max_cost_micros, sampling: { max_tokens: null } })).toEqual(unbounded);
  const unpriced = [422, "prices_required", "endpoint"];
  expect(await refusal({ max_cost_micros, endpoint: { base_url: env.MODEL_URL } })).toEqual(unpriced);
  expect(await refusal({ max_cost_micros, sampling: {} }, "/v1/runs/preview")).toEqual(unbounded);
  expect(await refusal({ max_cost_micros: 0 })).toEqual([400, "invalid_request", "max_cost_micros"]);
});

test("a cap refuses a field that lets a call exceed its bound, and names it", async () => {
  const max_cost_micros = 1_000_000;
  const asked = (extra_body: Record<string, unknown>) => ({ sampling: { max_tokens: 100, extra_body } });
  for (const path of ["/v1/runs", "/v1/runs/preview"]) {
    const refused = (extra_body: Record<string, unknown>) => refusal({ max_cost_micros, ...asked(extra_body) }, path);
    const invalid = (field: string) => [400, "invalid_request", `sampling.extra_body.${field}`];
    expect(await refused({ max_output_tokens: 9000 })).toEqual(invalid("max_output_tokens"));
    expect(await refused({ options: { numPredict: 9000 } })).toEqual(invalid("options.numPredict"));
    expect(await refused({ models: ["dear"] })).toEqual(invalid("models"));
  }
  const free = { ...capped, model: script(RIGHT), dataset: questions(1), ...asked({ max_output_tokens: 9000 }) };
  expect((await platform.finish(free)).counts.scored).toBe(1);
});

test("a run within its cap scores everything, and shows what it counted", async () => {
  const run = await platform.finish({
    ...capped,
    dataset: questions(4),
    model: script(RIGHT),
    max_cost_micros: 1_000_000,
  });
  expect(run.counts).toMatchObject({ scored: 4, cancelled: {} });
  const { prompt_tokens, completion_tokens } = run.report.usage;
  expect(run.report.counted_micros).toBe(prompt_tokens + 2 * completion_tokens);
  expect(run.report.usage.lost).toBeUndefined();
});

test("a run whose cap is reached ends waiting rollouts and dispatches nothing more; what it began is within the cap", async () => {
  const max_cost_micros = 2500;
  const request = { ...capped, dataset: questions(40), model: script(RIGHT), max_concurrent: 12, max_cost_micros };
  const run = await platform.finish(request);
  expectLaw(run.counts);
  expect(run.counts.scored).toBeGreaterThan(3);
  expect(run.counts.pending).toBeGreaterThan(0);
  expect(Object.keys(run.counts.cancelled)).toEqual(["budget"]);
  expect(run.report.counted_micros).toBeLessThanOrEqual(max_cost_micros);
  const seen = await requestsOf(request.model);
  expect(seen).toHaveLength(run.report.calls);
  const retried = await platform.post(`/v1/runs/${run.id}/retry`, {});
  const { error } = await retried.json<{ error: { code: string; message: string } }>();
  const message = `${run.id} has reached its max_cost_micros: release its lost calls, or start another run`;
  expect([retried.status, error]).toMatchObject([409, { code: "conflict", message }]);
});

test("a large rollout that its cap ends keeps the turns it has paid for, in a file of their own", async () => {
  // The bound of each of its calls has as many tokens as its question has bytes.
  const bytes = LIMITS.inlineTrajectoryBytes + 8000;
  const product = { tool_calls: [{ name: "multiply", arguments: { a: 12, b: 3 } }] };
  const run = await platform.finish({
    ...capped,
    environment: "calculator",
    dataset: [{ question: "many words ".repeat(bytes / 11), answer: "36" }],
    model: script([product, product, "36"]),
    max_cost_micros: bytes + 5000,
  });
  expect(run.counts).toMatchObject({ scored: 0, cancelled: { budget: 1 } });
  const { prompt_tokens, completion_tokens, lost } = run.report.usage;
  expect([run.report.counted_micros, lost]).toEqual([prompt_tokens + 2 * completion_tokens, undefined]);
  const [row] = await platform.results(run.id);
  const rollout = await platform.rollout(row?.rollout_id ?? "");
  expect([rollout.outcome, rollout.reason, rollout.turns.length]).toEqual(["cancelled", "budget", 1]);
  const reply = await platform.ask(`/v1/runs/${run.id}/audit`);
  const { violations, sources } = await reply.json<RunAudit>();
  // Its file may have been compacted into a segment by now.
  expect([violations, sources.r2.rollouts + sources.r2.trajectories]).toEqual([[], 1]);
});

test("a run that cannot pay for a single call makes none", async () => {
  const model = script(RIGHT);
  const run = await platform.finish({ ...capped, dataset: questions(3), model, max_cost_micros: 10 });
  expect(run.report).toMatchObject({ calls: 0, counted_micros: 0 });
  expect(run.counts).toMatchObject({ scored: 0 });
  expect(await requestsOf(model)).toEqual([]);
});

test("an answer lost by a kill is lost usage: it counts at its bound, and is shown", async () => {
  const hangsOnce = [{ fault: { kind: "hang" }, times: 1, reply: "\\boxed{4}" }] as const;
  const model = script(hangsOnce);
  const run = await platform.start({ ...capped, dataset: questions(1), model, max_cost_micros: 1_000_000 });
  await requestsOf(model, 1);
  await abortAllDurableObjects();
  const ended = await platform.ended(run.id);
  expect(ended.counts.scored).toBe(1);
  const { lost, prompt_tokens, completion_tokens } = ended.report.usage;
  expect(lost?.calls).toBe(1);
  expect(lost?.micros).toBeGreaterThan(256);
  expect(lost?.micros).toBeLessThan(1024);
  expect(ended.report.counted_micros).toBe(prompt_tokens + 2 * completion_tokens + (lost?.micros ?? 0));
  expect(ended.report.lost_reservations).toEqual(lost);
});

test("in a run without a cap lost calls are counted, and their cost is unknown", async () => {
  const resetOnce = [{ fault: { kind: "reset" }, times: 1, reply: "\\boxed{4}" }] as const;
  const run = await platform.finish({ environment: "gsm8k", dataset: questions(1), model: script(resetOnce) });
  expect(run.report.usage.lost).toEqual({ calls: 1, micros: null });
  expect(run.report.counted_micros).toBeUndefined();
  expect(run.report.lost_reservations).toBeUndefined();
});

test("a refused call costs nothing", async () => {
  const busyOnce = [{ fault: { kind: "status", status: 503 }, times: 1, reply: "\\boxed{4}" }] as const;
  const request = { ...capped, dataset: questions(1), model: script(busyOnce), max_cost_micros: 1_000_000 };
  const { report } = await platform.finish(request);
  expect(report.usage.lost).toBeUndefined();
  expect(report.counted_micros).toBe(report.usage.prompt_tokens + 2 * report.usage.completion_tokens);
});

test("a run without a cap requests no money; with a cap there is at most one request per four turns", async () => {
  const allow = vi.spyOn(RunObject.prototype, "allow");
  const askedOf = (id: string) =>
    allow.mock.calls.filter((_, call) => allow.mock.contexts.slice(call, call + 1).some((run) => isOf(id, run)));
  const guesses = {
    environment: "guess-number",
    environment_args: { max: 3 },
    num_examples: 1,
    rollouts_per_example: 6,
  };
  const turns = GUESSES;
  const free = await platform.finish({ ...guesses, model: script(turns) });
  expect(free.report.turns).toBeGreaterThan(6);
  expect(askedOf(free.id)).toEqual([]);
  const paid = await platform.finish({
    ...guesses,
    endpoint,
    sampling,
    model: script(turns),
    max_cost_micros: 100_000_000,
  });
  const asked = askedOf(paid.id);
  expect(asked.length).toBeGreaterThan(0);
  expect(asked.length).toBeLessThanOrEqual(1 + paid.report.turns / 4);
});
