import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { Trajectory } from "../../src/contract/trajectory.ts";
import type { RolloutEntry, SegmentTrace } from "../../src/kernel/messages/run-records.ts";
import { rolloutSpans, runSpan, type Span } from "../../src/telemetry/spans.ts";

const hash = (text: string) => createHash("sha256").update(text).digest("hex");
const options = { hash, content: false };

const TRACE = {
  spec: {
    ...{ run_id: "run_1", scope: { orgId: "org_1", projectId: "pj_1" }, model: "m", created_at: 1000 },
    ...{ environment: { id: "exam", version: "1.0.0", digest: "d" }, sampling: { max_tokens: 64, temperature: 0.5 } },
  },
  rollouts: [],
  ended: null,
} as unknown as SegmentTrace;

const ENTRY = {
  ...{ id: "ro_1", group_index: 2, slot: 0, attempt: 1, outcome: "scored", reason: null, reward: 0.5 },
  ...{ stop_condition: "max_turns_reached", turns: 2, prompt_tokens: 10, completion_tokens: 4 },
  ...{ started_at: 2000, ended_at: 5000, judgements: null },
} as unknown as RolloutEntry;

const turn = (index: number, answered_at: number) => ({
  ...{ index, answered_at, latency_ms: 500, calls: 1, response_id: `r-${index}`, model: "m-2", finish_reason: "stop" },
  ...{ prompt: { keep: index * 2, append: [{ role: "user", content: `ask ${index}` }] } },
  completion: { role: "assistant", content: `say ${index}` },
  usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
});
const LEFT = {
  turns: [turn(0, 3000), turn(1, 4000)],
  failed_calls: [{ turn: 1, call: 1, at: 3200, failure: "provider", error: "ModelError", message: "no", status: 429 }],
} as unknown as Trajectory;

function attributes({ attributes: all }: Span): Record<string, unknown> {
  return Object.fromEntries(all.map(({ key, value }) => [key, Object.values(value)[0]]));
}

test("each turn is a call of a model below its rollout, from when it was sent to its answer", () => {
  const [rollout, first, second] = rolloutSpans(TRACE, ENTRY, LEFT, options);
  expect(rollout).toMatchObject({ name: "invoke_agent exam", kind: 1, startTimeUnixNano: "2000000000" });
  expect(first).toMatchObject({
    ...{ name: "chat m", kind: 3, parentSpanId: rollout?.spanId, traceId: rollout?.traceId },
    ...{ startTimeUnixNano: "2500000000", endTimeUnixNano: "3000000000" },
  });
  expect(second && attributes(second)).toMatchObject({
    ...{ "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.response.model": "m-2" },
    ...{ "gen_ai.usage.input_tokens": "5", "gen_ai.usage.output_tokens": "2", "rollcall.turn": "1" },
    ...{ "gen_ai.request.max_tokens": "64", "gen_ai.request.temperature": 0.5 },
  });
});

test("the prompt of a turn that continues an earlier one is the whole conversation", () => {
  const aside = { ...turn(1, 4000), prompt: { keep: 0, append: [{ role: "user", content: "aside" }] } };
  const back = { ...turn(2, 5000), prompt: { after: 0, keep: 2, append: [{ role: "user", content: "back" }] } };
  const left = { turns: [turn(0, 3000), aside, back], failed_calls: [] } as unknown as Trajectory;
  const prompts = rolloutSpans(TRACE, ENTRY, left, { hash, content: true }).slice(1);
  const contents = prompts.map((span) =>
    JSON.parse(String(attributes(span)["gen_ai.input.messages"])).map(({ content }: { content: string }) => content),
  );
  expect(contents).toEqual([["ask 0"], ["aside"], ["ask 0", "say 0", "back"]]);
});

test("a failed call is a span of its own, with the status as its error type", () => {
  const spans = rolloutSpans(TRACE, ENTRY, LEFT, options);
  const failed = spans.at(-1);
  expect(failed).toMatchObject({ status: { code: 2, message: "429" }, startTimeUnixNano: "3200000000" });
  expect(failed && attributes(failed)).toMatchObject({ "error.type": "429", "http.response.status_code": "429" });
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(4);
});

test("a failed rollout shows how it failed, even without a trajectory", () => {
  const entry = { ...ENTRY, outcome: "failed", reason: "timeout" } as RolloutEntry;
  const [rollout, ...others] = rolloutSpans(TRACE, entry, null, options);
  expect(others).toEqual([]);
  expect(rollout?.status).toEqual({ code: 2, message: "timeout" });
  expect(rollout && attributes(rollout)["error.type"]).toBe("timeout");
});

test("each judge's call has a span, and a cached judgement has none", () => {
  const asked = { judge: "grader", model: "j", key: "k", calls: 2, error: null, cached: false };
  const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };
  const judgements = JSON.stringify([
    { ...asked, usage, pass: 0 },
    { ...asked, usage, pass: 1, error: "no verdict" },
    { ...asked, usage, pass: 2, cached: true },
  ]);
  const spans = rolloutSpans(TRACE, { ...ENTRY, judgements }, null, options).slice(1);
  expect(spans.map(({ name }) => name)).toEqual(["chat j", "chat j"]);
  expect(spans.map(({ status }) => status?.code)).toEqual([undefined, 2]);
  expect(spans[0] && attributes(spans[0])).toMatchObject({
    "rollcall.judge": "grader",
    "gen_ai.usage.input_tokens": "3",
  });
});

test("the run has a span once it has ended, with the error that ended it", () => {
  expect(runSpan(TRACE, options)).toBeNull();
  const ended = { at: 9000, status: "failed", error: "endpoint_unauthorized" };
  const span = runSpan({ ...TRACE, ended }, options);
  expect(span).toMatchObject({ name: "run exam", startTimeUnixNano: "1000000000", endTimeUnixNano: "9000000000" });
  expect(span?.status?.message).toBe("endpoint_unauthorized");
  expect(span?.parentSpanId).toBeUndefined();
});

test("the whole prompt of a turn is included if content is on, and nothing of it otherwise", () => {
  const [, , told] = rolloutSpans(TRACE, ENTRY, LEFT, { hash, content: true });
  const texts = ["ask 0", "say 0", "ask 1"].map((content) => expect.objectContaining({ content }));
  expect(JSON.parse(String(told && attributes(told)["gen_ai.input.messages"]))).toEqual(texts);
  expect(JSON.stringify(rolloutSpans(TRACE, ENTRY, LEFT, options))).not.toMatch(/ask \d|say \d/);
});
