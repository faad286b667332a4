/** A rollout read in pieces, wherever it is: with its row, in its own object in R2, in a segment. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { ResultRow } from "../../../src/contract/run.ts";
import type { StoredTurn } from "../../../src/contract/trajectory.ts";
import type { Outline, RolloutHead, TurnPage, TurnTokenPage, WholeTurn } from "../../../src/contract/turns.ts";
import { newRollout, trajectoryOf } from "../../../src/core/rollout/rollout.ts";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";
import { rangeOf } from "../../../src/kernel/messages/turn-wire.ts";
import { lookForCause } from "../../../src/kernel/service/read-tokens.ts";
import { readerOf, type TurnReader } from "../../../src/kernel/trajectory/read-turns.ts";
import { segmentLines } from "../hand-made.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { registerTestEnvironments } from "../registered.ts";
import { questionScript, script, type Turns } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
  registerTestEnvironments();
});

const read = async <T>(path: string): Promise<T> => await (await platform.ask(path)).json<T>();
const product = { tool_calls: [{ name: "multiply", arguments: { a: 12, b: 3 } }] };
const LONG = "a long thought ".repeat(1000);

async function play(turns: Turns): Promise<string> {
  const dataset = [{ question: questionScript(turns), answer: "36" }];
  const run = await platform.finish({ environment: "calculator", dataset, model: script(turns.slice(0, 0)) });
  return rolloutAt(run.id);
}

/** Everything that can be read of it in pieces. */
async function piecesOf(id: string) {
  const path = `/v1/rollouts/${id}`;
  const head = await read<RolloutHead>(`${path}/head`);
  const first = await read<TurnPage>(`${path}/turns?limit=1`);
  const last = await read<TurnPage>(`${path}/turns?before=1000&limit=1`);
  const rest = await read<TurnPage>(`${path}/turns?after=0`);
  const whole = await read<WholeTurn>(`${path}/turns/${head.n_turns - 1}`);
  const outline = await read<Outline>(`${path}/outline`);
  return { head, first, last, rest, whole, outline };
}

test("the pieces of a rollout agree with the whole, wherever its trajectory is", async () => {
  const id = await play([{ content: LONG, ...product }, { content: LONG, ...product }, LONG]);
  const { turns, prompt: _, completion: __, state, ...view } = await platform.rollout(id);
  const before = await piecesOf(id);
  await segmentLines(platform, before.head.run_id);
  const folded = await piecesOf(id);
  expect(folded).toEqual(before);
  const { head, first, last, rest, whole, outline } = before;
  expect(head).toMatchObject({
    ...view,
    object: "rollout_head",
    n_turns: turns.length,
    tools: ["add", "subtract", "multiply"],
  });
  expect([first.data[0]?.index, first.has_more]).toEqual([0, true]);
  expect(rest.data.map(({ index }) => index)).toEqual(turns.slice(1).map(({ index }) => index));
  expect([rest.has_more, rest.n_turns]).toEqual([false, turns.length]);
  expect([last.data[0]?.index, last.has_more]).toEqual([turns.length - 1, true]);
  expect(whole).toMatchObject({ ...turns.at(-1), state });
  expect(outline.data.map(({ tools, messages }) => [tools, messages])).toEqual([
    [["multiply"], turns[0]?.prompt.append.length],
    [["multiply"], 1],
    [[], 1],
  ]);
  const [{ completion, at_ms } = { completion: null, at_ms: -1 }] = first.data;
  expect(completion?.content).toEqual([
    { type: "text", text: LONG.slice(0, LIMITS.shownCharacters), length: LONG.length },
  ]);
  expect(completion?.tool_calls?.[0]).toMatchObject({ name: "multiply", arguments: { text: '{"a":12,"b":3}' } });
  expect(at_ms).toBeGreaterThanOrEqual(0);
});

test("failed tool calls are read as they were recorded: of a turn, in its outline and in the row of results", async () => {
  const wrong = { name: "multiply", arguments: { a: "twelve", b: 3 } };
  const id = await play([{ tool_calls: [...product.tool_calls, wrong] }, product, "36"]);
  const { first, rest, outline, head } = await piecesOf(id);
  expect(first.data[0]?.tool_failed).toEqual([false, true]);
  expect(rest.data.map(({ tool_failed }) => tool_failed)).toEqual([[false], undefined]);
  expect(outline.data.map(({ tool_calls, tool_calls_failed }) => [tool_calls, tool_calls_failed])).toEqual([
    [2, 1],
    [1, 0],
    [0, undefined],
  ]);
  const results = await platform.ask(`/v1/runs/${head.run_id}/results`);
  const { completion, tool_failed } = JSON.parse((await results.text()).trim()) as ResultRow;
  expect(tool_failed).toEqual([false, true, false]);
  expect(completion.filter(({ role }) => role === "tool").every((said) => !("failed" in said))).toBe(true);
});

test("the pieces of a running rollout agree with the whole, page by page", async () => {
  const guess = { tool_calls: [{ name: "guess", arguments: { number: 0 } }] };
  const model = script([guess, { fault: { kind: "hang" } }]);
  const run = await platform.start({ environment: "guess-number", num_examples: 1, model });
  await requestsOf(model, 2);
  const id = rolloutAt(run.id);
  const { turns, prompt: _, completion: __, state, ...view } = await platform.rollout(id);
  expect([turns.length, view.status]).toEqual([1, "running"]);
  const { head, first, last, rest, whole, outline } = await piecesOf(id);
  expect(head).toMatchObject({ ...view, object: "rollout_head", n_turns: 1, duration_ms: null });
  expect(first).toMatchObject({ has_more: false, n_turns: 1, first_id: "0", data: [{ usage: turns[0]?.usage }] });
  expect([last, rest.data, rest.n_turns]).toEqual([first, [], 1]);
  expect(whole).toMatchObject({ ...turns[0], state });
  expect(outline.data).toMatchObject([{ index: 0, tools: ["guess"], stored_bytes: whole.stored_bytes }]);
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  await platform.ended(run.id);
});

test("a turn that does not exist is not found, and one without ids has no tokens", async () => {
  const id = await play([product, "36"]);
  const statuses = ["turns/99", "turns/x", "turns/-1", "turns/0/tokens", "turns?limit=101", "turns?after=-1"].map(
    async (path) => (await platform.ask(`/v1/rollouts/${id}/${path}`)).status,
  );
  expect(await Promise.all(statuses)).toEqual([404, 404, 404, 409, 400, 400]);
  expect((await piecesOf(id)).rest.n_turns).toBeGreaterThan(1);
});

test("the tokens of a turn are the engine's, and train only if the whole rollout does", async () => {
  const dataset = [{ question: "one and two", answer: "#### 3" }];
  const say = (turns: Turns) =>
    platform.finish({ environment: "gsm8k", dataset, model: script(turns), num_examples: 1 });
  const tokens = { prompt_token_ids: [5, 6, 7], token_ids: [8, 9], logprobs: [-0.5, -1.5] };
  const [good, faulty] = await Promise.all([
    say([{ content: "\\boxed{3}", ...tokens }]),
    say([{ content: "\\boxed{3}", ...tokens, logprobs: [-0.5, 1.5] }]),
  ]);
  const path = (id: string) => `/v1/rollouts/${rolloutAt(id)}/turns/0/tokens`;
  expect(await read<TurnTokenPage>(path(good.id))).toMatchObject({
    ...{ prompt_suffix_ids: [5, 6, 7], completion_ids: [8, 9], completion_logprobs: [-0.5, -1.5] },
    ...{ mask: 1, untrainable: null, version: null, forked: false, prompt_length: 3 },
  });
  expect(await read<TurnTokenPage>(`${path(good.id)}?after=1&prompt_after=2&limit=1`)).toMatchObject({
    ...{ prompt_suffix_ids: [7], prompt_suffix_length: 3, completion_ids: [9], completion_length: 2 },
  });
  const untrained = { mask: 0, untrainable: "positive_logprob", completion_logprobs: [-0.5, 1.5] };
  expect(await read<TurnTokenPage>(path(faulty.id))).toMatchObject(untrained);
});

test("the reason why nothing trains is searched in this turn and the first ones, however long the rollout is", async () => {
  const turns = Array.from({ length: 100 }, (_, index) => longTurn(index, index !== 50));
  const task = { id: "ro", task_key: "k", example_id: 1, task: {}, prompt: [], answer: "4", info: {} };
  const whole = readerOf({ ...trajectoryOf(newRollout(task, 1000)), turns });
  let handedOut = 0;
  const reader: TurnReader = {
    ...whole,
    page: async (ask) => {
      const slice = await whole.page(ask);
      handedOut += slice.turns.length;
      return slice;
    },
  };
  const run = { spec: { training: undefined } };
  const whose = { run, counted: { entry: { id: "ro", finish_seq: null } }, subrequests: new Subrequests() };
  const lookAt = (index: number) => lookForCause(env, whose as never, reader, longTurn(index, index !== 50));
  expect(await lookAt(0)).toEqual({ untrainable: null, turns_checked: 8 });
  expect(handedOut).toBeLessThan(10);
  expect(await lookAt(50)).toEqual({ untrainable: "no_tokens", turns_checked: 9 });
  expect(await lookAt(99)).toEqual({ untrainable: null, turns_checked: 9 });
  expect(handedOut).toBeLessThan(30);
});

/** A turn of about 1 MB, with tokens that train or with none. */
function longTurn(index: number, sampled: boolean): StoredTurn {
  const [prompt_suffix_ids, completion_ids, completion_logprobs] = [[1], [2], [-1]].map((numbers, at) => {
    const bytes = new Uint8Array((at === 2 ? Float32Array : Int32Array).from(numbers).buffer);
    return btoa(String.fromCharCode(...bytes));
  }) as [string, string, string];
  const tokens = { prompt_suffix_ids, completion_ids, completion_logprobs, forked: false };
  return {
    ...{ index, prompt: { keep: 0, append: [] }, finish_reason: "stop", usage: null, is_truncated: false, calls: 1 },
    completion: { role: "assistant", content: "x".repeat(1_000_000) },
    tokens: sampled ? { ...tokens, prompt_length: 1, completion_length: 1 } : null,
    ...{ latency_ms: 5, response_id: null, model: "m", policy_version: null, answered_at: 1000, state_after: null },
  };
}

test("a page of turns ends at its limit or its bytes, from either side, and has at least one turn", () => {
  const at = (after: number | null, before: number | null, limit: number, bytes = 100) =>
    rangeOf(10, { after, before, limit, bytes }, (index) => (index === 7 ? 500 : 30));
  expect(at(null, null, 2)).toEqual({ from: 0, to: 2, more: true });
  expect(at(null, null, 10)).toEqual({ from: 0, to: 3, more: true });
  expect(at(8, null, 10)).toEqual({ from: 9, to: 10, more: false });
  expect(at(9, null, 10)).toEqual({ from: 10, to: 10, more: false });
  expect(at(null, 99, 10)).toEqual({ from: 8, to: 10, more: true });
  expect(at(null, 8, 10)).toEqual({ from: 7, to: 8, more: true });
  expect(at(1, 4, 10)).toEqual({ from: 2, to: 4, more: false });
  expect(at(null, 0, 10)).toEqual({ from: 0, to: 0, more: false });
  expect(at(5, 2, 10)).toEqual({ from: 6, to: 6, more: false });
});
