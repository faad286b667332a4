/** Replies of an endpoint that must not be read whole: each ends its call, and its rollout ends. */
import { beforeAll, expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Fault } from "../../fakes/scripted-model.ts";
import { expectLaw, openPlatform, rolloutAt, type TestApi } from "../platform.ts";
import { questions } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const MIB = 1024 * 1024;

/** One rollout whose every call meets this fault. */
async function meeting(fault: Fault, limits: object = { max_retries: 0 }) {
  const model = script([{ fault }]);
  const one = { environment: "gsm8k", dataset: questions(1) };
  const run = await platform.finish({ ...one, model, limits, min_scored: 0 });
  expectLaw(run.counts);
  return { run, rollout: await platform.rollout(rolloutAt(run.id)) };
}

test("an error body of 5 MB ends its rollout as the provider's failure, with the beginning of its text", async () => {
  const { run, rollout } = await meeting({ kind: "long_error", status: 400, characters: 5 * MIB });
  expect(run.counts.failed).toEqual({ provider: 1 });
  const { message = "", error_chain_repr = "" } = rollout.error ?? {};
  expect(message).toMatch(/^400 .*the engine says: eeee/);
  expect(message).toMatch(/… \[cut\]$/);
  expect(message.length).toBeLessThanOrEqual(LIMITS.errorCharacters);
  expect(error_chain_repr.length).toBeLessThanOrEqual(LIMITS.errorCharacters);
});

const TOO_LONG = /^the reply is more than 4194304 bytes$/;

test("an endless body is read to its limit and aborted: an unusable reply, within the budget of retries", async () => {
  const { run, rollout } = await meeting({ kind: "endless" }, { max_retries: 1 });
  expect(run.counts.failed).toEqual({ provider: 1 });
  const unusable = { error: "InvalidModelResponseError", message: expect.stringMatching(TOO_LONG) };
  expect(rollout.failed_calls).toMatchObject([unusable, unusable]);
});

test("a compressed body is counted by its inflated size, and inflated only to its limit", async () => {
  const { run, rollout } = await meeting({ kind: "bomb", bytes: 300 * MIB });
  expect(run.counts.failed).toEqual({ provider: 1 });
  expect(rollout.error?.message).toMatch(TOO_LONG);
});

test("of a refusal only as much is read as is needed to classify it", async () => {
  const { run, rollout } = await meeting({ kind: "endless", status: 503 });
  expect(run.counts.failed).toEqual({ provider: 1 });
  expect(rollout.failed_calls).toMatchObject([{ status: 503 }]);
  expect(rollout.error?.message).toMatch(/^503 \{"id": "aaaa.*… \[cut\]$/);
});

test("a body that arrives byte by byte for ever ends with the time of its call", async () => {
  const limits = { max_retries: 0, call_timeout_s: 1 };
  const { run, rollout } = await meeting({ kind: "drip", everyMs: 20 }, limits);
  expect(run.counts.failed).toEqual({ timeout: 1 });
  expect(rollout.error?.message).toBe("the model did not answer within 1 s");
});
