/** docs/verifiers.md: each of its programs is run unchanged, and each of its rules has a test with its number. */
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, test } from "vitest";
import type { EnvironmentLoader } from "../../src/core/environments/define-environment.ts";
import { runRollout, scripted } from "../../src/core/testing.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const PAGE = readFileSync(join(ROOT, "docs/verifiers.md"), "utf8");
const PROGRAMS = new Map(
  Array.from(PAGE.matchAll(/```ts\n\/\/ ([\w.-]+)\n([\s\S]*?)```/g), ([, name = "", text = ""]) => [name, text]),
);

// Inside the tree, where `rollcall` means this package.
mkdirSync(join(ROOT, "dist"), { recursive: true });
const folder = mkdtempSync(join(ROOT, "dist/verifiers-page-"));
for (const [name, text] of PROGRAMS) writeFileSync(join(folder, name), text);
afterAll(() => rmSync(folder, { recursive: true }));

async function environmentOf(name: string) {
  const module: { loadEnvironment: EnvironmentLoader<never> } = await import(join(folder, name));
  return module.loadEnvironment.load({});
}

describe("the programs of the page", () => {
  test("are these, and each has its name in the first line", () => {
    expect([...PROGRAMS.keys()]).toEqual([
      "reverse-text.ts",
      "word-game.ts",
      "notebook.ts",
      "word-game.test.ts",
      "owed-rows.ts",
    ]);
    expect(PAGE.match(/```ts/g)).toHaveLength(PROGRAMS.size);
  });

  test("reverse-text.ts rewards the answer and, with its weight, the form", async () => {
    const environment = await environmentOf("reverse-text.ts");
    const task = { question: "abc", answer: "cba" };
    const reply = "<reversed_text>cba</reversed_text>";
    const right = await runRollout(environment, { task, model: scripted([reply]) });
    expect(right.reward).toBeCloseTo(1.2, 12);
    expect(right.metrics).toEqual({ exact: 1, format: 1, length: reply.length, num_turns: 1 });
    const bare = await runRollout(environment, { task, model: scripted(["cba"]) });
    expect(bare.reward).toBeCloseTo(0.2 * 0.2, 12);
  });

  describe("word-game.test.ts", async () => {
    await import(join(folder, "word-game.test.ts"));
  });

  test("word-game.ts marks each guess, and stops at a repeated one", async () => {
    const environment = await environmentOf("word-game.ts");
    const said = (guess: string) => `<think>hm</think><guess>${guess}</guess>`;
    const report = await runRollout(environment, {
      task: { question: "Guess the word of five letters.", answer: "crane" },
      model: scripted([said("trace"), said("trace"), said("crane")]),
      restartAfterEachTurn: true,
    });
    expect(report).toMatchObject({ stop_condition: "repeated_guess", error: null });
    expect(report.completion[1]?.content).toBe("trace: XGGYG");
  });

  test("notebook.ts uses its own database, and asks the judge about the reply", async () => {
    const environment = await environmentOf("notebook.ts");
    const sql = "insert into notes values ('hello')";
    const asked: string[] = [];
    const report = await runRollout(environment, {
      task: { question: "Add a note.", seed_sql: "create table notes (text text)", rows: 1 },
      model: scripted([{ tool_calls: [{ name: "query", arguments: { sql } }] }, "Done, gladly."]),
      openSqlite: () => new DatabaseSync(":memory:"),
      judge: ({ messages }) => {
        asked.push(JSON.stringify(messages));
        return '{"reason": "it is kind", "verdict": "yes"}';
      },
    });
    expect(report).toMatchObject({ error: null, reward: 1.3, state: { rows: 1 } });
    expect(report.metrics).toMatchObject({ kept: 1, polite: 1, query_calls: 1 });
    expect(asked.join()).toMatch(/Question: Add a note[\s\S]*Done, gladly/);
  });
});

test("owed-rows.ts requests what is missing or failed, and tells environments apart", async () => {
  const { owedRows, byEnvironment } = await import(join(folder, "owed-rows.ts"));
  const saved = [
    { example_id: 0, error: null, info: { env_id: "math" } },
    { example_id: 1, error: { error: "ModelError" }, info: '{"env_id": "code"}' },
    { example_id: 1 },
  ];
  expect(owedRows(["a", "b", "c"], saved, 2)).toEqual(["a", "b", "c", "c"]);
  expect([...byEnvironment(saved).keys()]).toEqual(["math", "code", "default"]);
});

describe("the rules of the page", () => {
  const rules = [
    ...Array.from({ length: 22 }, (_, at) => `D${at + 1}`),
    ...Array.from({ length: 12 }, (_, at) => `A${at + 1}`),
  ];

  test("are all there, in order, one line each", () => {
    const lines = Array.from(PAGE.matchAll(/^- \*\*([DA]\d+)\*\* \S.*$/gm), ([, rule]) => rule);
    expect(lines).toEqual(rules);
  });

  test("each have a test that begins with their number", () => {
    const files = globSync(["test/{contract,core,kernel}/**/*.test.ts", "packages/*/test/*.test.ts"], { cwd: ROOT });
    const sources = files.map((file) => readFileSync(join(ROOT, file), "utf8")).join("\n");
    const tested = new Set(Array.from(sources.matchAll(/test\(\s*"([DA]\d+): \S/g), ([, rule]) => rule));
    expect(rules.filter((rule) => !tested.has(rule))).toEqual([]);
  });
});
