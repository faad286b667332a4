/** Runs that score the trajectories of other runs: another rubric, and no call of the policy. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { RolloutSummaryList } from "../../../src/contract/rollout-list.ts";
import type { RunView } from "../../../src/contract/run.ts";
import { runFolder } from "../../../src/kernel/kit/names.ts";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";
import { readSources } from "../../../src/kernel/trajectory/carry-over.ts";
import { acceptedOnly, interposed, segmentLines } from "../hand-made.ts";
import { registerMarking } from "../marking.ts";
import { expectLaw, openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { registerTestEnvironments } from "../registered.ts";
import { GUESSES } from "../rows.ts";
import { script, type Turns } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
  registerMarking();
  registerTestEnvironments();
});

const REFUSED: Turns = [{ fault: { kind: "status", status: 404 } }];
const HANGS: Turns = [{ fault: { kind: "hang" } }];
/** Too large for a report: it is an object of its own in R2. */
const LARGE = "x".repeat(40_000);

function rescore(id: string, body: object, headers = {}): Promise<Response> {
  return platform.post(`/v1/runs/${id}/rescore`, body, headers);
}

async function rescored(id: string, body: object = {}, headers = {}): Promise<RunView> {
  const response = await rescore(id, body, headers);
  if (response.status !== 202) throw new Error(await response.text());
  return await platform.ended((await response.json<RunView>()).id);
}

function ask(words: readonly string[]) {
  return words.map((word, index) => ({ question: `${word} ${index}` }));
}

async function textsOf(id: string): Promise<(string | null)[]> {
  const list = RolloutSummaryList.parse(await (await platform.ask(`/v1/runs/${id}/rollouts?sort=group`)).json());
  return list.data.map(({ task_text }) => task_text);
}

async function holds(id: string): Promise<void> {
  const audit = await (await platform.ask(`/v1/runs/${id}/audit`)).json();
  expect(audit).toMatchObject({ holds: true, violations: [] });
}

test("every stored trajectory is scored by the other rubric, in a new run, and no model is called", async () => {
  const model = script(["3"], { one: ["1"] });
  const words = [...Array<string>(12).fill("plain"), "one", LARGE];
  const request = { environment: "marked", dataset: ask(words), model, rollouts_per_example: 2 };
  const run = await platform.finish({ ...request, min_scored: 0.5, metadata: { branch: "main" } });
  const before = (await requestsOf(model)).length;
  const made = await rescored(run.id, { environment: "doubled", name: "twice" });
  expectLaw(made.counts);
  expect(made).toMatchObject({
    ...{ status: "completed", name: "twice", rescored_from: run.id, forked_from: null, model },
    ...{ environment: { id: "doubled" }, metadata: { branch: "main" }, min_scored: 0.5 },
    counts: { planned: 28, scored: 28 },
    report: { turns: 0, calls: 0, usage: { total_tokens: 0 } },
  });
  expect(made.report.reward).toMatchObject({ mean: (2 * (12 * 3 + 1 + 3)) / 14, n_rollouts: 28 });
  expect((await requestsOf(model)).length).toBe(before);
  expect(await platform.run(run.id)).toEqual(run);
  await holds(made.id);
  const [source, copy] = await Promise.all([run, made].map(({ id }) => platform.rollout(rolloutAt(id, 13, 1))));
  expect(copy).toMatchObject({ reward: 6, rescored_from: source?.id, task_key: source?.task_key });
  expect(copy?.usage.total_tokens).toBe(0);
  expect(copy?.turns.map(({ completion }) => completion)).toEqual(source?.turns.map(({ completion }) => completion));
  const rows = await platform.results(made.id);
  expect(new Set(rows.map(({ rollout_id }) => rollout_id)).size).toBe(28);
});

test("rescored tasks have their task texts, even for a run from before these texts existed", async () => {
  const [short, long] = ["two", LARGE];
  const request = { environment: "marked", dataset: ask([short, long]), model: script(["3"]) };
  const run = await platform.finish(request);
  const known = ["two 0", `${"x".repeat(119)}…`];
  expect(await textsOf(run.id)).toEqual(known);
  await platform.inRun(run.id, (_, { storage }) => storage.sql.exec("update rollouts set task_text = null").toArray());
  expect(await textsOf(run.id)).toEqual([null, null]);
  expect(await textsOf((await rescored(run.id)).id)).toEqual(known);
});

test("whole groups are scored as one even if only the new rubric scores groups", async () => {
  const model = script(["5"], { first: ["2"] });
  const words = { environment: "marked", dataset: ask(["first", "second"]), model };
  const run = await platform.finish({ ...words, rollouts_per_example: 3 });
  const made = await rescored(run.id, { environment: "ranked" });
  expect(made.counts).toMatchObject({ scored: 6 });
  expect(made.report.metrics["members"]).toMatchObject({ mean: 3, n: 6 });
  await holds(made.id);
});

test("if the version that played a run is gone, the current code of its environment scores it", async () => {
  const model = script(["3"]);
  const run = await platform.finish({ environment: "marked", dataset: ask(["a", "b"]), model });
  // As a deployment with an earlier version would have left it.
  const earlier = "update runs set spec = json_set(spec, '$.environment.version', '0.9.0') where id = ?";
  await env.DB.prepare(earlier).bind(run.id).run();
  const made = await rescored(run.id);
  expect(made).toMatchObject({
    ...{ status: "completed", environment: { id: "marked", version: "1.0.0" } },
    ...{ rescored_from: run.id, counts: { scored: 2 } },
  });
  const named = await rescore(run.id, { environment: "marked@0.9.0" });
  expect([named.status, await named.json()]).toMatchObject([
    404,
    { error: { code: "not_found", param: "environment" } },
  ]);
  await env.DB.prepare("update runs set spec = json_set(spec, '$.environment.id', 'unheard-of') where id = ?")
    .bind(run.id)
    .run();
  expect((await rescore(run.id, {})).status).toBe(404);
});

test("every place is filled: what failed ends in the same way, and what never ran ends as its run ended", async () => {
  const model = script(["7"], { refused: REFUSED, silent: ["nothing"], hangs: HANGS });
  const dataset = ask(["plain", "refused", "silent", "hangs", "never"]);
  const run = await platform.start({ environment: "marked", dataset, model, max_concurrent: 1 });
  await requestsOf(model, 4);
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  await platform.ended(run.id);
  const made = await rescored(run.id);
  expectLaw(made.counts);
  expect(made.counts).toMatchObject({
    ...{ planned: 5, pending: 0, scored: 1, unscored: { scorer: 1 }, failed: { provider: 1 } },
    cancelled: { user: 2 },
  });
  const failed = await platform.rollout(rolloutAt(made.id, 1));
  expect(failed).toMatchObject({ outcome: "failed", reason: "provider", reward: null });
  expect(failed.error).toEqual((await platform.rollout(rolloutAt(run.id, 1))).error);
  await holds(made.id);
});

test("a trajectory that is moved into a segment during the lookup is found there", async () => {
  const run = await platform.finish({ environment: "marked", dataset: ask(["a"]), model: script(["7"]) });
  await segmentLines(platform, run.id);
  const pages: unknown[] = [];
  const RUN = interposed(env.RUN, "sources", async (call) => {
    const page = await call();
    pages.push(page);
    return pages.length === 1 ? { ...Object(page), segments: [] } : page;
  });
  const places = [{ group: 0, slot: 0, attempt: null }];
  const address = { scope: platform.scope, run_id: run.id };
  const [source] = await readSources({ ...env, RUN }, address, places, new Subrequests());
  expect(source?.trajectory?.rollout_id).toBe(rolloutAt(run.id));
  expect(pages).toHaveLength(2);
});

test("a trajectory that is missing in the store ends its rollout with that reason", async () => {
  const model = script(["7"]);
  const run = await platform.finish({ environment: "marked", dataset: ask(["a", "b"]), model });
  await segmentLines(platform, run.id);
  const { objects } = await env.STORE.list({ prefix: runFolder(platform.scope, run.id) });
  await env.STORE.delete(objects.map(({ key }) => key));
  const made = await rescored(run.id);
  expect(made).toMatchObject({ status: "failed", counts: { scored: 0, failed: { platform: 2 } } });
  const { error } = await platform.rollout(rolloutAt(made.id));
  expect(error?.message).toContain("was deleted from the store");
});

test("a rescoring run continues after its process dies, and every rollout ends once", async () => {
  const model = script(["4"]);
  const dataset = ask(Array<string>(30).fill("plain"));
  const run = await platform.finish({ environment: "marked", dataset, model });
  const response = await rescore(run.id, {});
  await abortAllDurableObjects();
  const ended = await platform.ended((await response.json<RunView>()).id);
  expectLaw(ended.counts);
  expect(ended.counts).toMatchObject({ planned: 30, scored: 30 });
  expect(await platform.results(ended.id)).toHaveLength(30);
});

test("a rescoring run whose creation was interrupted before its object existed starts with the next read", async () => {
  const run = await platform.finish({
    environment: "marked",
    dataset: ask(["a"]),
    model: script(["4"]),
  });
  const made = await rescored(run.id);
  const row = await acceptedOnly(platform, made.id);
  expect(await platform.ended(row.id)).toMatchObject({
    rescored_from: run.id,
    counts: { scored: 1 },
  });
});

test("its rollouts can be forked like any other, and it can be rescored itself", async () => {
  const run = await platform.finish({
    environment: "guess-number",
    environment_args: { max: 3 },
    model: script(GUESSES),
    num_examples: 1,
  });
  const made = await rescored(run.id);
  expect(made.environment_args).toEqual({ max: 3 });
  expect(made.report.reward.mean).toBe(run.report.reward.mean);
  const fork = await platform.post(`/v1/rollouts/${rolloutAt(made.id)}/fork`, { turn: 0 });
  const forked = await platform.ended((await fork.json<RunView>()).id);
  expect(forked).toMatchObject({ rescored_from: null, counts: { scored: 1 } });
  expect(forked.report.calls).toBeGreaterThan(0);
  expect(await rescored(forked.id)).toMatchObject({ forked_from: null, counts: { scored: 1 } });
});

test("what cannot be rescored is refused before anything is stored", async () => {
  const going = await platform.start({
    environment: "marked",
    dataset: ask(["a"]),
    model: script(HANGS),
  });
  const early = await rescore(going.id, {});
  expect(early.status).toBe(409);
  expect(await early.json()).toMatchObject({ error: { code: "conflict", param: "id" } });
  await platform.post(`/v1/runs/${going.id}/cancel`, {});
  await platform.ended(going.id);
  const refusals = [
    { body: { environment: "nobody" }, status: 404, param: "environment" },
    { body: { environment_args: { max: 1 } }, status: 400, param: "environment_args.max" },
    { body: { rubric: "x" }, status: 400, param: "rubric" },
    { body: { environment: "judged" }, status: 400, param: "judges.default" },
  ];
  for (const { body, status, param } of refusals) {
    const refused = await rescore(going.id, body);
    expect(refused.status).toBe(status);
    expect(await refused.json()).toMatchObject({ error: { param } });
  }
  expect((await rescore("run_nobody", {})).status).toBe(404);
});

test("the judges of a run rescore it, inline ones too, unless they are gone or others are named", async () => {
  const judge = script(['{"reason": "", "verdict": "yes"}']);
  const made = { name: "passing", base_url: env.MODEL_URL, probe: false };
  expect((await platform.post("/v1/endpoints", made)).status).toBe(201);
  const run = (endpoint: string | { base_url: string }) =>
    platform.finish({
      environment: "judged",
      dataset: ask(["a"]),
      model: script(["1"]),
      judges: { default: { endpoint, model: judge } },
    });
  const [inline, named] = [await run({ base_url: env.MODEL_URL }), await run("passing")];
  expect(await rescored(inline.id)).toMatchObject({ status: "completed", counts: { scored: 1 } });
  expect((await platform.ask("/v1/endpoints/passing", { method: "DELETE" })).status).toBe(200);
  const refused = await rescore(named.id, {});
  expect(refused.status).toBe(409);
  expect(await refused.json()).toMatchObject({ error: { param: "judges.default" } });
  const other = { endpoint: { base_url: env.MODEL_URL }, model: judge };
  expect(await rescored(named.id, { judges: { default: other } })).toMatchObject({
    judges: { default: { model: judge } },
  });
});

test("a group that is scored as one has at most 400 members, because each may need a read", async () => {
  const request = { environment: "ranked", model: "m", dataset: ask(["a"]) };
  const endpoint = { base_url: env.MODEL_URL };
  const large = await platform.post("/v1/runs", {
    ...request,
    endpoint,
    rollouts_per_example: 401,
  });
  expect(large.status).toBe(413);
  expect(await large.json()).toMatchObject({ error: { param: "rollouts_per_example" } });
});

test("the same key rescores once; with another body, or for another run, it is refused", async () => {
  const request = { environment: "marked", dataset: ask(["a"]), model: script(["1"]) };
  const [run, other] = [await platform.finish(request), await platform.finish(request)];
  const key = { "idempotency-key": `rescore-${run.id}` };
  const once = await rescored(run.id, {}, key);
  const again = await rescore(run.id, {}, key);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(await again.json()).toMatchObject({ id: once.id });
  expect((await rescore(run.id, { name: "x" }, key)).status).toBe(422);
  expect((await rescore(other.id, {}, key)).status).toBe(422);
});
