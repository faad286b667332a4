/** Reviews of rollouts, from the request to the agreement of their run. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type * as z from "zod";
import { AgreementSummaryList, RunAgreement } from "../../src/contract/agreement.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { ReviewList, ReviewView } from "../../src/reviews/wire.ts";
import { admit } from "../accounts/admit.ts";
import { done, remove } from "../kernel/deleting.ts";
import { openPlatform, rolloutAt, type TestApi } from "../kernel/platform.ts";
import { questions } from "../kernel/rows.ts";
import { script } from "../kernel/script.ts";

const judged = (verdict: string) => JSON.stringify({ reason: "it is", verdict });

let api: TestApi;
let run: string;
beforeAll(async () => {
  api = await openPlatform();
  run = await judgedRun(api);
});

/** Four rollouts: the judge finds the first two right, and the others wrong. */
async function judgedRun(platform: TestApi): Promise<string> {
  const words = ["apples", "apples", "pears", "pears"];
  const verdicts = { apples: [judged("right")], pears: [judged("wrong")] };
  const judge = { model: script([judged("partial")], verdicts), endpoint: { base_url: env.MODEL_URL } };
  const dataset = questions(4, words);
  const model = script(["four"]);
  return (await platform.finish({ environment: "judged-qa", dataset, model, judges: { default: judge } })).id;
}

interface Reply {
  readonly status: number;
  readonly text: string;
}

async function put(rollout: string, review: unknown, key?: string): Promise<Reply> {
  const reply = await api.ask(`/v1/rollouts/${rollout}/review`, {
    method: "PUT",
    headers: { "content-type": "application/json", ...(key !== undefined && { authorization: `Bearer ${key}` }) },
    body: JSON.stringify(review),
  });
  return { status: reply.status, text: await reply.text() };
}

async function listOf(path: string): Promise<z.infer<typeof ReviewList>> {
  return ReviewList.parse(await (await api.ask(path)).json());
}
async function agreementOf(id: string): Promise<RunAgreement> {
  return RunAgreement.parse(await (await api.ask(`/v1/runs/${id}/agreement`)).json());
}

test("a review stands beside its rollout with the rollout's own values, and the rollout stays as it is", async () => {
  const rollout = rolloutAt(run, 0);
  const before = await api.rollout(rollout);
  const asked = { mark: "bad", note: "No unit.", scores: { correct: 0 }, judges: { default: "wrong" }, why: "unit" };
  const { status, text } = await put(rollout, asked);
  expect(status, text).toBe(200);
  const review = ReviewView.parse(JSON.parse(text));
  expect(review).toMatchObject({ rollout_id: rollout, run_id: run, mark: "bad", note: "No unit.", why: "unit" });
  expect(review.created_by).toMatch(/^key_/);
  expect(review.values).toEqual([
    { of: "score", name: "correct", value: 0, given: 1 },
    { of: "judge", name: "default", value: "wrong", given: "right" },
  ]);
  expect(await api.rollout(rollout)).toEqual(before);
  expect((await listOf(`/v1/rollouts/${rollout}/reviews`)).data).toEqual([review]);
});

test("a second review by the same caller replaces the first, and another caller has one of its own", async () => {
  const rollout = rolloutAt(run, 1);
  const other = await admit(api.scope);
  const first = ReviewView.parse(JSON.parse((await put(rollout, { mark: "bad", note: "Why?" })).text));
  const second = ReviewView.parse(JSON.parse((await put(rollout, { mark: "good" })).text));
  expect(second).toMatchObject({ id: first.id, mark: "good", note: null });
  await put(rollout, { mark: "unsure" }, other);
  expect((await listOf(`/v1/rollouts/${rollout}/reviews?order=asc`)).data.map(({ mark }) => mark)).toEqual([
    "good",
    "unsure",
  ]);
  const gone = await api.ask(`/v1/rollouts/${rollout}/review`, { method: "DELETE" });
  expect(await gone.json()).toMatchObject({ object: "review", id: first.id, deleted: true });
  expect((await api.ask(`/v1/rollouts/${rollout}/review`, { method: "DELETE" })).status).toBe(404);
  expect((await listOf(`/v1/rollouts/${rollout}/reviews`)).data.map(({ mark }) => mark)).toEqual(["unsure"]);
});

test("the reviews of a run come page by page", async () => {
  const id = await judgedRun(api);
  for (const group of [0, 1, 2]) await put(rolloutAt(id, group), { mark: "good" });
  const first = await listOf(`/v1/runs/${id}/reviews?limit=2&order=asc`);
  const second = await listOf(`/v1/runs/${id}/reviews?limit=2&order=asc&after=${first.last_id}`);
  expect([first.has_more, second.has_more]).toEqual([true, false]);
  expect([...first.data, ...second.data].map(({ rollout_id }) => rollout_id)).toEqual(
    [0, 1, 2].map((group) => rolloutAt(id, group)),
  );
});

test("the agreement compares each score and judge with people, and names the rollouts that differ", async () => {
  const id = await judgedRun(api);
  const people = [1, 0, 0, 0];
  for (const [group, value] of people.entries()) {
    const label = value === 1 ? "right" : "wrong";
    const review = { mark: "good", scores: { correct: value }, judges: { default: label }, why: "read" };
    expect((await put(rolloutAt(id, group), review)).status).toBe(200);
  }
  const agreement = await agreementOf(id);
  expect(agreement).toMatchObject({ run_id: id, reviews: 4, rollouts: 4, marks: { good: 4, bad: 0, unsure: 0 } });
  const of = (name: string) => agreement.items.find((item) => item.name === name);
  const different = { rollout_id: rolloutAt(id, 1), given: 1, people: 0 };
  expect(of("correct")).toMatchObject({ of: "score", n: 4, agreement: 0.75, kappa: 0.5, weights: "quadratic" });
  expect(of("correct")?.disagreements).toEqual([different]);
  expect(of("default")).toMatchObject({ of: "judge", n: 4, kappa: 0.5, weights: "none", undecided: 0 });
  expect(of("default")?.disagreements).toEqual([{ ...different, given: "right", people: "wrong" }]);
  expect(of("reward")).toMatchObject({ n: 0, agreement: null, kappa: null, reason: "too_few" });
});

test("the agreements of several runs are read at once, in the order of the request, for those with reviews", async () => {
  const [first, none, second] = [await judgedRun(api), await judgedRun(api), await judgedRun(api)];
  for (const id of [first, second]) {
    for (const group of [0, 1, 2, 3]) await put(rolloutAt(id, group), { judges: { default: "right" }, why: "read" });
  }
  const path = `/v1/agreements?runs=${[second, none, first, second, "run_unknown"].join(",")}`;
  const list = AgreementSummaryList.parse(await (await api.ask(path)).json());
  expect(list.data.map(({ run_id, reviews }) => [run_id, reviews])).toEqual([
    [second, 4],
    [first, 4],
  ]);
  const { people: _, disagreements: __, weights: ___, ...item } = (await agreementOf(first)).items[0] ?? {};
  expect(item).toMatchObject({ of: "judge", name: "default", n: 4, agreement: 0.5 });
  expect(list.data[1]?.items).toEqual([item]);
  for (const wrong of ["", "run_1,", "ro_1", Array(101).fill("run_1").join(",")]) {
    expect((await api.ask(`/v1/agreements?runs=${wrong}`)).status).toBe(400);
  }
});

test("the agreements of runs with too many reviews together are read in several requests", async () => {
  const [small, large] = [await judgedRun(api), await judgedRun(api)];
  for (const id of [small, large]) await put(rolloutAt(id, 0), { reward: 1 });
  await env.DB.prepare(
    `with recursive n(i) as (select 1 union all select i + 1 from n where i < ?1)
      insert into reviews select r.id || n.i, org_id, project_id, run_id, rollout_id, created_by || n.i, mark, note,
        "values", why, created_at, updated_at from reviews r cross join n where run_id = ?2`,
  )
    .bind(LIMITS.reviewsPerRun - 1, large)
    .run();
  const reply = await api.ask(`/v1/agreements?runs=${small},${large}`);
  const { data } = AgreementSummaryList.parse(await reply.json());
  expect(data.map(({ reviews, items }) => [reviews, items?.length ?? null])).toEqual([
    [1, 1],
    [LIMITS.reviewsPerRun, null],
  ]);
  const alone = AgreementSummaryList.parse(await (await api.ask(`/v1/agreements?runs=${large}`)).json());
  expect(alone.data[0]?.items).toMatchObject([{ of: "reward", n: 1 }]);
});

test("scores beyond the most that are compared are counted in the summary of an agreement", async () => {
  const id = await judgedRun(api);
  await put(rolloutAt(id, 0), { reward: 1 });
  const values = Array.from({ length: 205 }, (_, at) => ({ of: "score", name: `score ${at}`, value: 1, given: 1 }));
  await env.DB.prepare('update reviews set "values" = ?1 where run_id = ?2').bind(JSON.stringify(values), id).run();
  const reply = await api.ask(`/v1/agreements?runs=${id}`);
  const [summary] = AgreementSummaryList.parse(await reply.json()).data;
  expect([summary?.items?.length, summary?.items_left_out]).toEqual([200, 5]);
});

test("a run without reviews has an agreement without numbers", async () => {
  const { id } = await api.finish({ environment: "gsm8k", dataset: questions(1), model: script(["\\boxed{4}"]) });
  const { reviews, items } = await agreementOf(id);
  expect([reviews, new Set(items.map(({ n }) => n))]).toEqual([0, new Set([0])]);
});

test("what a review cannot say is refused with the field and the reason", async () => {
  const rollout = rolloutAt(run, 2);
  const refusals: readonly (readonly [object, string])[] = [
    [{}, "mark: a review needs a mark, a note or a value"],
    [{ scores: { correct: 1 } }, "why: is required, because the score correct differs from the rollout's own"],
    [{ reward: 1 }, "why: is required, because the reward differs from the rollout's own"],
    [{ scores: { unknown: 1 } }, "scores.unknown: the rollout has no such score"],
    [{ judges: { strict: "right" } }, "judges.strict: the rollout was not judged by it"],
    [{ judges: { default: 1 }, why: "w" }, "judges.default: must be a label, as the judge gave"],
    [{ mark: "fine" }, "mark:"],
    [{ note: "x".repeat(LIMITS.reviewNoteCharacters + 1) }, "note:"],
    [{ scores: Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`s${at}`, 1])) }, "at most 20"],
  ];
  for (const [review, message] of refusals) {
    const { status, text } = await put(rollout, review);
    expect([status, text]).toEqual([400, expect.stringContaining(message)]);
  }
  expect((await listOf(`/v1/rollouts/${rollout}/reviews`)).data).toEqual([]);
});

test("a value that is the rollout's own needs no reason", async () => {
  const { status } = await put(rolloutAt(run, 2), { scores: { correct: 0 }, reward: 0, judges: { default: "wrong" } });
  expect(status).toBe(200);
});

test("a rollout that has not ended cannot be reviewed, and an unknown one is not found", async () => {
  const held = await api.start({
    environment: "gsm8k",
    dataset: questions(1),
    model: script(["4"], {}, { held: true }),
  });
  const rollout = rolloutAt(held.id);
  await expect.poll(async () => (await put(rollout, { mark: "good" })).status).toBe(409);
  expect((await api.post(`/v1/runs/${held.id}/cancel`, {})).status).toBe(200);
  await api.ended(held.id);
  for (const path of ["review", "reviews"]) {
    const method = path === "review" ? "DELETE" : "GET";
    expect((await api.ask(`/v1/rollouts/ro_unknown/${path}`, { method })).status).toBe(404);
  }
  expect((await put("ro_unknown", { mark: "good" })).status).toBe(404);
  expect((await api.ask("/v1/runs/run_unknown/agreement")).status).toBe(404);
});

test("a rollout has at most so many reviews; their writers may still change them", async () => {
  const rollout = rolloutAt(run, 3);
  const first = await admit(api.scope);
  expect((await put(rollout, { mark: "good" }, first)).status).toBe(200);
  const columns =
    'org_id, project_id, run_id, rollout_id, created_by || ?1, mark, note, "values", why, created_at, updated_at';
  const copy = env.DB.prepare(
    `insert into reviews select id || ?1, ${columns} from reviews where rollout_id = ?2 and id not like '%-%'`,
  );
  await env.DB.batch(Array.from({ length: LIMITS.reviewsPerRollout - 1 }, (_, n) => copy.bind(`-${n}`, rollout)));
  const { status, text } = await put(rollout, { mark: "bad" });
  expect([status, text]).toEqual([409, expect.stringContaining("already has 20 reviews")]);
  expect((await put(rollout, { mark: "bad" }, first)).status).toBe(200);
});

test("the reviews of a deleted run are hidden at once, and deleted with it", async () => {
  const id = await judgedRun(api);
  const rollout = rolloutAt(id, 0);
  await put(rollout, { mark: "good" });
  const { id: job } = await remove(api, id);
  for (const path of [`/v1/rollouts/${rollout}/reviews`, `/v1/runs/${id}/reviews`, `/v1/runs/${id}/agreement`]) {
    expect((await api.ask(path)).status).toBe(404);
  }
  expect((await put(rollout, { mark: "bad" })).status).toBe(404);
  await done(api, job);
  expect((await env.DB.prepare("select id from reviews where run_id = ?").bind(id).all()).results).toEqual([]);
});
