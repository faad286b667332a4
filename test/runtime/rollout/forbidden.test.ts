/** One prompt that is forbidden is not a refused key; three of them, and none answered, are. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { Fault } from "../../fakes/scripted-model.ts";
import { type Door, expectLaw, openPlatform, requestsOf, rolloutAt } from "../platform.ts";
import { RIGHT } from "../rows.ts";
import { questionScript, script } from "../script.ts";

let platform: Door;
beforeAll(async () => {
  platform = await openPlatform();
});

const forbids = (error: object): Fault => ({ kind: "status", status: 403, body: { error } });
const PLAIN = forbids({ message: "you may not do this" });
const FLAGGED = forbids({ message: "the input was flagged", metadata: { reasons: ["violence"] } });

/** A row each: its question is forbidden in this way, or answered. */
function rows(faults: readonly (Fault | null)[]) {
  return faults.map((fault, at) => ({
    question: fault === null ? `What is 2 + 2? (${at})` : questionScript([{ fault, reply: `${at}` }]),
    answer: "#### 4",
  }));
}

async function play(faults: readonly (Fault | null)[], more: object = {}) {
  const model = script(RIGHT);
  const request = { environment: "gsm8k", dataset: rows(faults), model, max_concurrent: 1, min_scored: 0, ...more };
  const run = await platform.finish(request);
  expectLaw(run.counts);
  return { run, model };
}

test("prompts that moderation forbids fail alone, in the server's words, however many there are", async () => {
  const { run } = await play([FLAGGED, FLAGGED, FLAGGED, FLAGGED, null]);
  expect(run).toMatchObject({ status: "completed", counts: { scored: 1, failed: { provider: 4 } } });
  const rollout = await platform.rollout(rolloutAt(run.id, 0));
  expect(rollout).toMatchObject({ outcome: "failed", reason: "provider", reward: null });
  expect(rollout.error?.message).toContain("the input was flagged");
  expect(rollout.failed_calls).toMatchObject([{ status: 403 }]);
});

test("a page of a firewall fails its rollout alone", async () => {
  const page: Fault = { kind: "garbage", status: 403, text: "<!DOCTYPE html><html><title>Blocked</title></html>" };
  const { run } = await play([page, page, page, page]);
  expect(run).toMatchObject({ status: "completed", counts: { failed: { provider: 4 } } });
});

test("three different prompts that are forbidden, and none answered, end the run", async () => {
  const { run, model } = await play(Array.from({ length: 8 }, () => PLAIN));
  expect(run).toMatchObject({ status: "failed", error: { code: "endpoint_unauthorized" } });
  expect(run.error?.message).toContain("you may not do this");
  expect(run.counts).toMatchObject({ failed: { provider: 3 }, pending: 5 });
  expect(await requestsOf(model)).toHaveLength(3);
});

test("once a prompt was answered, others that are forbidden fail alone", async () => {
  const { run } = await play([PLAIN, PLAIN, null, PLAIN, PLAIN, PLAIN, PLAIN]);
  expect(run).toMatchObject({ status: "completed", counts: { scored: 1, failed: { provider: 6 } } });
});

test("one prompt that is forbidden in each of its rollouts is one prompt", async () => {
  const { run } = await play([PLAIN, PLAIN], { rollouts_per_example: 3 });
  expect(run).toMatchObject({ status: "completed", counts: { failed: { provider: 6 } } });
});

test("after a retry, prompts that were forbidden before count no more", async () => {
  const { run } = await play(Array.from({ length: 6 }, () => PLAIN));
  expect(run.counts).toMatchObject({ failed: { provider: 3 }, pending: 3 });
  const reply = await platform.post(`/v1/runs/${run.id}/retry`, {});
  expect(reply.status).toBe(200);
  const again = await platform.ended(run.id);
  expect(again).toMatchObject({ status: "failed", error: { code: "endpoint_unauthorized" } });
  // Three more, not one.
  expect(again.counts.failed["provider"]).toBe(6);
});

test("a judge that forbids three different questions ends the run; one that flags some does not", async () => {
  const dataset = Array.from({ length: 6 }, (_, at) => ({ question: `Capital ${at}?`, answer: "Oslo" }));
  const judgedBy = (fault: Fault) => ({
    ...{ environment: "judged-qa", dataset, model: script(["Oslo"]), max_concurrent: 1, min_scored: 0 },
    judges: { default: { endpoint: { base_url: env.MODEL_URL }, model: script([{ fault }]) } },
    limits: { max_retries: 0 },
  });
  const forbidden = await platform.finish(judgedBy(PLAIN));
  expect(forbidden).toMatchObject({ status: "failed", error: { code: "endpoint_unauthorized" } });
  expect(forbidden.error?.message).toContain("the judge default");
  const flagged = await platform.finish(judgedBy(FLAGGED));
  expect(flagged).toMatchObject({ status: "completed", counts: { unscored: { judge: 6 } } });
});
