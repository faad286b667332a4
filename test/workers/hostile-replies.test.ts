/** Replies of an endpoint that no reader should take whole: each ends its call, and its rollout ends. */
import { beforeAll, expect, test } from "vitest";
import { LIMITS } from "../../src/core/limits.ts";
import type { Fault } from "../fakes/scripted-model.ts";
import { type Door, expectLaw, openPlatform, rolloutAt } from "./platform.ts";
import { questions } from "./rows.ts";
import { script } from "./script.ts";

let platform: Door;
beforeAll(async () => {
  platform = await openPlatform();
});

const MIB = 1024 * 1024;

/** One rollout whose every call meets this. */
async function meeting(fault: Fault, limits: object = { max_retries: 0 }) {
  const model = script([{ fault }]);
  const one = { environment: "gsm8k", dataset: questions(1) };
  const run = await platform.finish({ ...one, model, limits, min_scored: 0 });
  expectLaw(run.counts);
  return { run, rollout: await platform.rollout(rolloutAt(run.id)) };
}

test("an error body of 5 MB ends its rollout as the provider's failure, with the beginning of what it said", async () => {
  const { run, rollout } = await meeting({ kind: "long_error", status: 400, characters: 5 * MIB });
  expect(run.counts.failed).toEqual({ provider: 1 });
  const { message = "", error_chain_repr = "" } = rollout.error ?? {};
  expect(message).toMatch(/^400 the engine says: eeee/);
  expect(message).toMatch(/… \[cut\]$/);
  expect(message.length).toBeLessThanOrEqual(LIMITS.errorCharacters);
  expect(error_chain_repr.length).toBeLessThanOrEqual(LIMITS.errorCharacters);
});
