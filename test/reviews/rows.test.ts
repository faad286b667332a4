/** Reviews in filters over a run's rollouts, and in the rows of results and exports. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { LIMITS } from "../../src/contract/limits.ts";
import { GroupSummaryList, Histogram, RolloutSummaryList } from "../../src/contract/rollout-list.ts";
import { ResultRow } from "../../src/contract/run.ts";
import { ReviewView } from "../../src/reviews/wire.ts";
import { admit } from "../accounts/admit.ts";
import { openPlatform, rolloutAt, type TestApi } from "../kernel/platform.ts";
import { questions, RIGHT } from "../kernel/rows.ts";
import { script } from "../kernel/script.ts";

const WRONG = ["\\boxed{5}"];

let api: TestApi;
let other: string;
let run: string;
let own: string;
/** The group that a rollout belongs to is the number of its task; each has one rollout. */
beforeAll(async () => {
  api = await openPlatform();
  other = await admit(api.scope);
  run = await finished(5);
  own = (await review(run, 0, { mark: "good" })).created_by;
  await review(run, 1, { mark: "bad", note: "No unit." });
  await review(run, 1, { mark: "good" }, other);
  await review(run, 2, { note: "What is this?" }, other);
});

async function finished(tasks: number, rollouts_per_example = 1): Promise<string> {
  const dataset = questions(tasks, ["apples", "pears", "apples", "pears", "apples"]);
  const model = script(RIGHT, { pears: WRONG });
  return (await api.finish({ environment: "gsm8k", dataset, model, rollouts_per_example })).id;
}

async function review(id: string, group: number, body: object, key?: string): Promise<ReviewView> {
  const reply = await api.ask(`/v1/rollouts/${rolloutAt(id, group)}/review`, {
    method: "PUT",
    headers: { "content-type": "application/json", ...(key !== undefined && { authorization: `Bearer ${key}` }) },
    body: JSON.stringify(body),
  });
  const text = await reply.text();
  expect(reply.status, text).toBe(200);
  return ReviewView.parse(JSON.parse(text));
}

async function listOf<Reply>(path: string, query: Readonly<Record<string, string>>, schema: z.ZodType<Reply>) {
  const reply = await api.ask(`/v1/runs/${run}/${path}?${new URLSearchParams(query)}`);
  const text = await reply.text();
  expect(reply.status, text).toBe(200);
  return schema.parse(JSON.parse(text));
}

test("rollouts are filtered by their reviews, in lists, groups and histograms alike", async () => {
  const filters: readonly (readonly [string, readonly number[]])[] = [
    ["reviewed:true", [0, 1, 2]],
    ["reviewed:false", [3, 4]],
    ["-reviewed:true", [3, 4]],
    ["mark:good", [0, 1]],
    ["mark:bad", [1]],
    ["mark:bad mark:good", [1]],
    ["mark:bad|good", [0, 1]],
    ["-mark:bad", [0, 2, 3, 4]],
    ["mark:null", [2, 3, 4]],
    ["mark:null reviewed:true", [2]],
    ["mark:good|null", [0, 1, 2, 3, 4]],
    ["mark!=good reviewed:true", [2]],
    ["mark:unsure", []],
    [`reviewer:${own}`, [0, 1]],
    [`-reviewer:${own}`, [2, 3, 4]],
    ["reviewer:null", [3, 4]],
    ["reviewer:nobody", []],
    ["reviewed:true reward:1", [0, 2]],
    ["reviewed:false reward:1", [4]],
  ];
  for (const [filter, groups] of filters) {
    const page = await listOf("rollouts", { filter, matched: "true" }, RolloutSummaryList);
    expect([filter, page.data.map(({ group }) => group)]).toEqual([filter, groups]);
    expect([filter, page.matched]).toEqual([filter, groups.length]);
    const grouped = await listOf("groups", { filter }, GroupSummaryList);
    expect([filter, grouped.data.map(({ group }) => group)]).toEqual([filter, groups]);
    const { counts } = await listOf("histogram", { filter }, Histogram);
    expect([filter, counts.values]).toEqual([filter, groups.length]);
  }
});

test("a list filtered by reviews continues on the next page", async () => {
  const query = { filter: "reviewed:true", sort: "-reward", limit: "2" };
  const first = await listOf("rollouts", query, RolloutSummaryList);
  const second = await listOf("rollouts", { ...query, after: first.last_id ?? "" }, RolloutSummaryList);
  expect([first.has_more, second.has_more]).toEqual([true, false]);
  expect([...first.data, ...second.data].map(({ group }) => group)).toEqual([2, 0, 1]);
});

async function linesOf(path: string): Promise<unknown[]> {
  const lines: unknown[] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    const reply = await api.ask(next);
    const text = await reply.text();
    expect(reply.status, text).toBe(200);
    lines.push(...text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)])));
    next = reply.headers.get("link")?.match(/^<(.+)>; rel="next"$/)?.[1];
  }
  return lines;
}

const Marks = z.array(z.object({ mark: z.string().nullable() }).transform(({ mark }) => mark)).optional();
const Reviewed = z.object({ rollout_id: z.string(), reviews: Marks });

test("a row of results, of conversations and of verifiers has the reviews of its rollout, the oldest first", async () => {
  const expected = new Map([
    [rolloutAt(run, 0), ["good"]],
    [rolloutAt(run, 1), ["bad", "good"]],
    [rolloutAt(run, 2), [null]],
  ]);
  for (const path of ["results", "export?format=sft", "export?format=verifiers"]) {
    const rows = z.array(Reviewed).parse(await linesOf(`/v1/runs/${run}/${path}`));
    expect(rows).toHaveLength(5);
    for (const { rollout_id, reviews } of rows) expect([path, reviews]).toEqual([path, expected.get(rollout_id)]);
  }
  const [row] = z
    .array(ResultRow)
    .parse(await linesOf(`/v1/runs/${run}/results`))
    .filter(({ group }) => group === 1);
  expect(row?.reviews?.[0]).toEqual({
    ...{ created_by: own, mark: "bad", note: "No unit.", values: [], why: null },
    ...{ created_at: expect.any(Number), updated_at: expect.any(Number) },
  });
});

test("a pair has the reviews of both of its rollouts", async () => {
  const model = script(RIGHT, {}, { slots: ["\\boxed{4}", "\\boxed{5}"] });
  const pairs = await api.finish({ environment: "gsm8k", dataset: questions(1), model, rollouts_per_example: 2 });
  const [chosen] = (await api.results(pairs.id)).filter(({ reward }) => reward === 1);
  await review(pairs.id, 0, { mark: "unsure" });
  const Pair = z.object({ chosen_rollout_id: z.string(), chosen_reviews: Marks, rejected_reviews: Marks });
  const [pair, ...rest] = z.array(Pair).parse(await linesOf(`/v1/runs/${pairs.id}/export?format=dpo`));
  expect(rest).toEqual([]);
  const isChosen = chosen?.rollout_id === rolloutAt(pairs.id, 0);
  expect([pair?.chosen_reviews, pair?.rejected_reviews]).toEqual(
    isChosen ? [["unsure"], undefined] : [undefined, ["unsure"]],
  );
});

test("a page ends before the reviews that do not fit into it, and no row is lost or repeated", async () => {
  const id = await finished(4);
  for (const group of [0, 1, 2]) await review(id, group, { mark: "good" });
  const half = Math.floor(LIMITS.pageReviewCharacters * 0.4);
  await env.DB.prepare("update reviews set note = ?1 where run_id = ?2").bind("x".repeat(half), id).run();
  const pages = await api.pages(id, "limit=1000");
  expect(pages.map(({ length }) => length)).toEqual([2, 2]);
  for (const format of ["sft", "verifiers"]) {
    const first = await api.ask(`/v1/runs/${id}/export?format=${format}`);
    expect((await first.text()).trim().split("\n")).toHaveLength(2);
    const rows = z.array(Reviewed).parse(await linesOf(`/v1/runs/${id}/export?format=${format}`));
    expect(rows.map(({ rollout_id }) => rollout_id).sort()).toEqual([0, 1, 2, 3].map((at) => rolloutAt(id, at)).sort());
    expect(rows.flatMap(({ reviews }) => reviews ?? [])).toEqual(["good", "good", "good"]);
  }
});
