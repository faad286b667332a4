/** Every way a model call fails, in a table: how it is classified, and that it is classified once. */
import { beforeAll, expect, test } from "vitest";
import type { Fault } from "../../fakes/scripted-model.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { down, RIGHT } from "../rows.ts";
import { questionScript, script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const status = (code: number, headers = {}): Fault => ({ kind: "status", status: code, headers });
/** A reply with status 200. */
const body = (value: unknown): Fault => ({ kind: "status", status: 200, body: value });
const completion = (message: unknown, finish_reason = "stop") =>
  body({ id: "c", choices: [{ index: 0, message, finish_reason }] });
const says = (content: string) => ({ role: "assistant", content });

/** Every failure that a retry may fix: its failure class on the rollout, and its error. */
const PASSING: Record<string, readonly [fault: Fault, reason: string, error: string]> = {
  "429 without Retry-After": [status(429), "provider", "ModelError"],
  "429 with it, in seconds": [status(429, { "retry-after": "1" }), "provider", "ModelError"],
  "429 with it, as a date": [status(429, { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" }), "provider", "ModelError"],
  "408": [status(408), "provider", "ModelError"],
  "500": [down, "provider", "ModelError"],
  "502": [status(502), "provider", "ModelError"],
  "503": [status(503), "provider", "ModelError"],
  "a connection cut before the answer": [{ kind: "reset" }, "provider", "ModelError"],
  "a connection cut within the body": [{ kind: "cut" }, "provider", "ModelError"],
  "a body that is no JSON": [{ kind: "garbage" }, "provider", "InvalidModelResponseError"],
  "a stream that ends before its reply does": [{ kind: "stream" }, "provider", "InvalidModelResponseError"],
  "no choices": [{ kind: "empty_choices" }, "provider", "EmptyModelResponseError"],
  "two choices": [
    body({ choices: [{ message: says("a") }, { message: says("b") }] }),
    "provider",
    "InvalidModelResponseError",
  ],
  "a message that is null": [completion(null), "provider", "InvalidModelResponseError"],
  "a message without content": [
    completion({ role: "assistant", content: null }),
    "provider",
    "EmptyModelResponseError",
  ],
  "a tool call without a function": [
    completion({ role: "assistant", content: null, tool_calls: [{ id: "c" }] }),
    "provider",
    "InvalidModelResponseError",
  ],
  "a reply broken off by the engine": [
    completion(says("\\boxed{4}"), "abort"),
    "provider",
    "InvalidModelResponseError",
  ],
  "an error in a reply of status 200": [
    body({ error: { message: "out of memory", code: 500 } }),
    "provider",
    "ModelError",
  ],
};
/** For many concurrent rollouts on a machine that may be busy. */
const PATIENCE = 30_000;

/** One run in which each rollout meets its own fault, `times` times. Returns the rollouts in order of the faults. */
async function meeting(faults: readonly Fault[], limits: { max_retries: number }, times?: number) {
  const dataset = faults.map((fault) => {
    const turn = { fault, reply: "\\boxed{4}", ...(times === undefined ? {} : { times }) };
    return { question: questionScript([turn]), answer: "#### 4" };
  });
  const model = script(RIGHT);
  const request = { environment: "gsm8k", dataset, model, limits, min_scored: 0 };
  const run = await platform.finish(request);
  const rollouts = await Promise.all(faults.map((_, group) => platform.rollout(rolloutAt(run.id, group))));
  const sent = (await requestsOf(model)).map(({ idempotency_key }) => idempotency_key);
  // After so many failures at once the platform also sends probes.
  const keys = sent.filter((key) => !key.startsWith("probe:"));
  return { run, rollouts, keys };
}

const WAYS = Object.entries(PASSING);
const FAULTS = WAYS.map(([, [fault]]) => fault);

test(
  "a temporary fault is noted on the rollout and retried, once and under the same key",
  async () => {
    const { run, rollouts, keys } = await meeting(FAULTS, { max_retries: 2 }, 1);
    const { length } = WAYS;
    expect(run).toMatchObject({ counts: { scored: length }, report: { turns: length } });
    expect(run.report.calls).toBe(2 * length);
    for (const [at, [way, [, reason, error]]] of WAYS.entries()) {
      const rollout = rollouts[at];
      expect(rollout, way).toMatchObject({ outcome: "scored", reward: 1, error: null });
      expect(rollout?.failed_calls, way).toMatchObject([{ turn: 0, call: 1, reason, error }]);
      const key = `${rollout?.id}:0`;
      expect(
        keys.filter((sent) => sent.startsWith(rollout?.id ?? "?")),
        way,
      ).toEqual([key, key]);
    }
  },
  PATIENCE,
);

test(
  "a permanent fault fails its rollout with its class, after max_retries and never with a score",
  async () => {
    const { run, rollouts, keys } = await meeting(FAULTS, { max_retries: 1 });
    expect(run.counts).toMatchObject({ scored: 0, failed: { provider: WAYS.length } });
    expect(run.report.reward).toMatchObject({ mean: null, n_error: WAYS.length });
    expect([keys.length, run.report.calls]).toEqual([2 * WAYS.length, 2 * WAYS.length]);
    for (const [at, [way, [, reason, error]]] of WAYS.entries()) {
      const rollout = rollouts[at];
      const ended = { outcome: "failed", reward: null, stop_condition: "has_error" };
      expect(rollout, way).toMatchObject({ ...ended, reason, error: { error } });
      expect(rollout?.failed_calls, way).toMatchObject([
        { call: 1, reason, error },
        { call: 2, reason, error },
      ]);
    }
  },
  PATIENCE,
);

const OVERFLOWS = [
  "This model's maximum context length is 4096 tokens.",
  "The prompt is longer than the model's context length",
  "The prompt is longer than the maximum model length of 4096",
  "The prompt (5000 tokens) exceeds the model's context length",
  "input would exceed the configured limit",
  "The input exceeds the configured limit",
  "tokens exceeded model capacity",
  "prompt_too_long",
  "Context Length overflow",
  "over the maximum model length",
  "You passed 3000 input tokens and requested 2000 output tokens. However, the model's context length is only 4096",
  "'max_tokens' or 'max_completion_tokens' is too large: 5000",
  "prompt is too long: 210000 tokens > 200000 maximum",
];

test(
  "a context overflow, in every wording, counts as a truncation: the rollout is scored, not failed",
  async () => {
    const bodies = [
      ...OVERFLOWS.map((message) => ({ message, type: "BadRequestError", param: null, code: 400 })),
      { message: "too many tokens", type: "BadRequestError", param: "input_tokens", code: 400 },
    ].map((error) => ({ error }));
    // Older servers send it without nesting.
    const flat = { object: "error", message: OVERFLOWS[0], type: "BadRequestError", code: 400 };
    const faults = [...bodies, flat].map((said) => ({ ...status(400), body: said }));
    const { run, rollouts } = await meeting(faults, { max_retries: 2 });
    const { length } = faults;
    expect(run).toMatchObject({
      counts: { scored: length, failed: {} },
      report: { calls: length },
    });
    expect(run.report.reward).toMatchObject({ mean: 0, n_truncated: length, n_error: 0 });
    for (const [at, rollout] of rollouts.entries()) {
      const stopped = { stop_condition: "prompt_too_long", is_truncated: true, failed_calls: [] };
      expect(rollout, JSON.stringify(faults[at])).toMatchObject({ ...stopped, reward: 0 });
    }
  },
  PATIENCE,
);
