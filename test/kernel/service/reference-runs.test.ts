/**
 * Cases of verifiers' tests that need whole runs, under their names there: what a retry repeats, what a limit counts.
 */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { RunView } from "../../../src/contract/run.ts";
import { rolloutId } from "../../../src/core/ids.ts";
import { idMac } from "../../../src/kernel/kit/secrets.ts";
import { registerMarking } from "../marking.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { down, questions } from "../rows.ts";
import { script, type Turns } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
  registerMarking();
});

/** Its headers come at once, and its body never ends. */
const HANGS: Turns = [{ fault: { kind: "drip", everyMs: 20 } }];

function guess(number: number) {
  return { tool_calls: [{ name: "guess", arguments: { number } }] };
}

async function cancelled(run: RunView): Promise<void> {
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  await platform.ended(run.id);
}

test("R-retry-1, R-gen-7: after its last try a rollout is returned with its error, unscored and counted", async () => {
  const always = script([{ fault: down }]);
  const once = script([{ fault: down, times: 1, reply: "\\boxed{4}" }]);
  const request = { environment: "gsm8k", dataset: questions(1), limits: { max_retries: 1 } };
  const [failed, saved] = await Promise.all([
    platform.finish({ ...request, model: always }),
    platform.finish({ ...request, model: once }),
  ]);
  expect((await requestsOf(always)).length).toBe(2);
  expect(failed.report.reward).toMatchObject({ mean: null, n_rollouts: 0, n_error: 1 });
  expect(await platform.rollout(rolloutAt(failed.id))).toMatchObject({
    ...{ outcome: "failed", reward: null, scores: [], stop_condition: "has_error" },
    error: { error: "ModelError" },
  });
  expect((await requestsOf(once)).length).toBe(2);
  expect(saved.counts).toMatchObject({ scored: 1, failed: {} });
});

test("R-retry-3: a rollout that failed in its second turn starts again with its first", async () => {
  const refused = { kind: "status", status: 404 } as const;
  const model = script([guess(1), { fault: refused, attempts: 1, reply: guess(2) }]);
  const args = { max: 1000, max_turns: 2 };
  const game = { environment: "guess-number", environment_args: args, num_examples: 1, model };
  const run = await platform.finish(game);
  expect(run.counts.failed).toEqual({ provider: 1 });
  await platform.post(`/v1/runs/${run.id}/retry`, {});
  expect((await platform.ended(run.id)).counts).toMatchObject({ scored: 1 });
  expect((await requestsOf(model)).length).toBe(4);
  const place = { group: 0, slot: 0, attempt: 1 };
  const again = await platform.rollout(rolloutId(run.id, place, idMac(env.ROLLCALL_SECRET)));
  expect(again.turns.length).toBe(2);
});

test("R-gen-4: the limit counts rollouts, even if whole groups are scored", async () => {
  const request = { environment: "ranked", rollouts_per_example: 4 };
  const dataset = Array.from({ length: 6 }, (_, index) => ({ question: `question ${index}` }));
  const [two, all] = [script(HANGS), script(HANGS)];
  const narrow = await platform.start({ ...request, dataset, model: two, max_concurrent: 2 });
  const wide = await platform.start({ ...request, dataset, model: all, max_concurrent: 24 });
  await Promise.all([requestsOf(two, 2), requestsOf(all, 24)]);
  expect((await platform.run(narrow.id)).counts).toMatchObject({ dispatched: 2, in_flight: 2 });
  expect((await platform.run(wide.id)).counts).toMatchObject({ dispatched: 24, in_flight: 24 });
  expect((await requestsOf(two)).length).toBe(2);
  await Promise.all([cancelled(narrow), cancelled(wide)]);
});
