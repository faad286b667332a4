/**
 * Whole runs of all environments that come with a deployment, in the platform's isolate and published, in isolates of
 * their own: what a user reads of their rollouts is equal. In each group one rollout makes good moves, one random ones.
 */
import { env } from "cloudflare:workers";
import { beforeAll, expect, inject, test } from "vitest";
import { goldPolicy as walks } from "../../environments/grid-walk/environment.ts";
import { ENVIRONMENTS } from "../../environments/registered.ts";
import { goldPolicy as queries } from "../../environments/tool-sql/environment.ts";
import type { Json, JsonObject } from "../../src/contract/json.ts";
import { textOf } from "../../src/contract/messages.ts";
import type { ResultRow } from "../../src/contract/run.ts";
import { loadableOf } from "../../src/core/protocol/in-process.ts";
import type { RolloutTask } from "../../src/core/rollout/rollout.ts";
import type { Reply, ReplyParts } from "../fakes/completion-body.ts";
import { expectLaw, keep, openPlatform, type RunOptions, type TestApi } from "../kernel/platform.ts";
import { script } from "../kernel/script.ts";
import { pack, send } from "./packages.ts";

const SEEDS = [1, 2, 3];
const EXAMPLES = 3;
const owner = `isolated-${crypto.randomUUID().slice(0, 8)}`;
let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

type Task = Pick<RolloutTask, "prompt" | "task" | "answer">;

interface Case {
  readonly args?: JsonObject;
  /** For an environment without rows of its own. */
  readonly rows?: readonly JsonObject[];
  readonly judged?: boolean;
  /** The good moves in a task. `tasks`: all of the run, if they cannot be told apart by their questions. */
  readonly moves: (task: Task, tasks: readonly Task[]) => readonly Reply[];
}

const QUESTIONS = [
  { question: "What is 6 times 7?", answer: "42" },
  { question: "What is a half of a half?", answer: "\\frac{1}{4}" },
  { question: "What is 1000 plus 234?", answer: "1,234" },
];

const PROMPTS = ["Name a boat.", "Name a fish.", "Name a net."].map((prompt, key) => ({
  ...{ key, prompt, instruction_id_list: ["punctuation:no_comma", "length_constraints:number_words"] },
  kwargs: [{ num_words: null }, { num_words: 4, relation: "at least" }],
}));
const CHOICES = [
  { question: "What is 6 times 7?", options: ["41", "42", "43"], answer: "B" },
  { question: "What is a half of a half?", options: ["1/4", "1/2"], answer: 0 },
  { question: "What is 1000 plus 234?", correct: "1234", incorrect_1: "1235", incorrect_2: "234", incorrect_3: "1000" },
];

function call(name: string, given: JsonObject | string) {
  return { name, arguments: given };
}

/** With ids that do not depend on what else the model was asked. */
function withIds(reply: Reply, turn: number): Reply {
  if (typeof reply === "string" || reply.tool_calls === undefined) return reply;
  return { ...reply, tool_calls: reply.tool_calls.map((each, at) => ({ ...each, id: `call_${turn}_${at}` })) };
}

/** `goldPolicy` of environments whose moves do not depend on the replies. */
function listed(policy: unknown): ReplyParts[] {
  return policy as ReplyParts[];
}

const CASES: Readonly<Record<string, Case>> = {
  calculator: {
    moves: ({ prompt }) => {
      const [a = 0, b = 0] = (JSON.stringify(prompt).match(/\d+/g) ?? []).map(Number);
      const product = { tool_calls: [call("multiply", { a, b }), call("add", "not JSON")] };
      return [product, { tool_calls: [call("add", { a: a * b, b: a })] }, `It is ${a * b + a}.`];
    },
  },
  "graded-dataset": {
    args: {
      graders: [
        {
          type: "string_check",
          name: "same",
          input: "{{ sample.output_text }}",
          reference: "{{ item.answer }}",
          operation: "eq",
        },
        {
          type: "text_similarity",
          name: "near",
          input: "{{ sample.output_text }}",
          reference: "{{ item.answer }}",
          evaluation_metric: "fuzzy_match",
        },
        {
          type: "score_model",
          name: "judged",
          input: [{ role: "user", content: "Good? {{ sample.output_text }}" }],
          model: "default",
          range: [0, 1],
        },
      ],
    },
    rows: QUESTIONS,
    judged: true,
    moves: ({ answer }) => [answer],
  },
  "grid-walk": { moves: ({ task }) => listed(walks(task)) },
  gsm8k: { rows: QUESTIONS, moves: ({ answer }) => [`So it is\n#### ${answer}`] },
  "guess-number": {
    args: { max: 5, max_turns: 4 },
    moves: () => [
      { tool_calls: [call("guess", { number: 1 })] },
      { tool_calls: [call("guess", { number: 5 }), call("guess", { number: 4 })] },
      { tool_calls: [call("guess", { number: 2.5 })] },
      "It is 3.",
    ],
  },
  ifeval: { rows: PROMPTS, moves: () => ["The boats lie in the harbour."] },
  "judged-qa": { rows: QUESTIONS, args: { passes: 2 }, judged: true, moves: ({ answer }) => [`It is ${answer}.`] },
  math: { rows: QUESTIONS, moves: ({ answer }) => [`It is \\boxed{${answer}}.`] },
  "multiple-choice": {
    rows: CHOICES,
    args: { shuffle_seed: 5 },
    moves: ({ answer }) => [`The answer is (${answer}).`],
  },
  "reverse-text": { moves: ({ answer }) => [answer] },
  "tool-sql": {
    moves: ({ task }) => [
      { tool_calls: [call("query", { sql: "select nothing from nowhere" })] },
      ...listed(queries(task)),
    ],
  },
  wordle: {
    moves: (_, tasks) => ["<guess>crane</guess>", "I pass.", ...tasks.map(({ answer }) => `<guess>${answer}</guess>`)],
  },
};

/** The tasks of a run, from the code in this isolate. */
async function tasksOf(id: string, { args = {}, rows }: Case, seed: number): Promise<readonly Task[]> {
  const loader = ENVIRONMENTS.find((each) => each.id === id);
  if (loader === undefined) throw new Error(`no environment ${id}`);
  const code = await loadableOf(loader).load(args);
  const made = Array.from({ length: EXAMPLES }, async (_, index) => {
    const place = { training: false, index } as const;
    const reply = await code.task(
      rows === undefined ? { ...place, kind: "own", seed } : { ...place, kind: "brought", row: rows[index] },
    );
    if ("fault" in reply) throw new Error(reply.fault.message);
    return reply.task;
  });
  return await Promise.all(made);
}

/** The part of a case that both runs share: they ask the same scripts. */
async function requestOf(id: string, seed: number): Promise<Omit<RunOptions, "environment">> {
  const each = CASES[id];
  if (each === undefined) throw new Error(`no case for ${id}`);
  const tasks = await tasksOf(id, each, seed);
  const moves = tasks.map(
    (task) =>
      [textOf(task.prompt.findLast(({ role }) => role === "user")), each.moves(task, tasks).map(withIds)] as const,
  );
  const [bad, good] = id === "judged-qa" ? ["wrong", "right"] : [0.25, 0.75];
  const verdict = (value: unknown) => [JSON.stringify({ reason: "so it is", verdict: value })];
  const judge = script(verdict(bad), { "42": verdict(good) });
  return {
    ...{ seed, num_examples: EXAMPLES, rollouts_per_example: 2 },
    model: await keep({
      salt: crypto.randomUUID(),
      turns: moves[0]?.[1] ?? [],
      when: Object.fromEntries(moves),
      random: true,
    }),
    ...(each.args && { environment_args: { ...each.args } }),
    ...(each.rows && { dataset: [...each.rows] }),
    ...(each.judged && {
      judges: { default: { endpoint: { base_url: env.MODEL_URL }, model: judge } },
      judge_cache: false,
    }),
  };
}

/** Ids and times differ from run to run. */
const DIFFERING = ["id", "run_id", "rollout_id", "timing", "started_at", "ended_at", "latency_ms", "platform_ms"];

function comparable(value: unknown): Json {
  return JSON.parse(JSON.stringify(value), (name, member: Json) => (DIFFERING.includes(name) ? undefined : member));
}

async function played(request: RunOptions) {
  const run = await platform.finish(request);
  expectLaw(run.counts);
  const byPlace = (a: ResultRow, b: ResultRow) => a.group - b.group || a.slot - b.slot;
  const results = (await platform.results(run.id)).sort(byPlace);
  const rollouts = await Promise.all(results.map(({ rollout_id }) => platform.rollout(rollout_id)));
  return {
    run,
    results,
    rollouts,
    compared: comparable({ counts: run.counts, report: run.report, results, rollouts }),
  };
}

test("each environment of a deployment that has rewards of its own is compared", () => {
  const ids = ENVIRONMENTS.map(({ id }) => id).filter((id) => id !== "agent");
  expect(Object.keys(CASES)).toEqual(ids);
});

test.each(Object.keys(CASES))(
  "runs of %s in isolates of its own have the rollouts, trajectories and rewards of runs in the platform's",
  async (id) => {
    const code = await (await fetch(`${inject("bundleUrl")}/${id}`)).text();
    const rollcall = { args: CASES[id]?.args ?? {} };
    const name = `${owner}/${id}`;
    const published = await send(
      platform,
      await pack({ name, version: "1.0.0", code, manifest: { rollcall } }),
      "allow_failing=true",
    );
    expect(published.status, await published.text()).toBe(201);
    const rewards = new Set<number | null>();
    for (const seed of SEEDS) {
      const request = await requestOf(id, seed);
      const here = await played({ ...request, environment: id });
      const there = await played({ ...request, environment: name });
      expect(there.compared).toEqual(here.compared);
      expect(here.run.counts).toMatchObject({ scored: 2 * EXAMPLES });
      for (const { reward } of here.results) rewards.add(reward);
    }
    // Both good and bad moves were made.
    expect(rewards.size).toBeGreaterThan(1);
  },
);
