import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { RunCounts } from "../../../src/contract/run.ts";
import { trajectoryKey } from "../../../src/kernel/kit/names.ts";
import { unpackTokens } from "../../core/rollout/unpacked-tokens.ts";
import { segmentLines } from "../hand-made.ts";
import { expectLaw, openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const refused = { fault: { kind: "status", status: 404 } } as const;

/** `padding`: characters that make every trajectory longer. */
function mixedRun(count: number, failures: number, padding = 0) {
  const words = Array.from({ length: failures }, () => "hard");
  return platform.finish({
    environment: "gsm8k",
    dataset: questions(count, words).map(({ question, answer }) => ({
      question: question.padEnd(padding, "."),
      answer,
    })),
    model: script(RIGHT, { hard: [refused] }),
    min_scored: 0,
  });
}

function singles(runId: string): Promise<R2Objects> {
  const prefix = trajectoryKey(platform.scope, runId, "").replace(/\.json$/, "");
  return env.STORE.list({ prefix });
}

test("results come in pages until all are read, each rollout once, and an outcome filters them", async () => {
  const run = await mixedRun(11, 3);
  const pages = await platform.pages(run.id, "limit=4");
  expect(pages.map((page) => page.length)).toEqual([4, 4, 3]);
  const rows = pages.flat();
  expect(new Set(rows.map(({ rollout_id }) => rollout_id)).size).toBe(11);
  expect(await platform.results(run.id)).toEqual(rows);
  const failed = await platform.pages(run.id, "outcome=failed&limit=2");
  expect(failed.flat()).toEqual(rows.filter(({ outcome }) => outcome === "failed"));
  expect(failed.flat().length).toBe(3);
  expect(await platform.results(run.id, "outcome=cancelled")).toEqual([]);
});

test("a page of results has a bounded number of trajectory bytes, but at least one rollout", async () => {
  const run = await mixedRun(6, 0);
  const third = Math.floor(LIMITS.pageBytes / 3);
  const sizes = [third, third, third, third, 4 * third, third];
  await platform.inRun(run.id, (_, { storage }) => {
    for (const [at, bytes] of sizes.entries()) {
      storage.sql.exec("update rollouts set bytes = ? where finish_seq = ?", bytes, at + 1);
    }
  });
  const pages = await platform.pages(run.id);
  expect(pages.map((page) => page.length)).toEqual([3, 1, 1, 1]);
});

test.for([
  ["that travelled with their reports", 0],
  ["too long for that", 40_000],
] as const)(
  "trajectories %s read the same before and after compaction, which leaves none outside a segment",
  async ([, padding]) => {
    const run = await mixedRun(6, 2, padding);
    const before = await platform.results(run.id);
    const ids = before.map(({ rollout_id }) => rollout_id);
    const rolloutsBefore = await Promise.all(ids.map(platform.rollout));
    expect((await segmentLines(platform, run.id)).length).toBe(6);
    expect((await singles(run.id)).objects).toEqual([]);
    expect(await platform.results(run.id)).toEqual(before);
    expect((await platform.pages(run.id, "limit=4")).flat()).toEqual(before);
    expect(await Promise.all(ids.map(platform.rollout))).toEqual(rolloutsBefore);
    // A second delivery of the segment message finds the work done.
    expect((await segmentLines(platform, run.id)).length).toBe(6);
  },
);

test("a long run is compacted a hundred rollouts at a time, and every row is read across segments", async () => {
  const run = await mixedRun(101, 0);
  const rows = await platform.results(run.id, "limit=60");
  expect(new Set(rows.map(({ rollout_id }) => rollout_id)).size).toBe(101);
  expect((await segmentLines(platform, run.id)).length).toBe(100);
  expect(await platform.results(run.id, "limit=60")).toEqual(rows);
});

test("while a run is active its results are the ended rollouts, and an unfinished rollout can be read", async () => {
  const hang = { fault: { kind: "hang" } } as const;
  const guess = { tool_calls: [{ name: "guess", arguments: { number: 0 } }] };
  const model = script([guess, hang]);
  const run = await platform.start({ environment: "guess-number", num_examples: 1, model });
  await requestsOf(model, 2);
  expect(await platform.results(run.id)).toEqual([]);
  const { counts } = await platform.run(run.id);
  expect(counts.in_flight).toBe(1);
  const id = (await requestsOf(model))[0]?.idempotency_key.split(":")[0] ?? "";
  const rollout = await platform.rollout(id);
  expect(rollout).toMatchObject({ status: "running", outcome: null, state: { guesses: 1 } });
  expect(rollout.turns.length).toBe(1);
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  await platform.ended(run.id);
});

test("events continue after any id with none missing and none twice, the terminal one last", async () => {
  const request = { environment: "gsm8k", dataset: questions(8), model: script(RIGHT) };
  const run = await platform.start({ ...request, max_concurrent: 3 });
  const live = await platform.events(run.id);
  expect(live.map(({ id }) => id)).toEqual(live.map((_, index) => index + 1));
  expect(live.at(-1)?.event).toBe("run.completed");
  const finished = live.filter(({ event }) => event === "rollout.finished");
  expect(new Set(finished.map(({ data }) => data["rollout_id"])).size).toBe(8);
  for (const { event, data } of live) {
    if (event === "run.progress") expectLaw(RunCounts.parse(data["counts"]));
  }
  for (const after of [1, 4, live.length - 1]) {
    expect(await platform.events(run.id, after)).toEqual(live.slice(after));
  }
  const ask = await platform.ask(`/v1/runs/${run.id}/events`, {
    headers: { "last-event-id": String(live.length) },
  });
  expect(ask.status).toBe(204);
});

test("a run that is read while active has the id of its last event, and its stream continues there: no event twice, none lost", async () => {
  const model = script(RIGHT, { last: [{ fault: { kind: "hang" } }] });
  const dataset = questions(6, ["last"]);
  const run = await platform.start({ environment: "gsm8k", dataset, model, max_concurrent: 2 });
  for (let after = 0; (await platform.run(run.id)).counts.scored < 5; ) {
    const read = await platform.inRun(run.id, (object) => object.events(after, 1000));
    after = read?.events.at(-1)?.id ?? after;
  }
  const { last_event = 0, counts } = await platform.run(run.id);
  const before = await platform.inRun(run.id, (object) => object.events(0, 0));
  expect(before?.events.filter(({ id, event }) => id <= last_event && event === "rollout.finished").length).toBe(5);
  const atOnce = await platform.inRun(run.id, (object) => object.events(last_event, 0));
  expect(atOnce?.events).toEqual([]);
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  const told = await platform.events(run.id, last_event);
  expect(told[0]?.id).toBe(last_event + 1);
  const finished = told.filter(({ event }) => event === "rollout.finished").length;
  const ended = await platform.run(run.id);
  expect(finished).toBe(counts.in_flight);
  expect([ended.last_event, told.at(-1)?.event]).toEqual([told.at(-1)?.id, "run.cancelled"]);
});

test("two readers of one run see the same events", async () => {
  const request = { environment: "gsm8k", dataset: questions(5), model: script(RIGHT) };
  const run = await platform.start({ ...request, max_concurrent: 2 });
  const [one, two] = await Promise.all([platform.events(run.id), platform.events(run.id)]);
  expect(one).toEqual(two);
});

test("token ids, logprobs and the weight version of every turn reach the stored trajectory, packed", async () => {
  const add = { name: "add", arguments: { a: 1, b: 2 } };
  const first = { prompt_token_ids: [1, 2, 3], token_ids: [4, 5], logprobs: [-0.5, -0.25] };
  const second = { prompt_token_ids: [1, 2, 3, 4, 5, 6], token_ids: [7], logprobs: [-1] };
  const model = script([
    { ...first, tool_calls: [add], extra: { weight_version: "v1" } },
    { ...second, content: "3", extra: { weight_version: "v2" } },
  ]);
  const run = await platform.finish({ environment: "calculator", model, num_examples: 1 });
  const [line] = await segmentLines(platform, run.id);
  const turns = line?.trajectory?.turns ?? [];
  expect(turns.map(({ policy_version }) => policy_version)).toEqual(["v1", "v2"]);
  expect(turns[1]?.tokens).toMatchObject({ forked: false, prompt_length: 6, completion_length: 1 });
  expect(unpackTokens(turns)).toEqual([
    { prompt_ids: [1, 2, 3], completion_ids: [4, 5], logprobs: [-0.5, -0.25] },
    { prompt_ids: [1, 2, 3, 4, 5, 6], completion_ids: [7], logprobs: [-1] },
  ]);
});

test("a run and its environment have the best possible reward that the environment declares, and no other", async () => {
  const run = await platform.finish({ environment: "calculator", model: script(["7"]), num_examples: 1 });
  const view = async (path: string) => (await platform.ask(path)).json<object>();
  expect(await view(`/v1/runs/${run.id}`)).toMatchObject({ environment: { id: "calculator" }, max_reward: 1.1 });
  expect(await view("/v1/environments/calculator")).toMatchObject({ max_reward: 1.1 });
  expect(await view("/v1/environments/gsm8k")).not.toHaveProperty("max_reward");
});
