/** Exports of real runs: rewards and texts vary within a group, because the environment draws them at random. */
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { DpoRow, SftRow, VerifiersRow } from "../../../src/contract/export.ts";
import type { ResultRow } from "../../../src/contract/run.ts";
import { dataset, defineEnvironment, MultiTurnEnv } from "../../../src/core/entry.ts";
import { verifiersRow } from "../../../src/core/verifiers/row.ts";
import { segmentLines } from "../hand-made.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { questions } from "../rows.ts";
import { script } from "../script.ts";

/**
 * Draws one of four numbers for each rollout, tells it to the model, and uses it as reward; a question may prevent a
 * score.
 */
const drawing = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new MultiTurnEnv({
      dataset: dataset(z.object({ question: z.string(), answer: z.string() }), "uploaded"),
      setupState: (_state, can) => ({ drawn: Math.floor(can.random() * 4) }),
      envResponse: (_messages, state) => [{ role: "user", content: `You drew ${state.drawn}.` }],
      maxTurns: 2,
      rubric: {
        rewards: {
          drawn: ({ state, task }) => (task.question.startsWith("unscored") ? null : state.drawn),
        },
      },
    }),
});

let platform: TestApi;
/** Four tasks with six rollouts each, all of them scored. */
let rich: { readonly id: string; readonly results: readonly ResultRow[] };
beforeAll(async () => {
  platform = await openPlatform();
  const { args, needs, load } = drawing;
  registerOnce({ id: "drawing", version: "1.2.0", digest: "sha256:drawing", args, needs, load });
  const { id } = await drawn(4);
  rich = { id, results: await platform.results(id) };
});

const model = script(["Draw.", "I see."], { hard: [{ fault: { kind: "status", status: 404 } }] });

/** `padding`: characters that make every trajectory longer. */
function drawn(tasks: number, words: readonly string[] = [], per = 6, padding = 0) {
  const rows = questions(tasks, words).map(({ question, answer }) => {
    return { question: question.padEnd(padding, "."), answer };
  });
  return platform.finish({
    environment: "drawing",
    dataset: rows,
    model,
    rollouts_per_example: per,
    min_scored: 0,
  });
}

async function exported<Row>(id: string, schema: z.ZodType<Row>, query: string): Promise<Row[][]> {
  const pages: Row[][] = [];
  for (let path: string | undefined = `/v1/runs/${id}/export?${query}`; path !== undefined; ) {
    const reply = await platform.ask(path);
    expect(reply.status).toBe(200);
    const lines = (await textOf(reply)).split("\n").filter((line) => line !== "");
    pages.push(lines.map((line) => schema.parse(JSON.parse(line))));
    path = reply.headers.get("link")?.match(/^<(.+)>; rel="next"$/)?.[1];
  }
  return pages;
}

/** Not text(): workerd warns about a content type that it does not recognise as text. */
const textOf = async (reply: Response) => new TextDecoder().decode(await reply.arrayBuffer());
const sft = async (id: string, query = "") => (await exported(id, SftRow, query)).flat();
const dpo = async (id: string, query = "") => (await exported(id, DpoRow, `format=dpo&${query}`)).flat();
const ids = (rows: readonly { rollout_id: string }[]) => rows.map(({ rollout_id }) => rollout_id);
const worth = ({ reward }: ResultRow) => reward ?? Number.NEGATIVE_INFINITY;
const said = ({ prompt, completion }: ResultRow) => JSON.stringify([prompt, completion]);

function groupsOf(rows: readonly ResultRow[]): ResultRow[][] {
  const inOrder = rows.toSorted((a, b) => a.group - b.group);
  return [...Map.groupBy(inOrder, ({ group }) => group).values()].map((group) =>
    group.toSorted((a, b) => worth(b) - worth(a) || a.slot - b.slot),
  );
}

test("every scored rollout is a row with its conversation and its origin; one without a score is not", async () => {
  const run = await drawn(3, ["hard", "unscored"], 2, 40_000);
  expect(run.counts).toMatchObject({ scored: 2, unscored: { scorer: 2 }, failed: { provider: 2 } });
  const rows = await sft(run.id);
  const scored = await platform.results(run.id, "outcome=scored");
  expect(ids(rows)).toEqual(ids(scored));
  const [first] = rows;
  expect(first).toEqual({
    messages: [...(scored[0]?.prompt ?? []), ...(scored[0]?.completion ?? [])],
    rollout_id: scored[0]?.rollout_id,
    reward: scored[0]?.reward,
    run_id: run.id,
    environment: "drawing@1.2.0",
    model,
    task_key: scored[0]?.task_key,
    example_id: 2,
  });
  expect(first?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  const all = (await exported(run.id, VerifiersRow, "format=verifiers")).flat();
  const { run_id, environment } = first ?? {};
  const lines = (await platform.results(run.id)).map((row) => {
    const { rollout_id, task_key } = row;
    return verifiersRow(row, { rollout_id, run_id, environment, model, task_key });
  });
  expect(all).toEqual(lines);
});

test("a pair is of one task, its rewards differ, no rollout is in two pairs, and the best is paired with the worst", async () => {
  const { id, results } = rich;
  const groups = groupsOf(results);
  const expected = groups.flatMap((group) =>
    [0, 1, 2].flatMap((at) => {
      const [chosen, rejected] = [group[at], group[5 - at]];
      if (!chosen || !rejected || worth(chosen) <= worth(rejected)) return [];
      return [[chosen.rollout_id, rejected.rollout_id, chosen.group]];
    }),
  );
  const pairOf = ({ chosen_rollout_id, rejected_rollout_id, example_id }: DpoRow) => {
    return [chosen_rollout_id, rejected_rollout_id, example_id];
  };
  const rows = await dpo(id);
  expect(rows.map(pairOf)).toEqual(expected);
  expect((await exported(id, DpoRow, "format=dpo&limit=2")).flat().map(pairOf)).toEqual(expected);
  const [pair] = rows;
  expect(pair?.prompt.map(({ role }) => role)).toEqual(["user"]);
  expect(pair?.chosen.at(1)).toEqual({ role: "user", content: `You drew ${pair?.chosen_reward}.` });
  expect(pair?.rejected.at(1)?.["content"]).toBe(`You drew ${pair?.rejected_reward}.`);
  const widest = groups.map(([chosen, ...others]) => [chosen, others.at(-1)]);
  const few = widest.filter(([a, b]) => a && b && worth(a) > worth(b) && worth(a) >= 3);
  expect((await dpo(id, "best_of_group=true&min_reward=3")).map(pairOf)).toEqual(
    few.map(([a, b]) => [a?.rollout_id, b?.rollout_id, a?.group]),
  );
  // Of rollouts with the same text one is left, so a group has at most four, and two pairs.
  const distinct = await dpo(id, "dedupe=true");
  expect(distinct.every((row) => row.chosen_reward > row.rejected_reward)).toBe(true);
  expect(Math.max(...[...Map.groupBy(distinct, pairTask).values()].map(({ length }) => length))).toBeLessThan(3);
});

test("filters apply to all pages, before compaction and after: the best of a group, and no text twice", async () => {
  const { id, results } = rich;
  const groups = groupsOf(results);
  const best = groups.map(([first]) => first?.rollout_id);
  const first = results.filter((row, at) => results.findIndex((one) => said(one) === said(row)) === at);
  expect(first.length).toBeLessThan(results.length);
  const check = async (limit: number) => {
    const page = `limit=${limit}`;
    expect(ids(await sft(id, page))).toEqual(ids(results));
    expect(new Set(ids(await sft(id, `best_of_group=true&${page}`)))).toEqual(new Set(best));
    expect(ids(await sft(id, `dedupe=true&${page}`))).toEqual(ids(first));
    const worthy = results.filter((row) => worth(row) >= 2);
    expect(ids(await sft(id, `min_reward=2&${page}`))).toEqual(ids(worthy));
  };
  await check(7);
  expect((await segmentLines(platform, id)).length).toBe(24);
  await check(1000);
});

const pairTask = ({ task_key }: DpoRow) => task_key;

test("the pages of an export are of one moment: rollouts that a retry adds between two pages are in none", async () => {
  const flaky = script(["Draw.", "I see."], {
    hard: [{ fault: { kind: "status", status: 404 }, attempts: 1, reply: "Draw." }, "I see."],
  });
  const run = await platform.finish({
    environment: "drawing",
    dataset: questions(2, ["hard"]),
    model: flaky,
    rollouts_per_example: 2,
    min_scored: 0,
  });
  const reply = await platform.ask(`/v1/runs/${run.id}/export?limit=1`);
  const next = reply.headers.get("link")?.match(/^<(.+)>; rel="next"$/)?.[1] ?? "";
  await platform.post(`/v1/runs/${run.id}/retry`, {});
  expect((await platform.ended(run.id)).counts.scored).toBe(4);
  const rest = await textOf(await platform.ask(next));
  expect(rest.split("\n").filter((line) => line !== "").length).toBe(1);
  expect((await sft(run.id)).length).toBe(4);
});

test("the offered tools are given with the messages, and the arguments of a call are an object", async () => {
  const { id } = await guessing({ tool_calls: [{ name: "guess", arguments: { number: 0 } }] });
  const [row] = await sft(id);
  expect(row?.tools).toMatchObject([{ type: "function", function: { name: "guess" } }]);
  const call = row?.messages.find(({ role }) => role === "assistant");
  expect(call?.["tool_calls"]).toMatchObject([
    { type: "function", function: { name: "guess", arguments: { number: 0 } } },
  ]);
  const [line] = (await exported(id, VerifiersRow, "format=verifiers")).flat();
  const [asked] = z.array(z.string()).parse(line?.completion[0]?.["tool_calls"]);
  expect(JSON.parse(asked ?? "")).toMatchObject({ name: "guess", arguments: '{"number":0}' });
});

test("a rollout whose call cannot be an object is not a row, and the page says which and why", async () => {
  const { id } = await guessing({ tool_calls: [{ name: "guess", arguments: "{number: 0" }] });
  const reply = await platform.ask(`/v1/runs/${id}/export`);
  expect(await textOf(reply)).toBe("");
  const [{ rollout_id } = { rollout_id: "" }] = await platform.results(id);
  expect(JSON.parse(reply.headers.get("x-left-out") ?? "null")).toEqual({
    rows: 1,
    reasons: { invalid_json: 1 },
    rollouts: [rollout_id],
  });
  const whole = await platform.ask(`/v1/runs/${id}/export?format=verifiers`);
  expect((await textOf(whole)).split("\n").length).toBe(2);
  expect(whole.headers.get("x-left-out")).toBeNull();
});

function guessing(guess: object) {
  return platform.finish({
    environment: "guess-number",
    environment_args: { max: 2 },
    num_examples: 1,
    model: script([guess, guess, "I give up."]),
  });
}

test.each([
  ["format=parquet", "format"],
  ["best_of_group=yes", "best_of_group"],
  ["min_reward=much", "min_reward"],
  ["after=12", "after"],
  ["limit=0", "limit"],
  ["top=1", "top"],
])("%s is refused, naming the field", async (query, param) => {
  const reply = await platform.ask(`/v1/runs/run_any/export?${query}`);
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({ error: { param } });
});
