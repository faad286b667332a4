/** With databases of `node:sqlite`, which workerd does not have. */
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { ENVIRONMENTS } from "../../../environments/registered.ts";
import type { Json } from "../../../src/contract/json.ts";
import { NO_JOURNAL, RolloutSql } from "../../../src/core/environments/rollout-sql.ts";
import { ENVIRONMENT_PROTOCOL, type Fetched, type TaskSource } from "../../../src/core/protocol/environment-code.ts";
import { loadableOf } from "../../../src/core/protocol/in-process.ts";
import { readJudgement } from "../../../src/core/rubrics/judgement.ts";
import type { JudgeAsk } from "../../../src/core/rubrics/judges.ts";
import { argumentsWork } from "../../../src/core/rubrics/work.ts";
import { databaseOf } from "../../../src/core/sql/database.ts";
import { goldPolicies, type Policy, randomPolicy } from "../../../src/core/validation/policies.ts";
import { acrossJson, type PlayWith, playByCode } from "../../fixtures/played-code.ts";

const SEEDS = [1, 2, 3];
/** A row of an environment without rows of its own and without examples. */
const QUESTION = { question: "What is 6 times 7? It is one word.", answer: "42" };
const texts = { input: "{{ sample.output_text }}", reference: "{{ item.answer }}" };
const URL = "https://scores.example/";
/** One grader of each kind that crosses in its own way: a function, a judge, a call to another service. */
const graders = [
  { type: "string_check", name: "same", ...texts, operation: "eq" },
  {
    type: "score_model",
    name: "judged",
    input: [{ role: "user", content: "{{ sample.output_text }}" }],
    model: "default",
    range: [0, 1],
  },
  { type: "http", name: "served", url: URL, secret: "SCORES" },
];
/** Arguments of environments that need some. */
const ARGS: Readonly<Record<string, Readonly<Record<string, Json>>>> = { "graded-dataset": { graders } };

const fetch = async (url: string): Promise<Fetched> => {
  expect(url).toBe(URL);
  return { status: 200, headers: [["Content-Type", "application/json"]], text: '{"score": 0.25}' };
};

function judge({ menu }: JudgeAsk) {
  const verdicts = { label: "right", number: 0.5, text: "fine" } as const;
  const verdict = menu.kind in verdicts ? verdicts[menu.kind as keyof typeof verdicts] : 1;
  const read = readJudgement(menu, JSON.stringify({ reason: "so it is", verdict }));
  return read.ok ? read : { value: null, error: read.error, retryable: false };
}

const sql = () => new RolloutSql(databaseOf(new DatabaseSync(":memory:")), NO_JOURNAL);

/** A row for an environment whose rows come with a run: one of its examples. */
function rowOf(id: string, index: number): unknown {
  const file = resolve(import.meta.dirname, `../../../environments/${id}/examples.jsonl`);
  if (!existsSync(file)) return QUESTION;
  return JSON.parse(readFileSync(file, "utf8").split("\n")[index] ?? "");
}

async function opened(id: string) {
  const loader = ENVIRONMENTS.find((environment) => environment.id === id);
  if (loader === undefined) throw new Error(`no environment ${id}`);
  const loadable = loadableOf(loader);
  const args = ARGS[id] ?? {};
  expect(await loadable.checkArguments(args, argumentsWork())).toBeNull();
  // A second instance, as another isolate has.
  return { here: await loadable.load({ ...args }), there: await loadable.load({ ...args }) };
}

test.each(ENVIRONMENTS.map(({ id }) => id))("%s plays and scores the same if all that crosses is JSON", async (id) => {
  const { here, there } = await opened(id);
  const across = acrossJson(there);
  expect(across.description).toEqual({ ...here.description });
  expect(across.description.protocol).toBe(ENVIRONMENT_PROTOCOL);
  const brought = here.description.dataset.kind === "uploaded";
  for (const seed of SEEDS) {
    const source: TaskSource = brought
      ? { kind: "brought", training: false, index: seed, row: rowOf(id, seed) }
      : { kind: "own", training: false, index: seed, seed };
    const made = await here.task(source);
    if ("fault" in made) throw new Error(made.fault.message);
    for (const policy of [randomPolicy(seed), ...goldPolicies(null, made.task)]) {
      const play = (make: Policy): PlayWith => ({
        source,
        seed,
        model: make(),
        fetch,
        sql: sql(),
        secrets: { SCORES: "hush" },
        judge,
      });
      const played = await playByCode(here, play(policy));
      expect(await playByCode(across, play(policy))).toEqual(played);
      expect(played.records).toMatchObject([{ unscored: null }]);
    }
  }
});

test("a rollout of four turns crosses once for each effect, and asks for its tools with them", async () => {
  const { here } = await opened("calculator");
  const calls: string[] = [];
  const across = acrossJson(here, (name) => calls.push(name));
  const source: TaskSource = { kind: "own", training: false, index: 0, seed: 0 };
  const call = { tool_calls: [{ name: "add", arguments: { a: 1, b: 1 } }] };
  const { trajectory } = await playByCode(across, { source, model: ({ turn }) => (turn < 3 ? call : "2") });
  expect(trajectory.turns).toHaveLength(4);
  const replies = Array.from({ length: 5 }, () => "reply");
  expect(calls).toEqual(["task", "setup", ...replies, "close", "score"]);
});

test("a row and arguments that are refused are answered as JSON, with the place of the fault", async () => {
  const { there } = await opened("gsm8k");
  const row = { question: 7 };
  expect(await there.task({ kind: "brought", training: false, index: 3, row })).toMatchObject({
    fault: { index: 3, column: ".question" },
  });
  const loader = ENVIRONMENTS.find(({ id }) => id === "guess-number");
  if (loader === undefined) throw new Error("no guess-number");
  const fault = await loadableOf(loader).checkArguments({ hights: 1 }, argumentsWork());
  expect(fault).toEqual({ kind: "unknown", path: ["hights"], message: null });
});
