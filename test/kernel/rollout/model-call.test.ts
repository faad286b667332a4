/** How model calls change a rollout: answers, faults, refusals, deadlines, a death and a cancel. */
import { abortAllDurableObjects } from "cloudflare:test";
import { beforeAll, expect, test } from "vitest";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { down, GUESSES, questions } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const one = { environment: "gsm8k", dataset: questions(1) };
const guess = { environment: "guess-number", environment_args: { max: 3 }, seed: 5 };
const HANGS = { kind: "hang" } as const;
/** A call that is given up takes its full time. */
const PATIENCE = 30_000;

async function keysOf(model: string): Promise<string[]> {
  return (await requestsOf(model)).map(({ idempotency_key }) => idempotency_key);
}

test("many rollouts of many turns end scored, each turn sampled once", async () => {
  const model = script(GUESSES);
  const run = await platform.finish({ ...guess, model, num_examples: 10 });
  expect(run).toMatchObject({ status: "completed", counts: { scored: 10 } });
  expect(run.report.calls).toBe(run.report.turns);
  const keys = await keysOf(model);
  expect([keys.length, new Set(keys).size]).toEqual([run.report.turns, run.report.turns]);
});

test("a temporary fault is noted and retried under the same key; a permanent one fails its rollout", async () => {
  const passing = script([{ fault: down, times: 1, reply: "\\boxed{4}" }]);
  const staying = script([{ fault: down }]);
  const [mended, failed] = await Promise.all([
    platform.finish({ ...one, model: passing }),
    platform.finish({ ...one, model: staying, limits: { max_retries: 1 } }),
  ]);
  expect(mended).toMatchObject({ counts: { scored: 1 }, report: { calls: 2 } });
  const { failed_calls } = await platform.rollout(rolloutAt(mended.id));
  expect(failed_calls).toMatchObject([{ call: 1, reason: "provider", status: 500 }]);
  const key = `${rolloutAt(mended.id)}:0`;
  expect(await keysOf(passing)).toEqual([key, key]);
  expect(failed.counts.failed).toEqual({ provider: 1 });
  expect((await keysOf(staying)).length).toBe(2);
});

test("an endpoint that refuses the key fails the run, and a context overflow is scored", async () => {
  const refusal = script([{ fault: { kind: "status", status: 401 } }]);
  const body = { error: { message: "prompt is too long", param: null, code: 400 } };
  const overflow = script([{ fault: { kind: "status", status: 400, body } }]);
  const [refused, overflown] = await Promise.all([
    platform.finish({ ...one, model: refusal }),
    platform.finish({ ...one, model: overflow }),
  ]);
  expect(refused).toMatchObject({ status: "failed", error: { code: "endpoint_unauthorized" } });
  expect(overflown).toMatchObject({ counts: { scored: 1 }, report: { calls: 1 } });
  expect(await platform.results(overflown.id)).toMatchObject([
    { stop_condition: "prompt_too_long", is_truncated: true },
  ]);
});

test(
  "a call past its time is retried and finally fails as a timeout; past the rollout's own time the rollout is scored",
  async () => {
    const limits = { call_timeout_s: 1.5, max_retries: 1 };
    const model = script([{ fault: HANGS }]);
    const [late, whole] = await Promise.all([
      platform.finish({ ...one, model, limits }),
      platform.finish({ ...one, model: `${model} `, limits: { rollout_timeout_s: 1.5 } }),
    ]);
    expect(late).toMatchObject({ counts: { failed: { timeout: 1 } }, report: { calls: 2 } });
    expect(whole).toMatchObject({ counts: { scored: 1, failed: {} } });
    expect(await platform.results(whole.id)).toMatchObject([{ stop_condition: "timeout_reached" }]);
  },
  PATIENCE,
);

test(
  "an object that dies while its call is in flight continues, and samples no answered turn again",
  async () => {
    const [first = "", ...rest] = GUESSES;
    const second = rest[0];
    if (typeof second !== "object" || "fault" in second) throw new Error("not a reply");
    const turns = [first, { fault: HANGS, times: 1, reply: second }, ...rest.slice(1)];
    const model = script(turns);
    const limits = { call_timeout_s: 3 };
    const run = await platform.start({ ...guess, model, num_examples: 1, limits });
    await requestsOf(model, 2);
    await abortAllDurableObjects();
    const ended = await platform.ended(run.id);
    expect(ended).toMatchObject({ status: "completed", counts: { scored: 1, failed: {} } });
    const keys = await keysOf(model);
    const again = keys.filter((key, at) => keys.indexOf(key) < at);
    expect(again).toEqual([`${rolloutAt(run.id)}:1`]);
  },
  PATIENCE,
);

test("a cancelled run ends at once, even if its model never answers", async () => {
  const model = script([{ fault: HANGS }]);
  const run = await platform.start({ ...one, model });
  await requestsOf(model, 1);
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  expect((await platform.ended(run.id)).counts.cancelled).toEqual({ user: 1 });
  expect((await keysOf(model)).length).toBe(1);
});
