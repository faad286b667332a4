import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { loadEnvironment as calculator } from "../../environments/calculator/environment.ts";
import { loadEnvironment as gsm8k } from "../../environments/gsm8k/environment.ts";
import { locate, onAnotherDay, unmetNeeds, uploadedRows } from "../../src/cli/commands/env-validate.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { EXIT } from "../../src/cli/exit.ts";
import type { Check } from "../../src/core/validation/validate.ts";
import { type CommandResult, command, rollcall } from "./run-rollcall.ts";

const folder = mkdtempSync(join(tmpdir(), "rollcall-validate-"));

afterAll(() => {
  rmSync(folder, { recursive: true });
});

const HEAD = `
import { dataset, defineEnvironment, MultiTurnEnv, SingleTurnEnv } from "rollcall";
import * as z from "zod";
const Task = z.object({ question: z.string(), answer: z.string() });
const rows = dataset(Task, [{ question: "1 + 1?", answer: "2" }]);
const rewards = { right: ({ completion, answer }) => completion.at(-1)?.content === answer };
`;

/** The folder of a package whose module consists of `HEAD` and these lines. */
function environment(name: string, ...lines: string[]): string {
  const at = join(folder, name);
  mkdirSync(at);
  const manifest = { name, version: "1.2.3", rollcall: { environment: "./environment.ts" } };
  writeFileSync(join(at, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(at, "environment.ts"), [HEAD, ...lines].join("\n"));
  return at;
}

async function validate(...argv: string[]) {
  return told(await command(["env", "validate", ...argv, "--json"]));
}

/** The checks of a validation, by name. */
function told({ code, stdout, stderr }: CommandResult) {
  const answer = JSON.parse(stdout);
  const checks: readonly Check[] = answer.checks ?? [];
  const said = Object.fromEntries(checks.map(({ name, status, message }) => [name, [status, message]]));
  return { code, answer, said, stderr };
}

test("one of Rollcall's own environments is found by its id and passes", async () => {
  const { code, stdout, stderr } = await command(["env", "validate", "calculator", "--examples", "3"]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout.split("\n")[0]).toBe("calculator@1.2.0, 3 rows played");
  expect(stdout).toContain("✓ gold      every gold play scores 1 or more\n");
  expect(stdout).toMatch(/✓ workerd {3}it can be built in a Worker: \d+ kB gzipped/);
  expect(stdout).toMatch(
    /mean rewards: gold 1\.100 \(3\), null 0\.100 \(3\), constant \d\.\d+ \(3\), echo \d\.\d+ \(3\), random \d\.\d+ \(3\)\nready to run\n$/,
  );
});

test("with --json the output is one object with the checks and each policy's mean", async () => {
  const { code, answer } = await validate("guess-number", "--examples", "2", "-a", "max=7");
  expect([code, answer]).toEqual([
    0,
    {
      environment: "guess-number",
      version: "1.1.0",
      examples: 2,
      checks: expect.arrayContaining([{ name: "gold", status: "ok", message: "every gold play scores 1 or more" }]),
      policies: {
        gold: { mean: 1, n: 2 },
        null: { mean: 0, n: 2 },
        constant: { mean: 0, n: 2 },
        echo: { mean: 0, n: 2 },
        random: { mean: expect.any(Number), n: 2 },
      },
      rewards: { least: 0, most: 1 },
      equal_rows: 0,
      failed_functions: [],
      judgements: [],
      deterministic: true,
      result: "ready",
      ok: true,
    },
  ]);
});

test("the judgements of a judge are played, and the report has the reward of each", async () => {
  const { code, stdout } = await command(["env", "validate", "judged-qa", "--examples", "2"]);
  expect(code).toBe(EXIT.good);
  expect(stdout).toContain("✓ judges      asked: default\n");
  expect(stdout).toMatch(
    /, random 0\.000 \(2\)\nrewards by the judge default: wrong 0\.000, partial 0\.500, right 1\.000\nready to run\n$/,
  );
});

test("what could not be checked is named, is not ready to run, and has an exit code of its own", async () => {
  const at = environment(
    "judging",
    "export const loadEnvironment = defineEnvironment({ args: z.strictObject({}), build: () =>",
    "  new SingleTurnEnv({ dataset: rows, rubric: { judges: ['default'], rewards: {",
    "    right: async ({ judge }) => (await judge('Is it right?')) === 'yes' } } }) });",
  );
  const { code, answer, said } = await validate(at);
  expect([code, answer.result, answer.ok]).toEqual([EXIT.inconclusive, "unchecked", true]);
  expect(said["judges"]).toEqual(["unchecked", expect.stringContaining("declare them in the rubric's judgements")]);
  const { stdout } = await command(["env", "validate", at]);
  expect(stdout).toMatch(/\? judges {6}the environment reads[\s\S]*\nnot fully checked: judges\n$/);
});

test("rows are read from a file, or from the examples in the environment's folder", async () => {
  const file = join(folder, "rows.jsonl");
  writeFileSync(file, '{"question": "1 + 1?", "answer": "2"}\n\n{"question": "1 + 2?", "answer": "3"}\n');
  const found = locate("gsm8k");
  const uploaded = await gsm8k();
  expect(await uploadedRows(found, uploaded, file)).toEqual([
    { question: "1 + 1?", answer: "2" },
    { question: "1 + 2?", answer: "3" },
  ]);
  const table = join(folder, "rows.csv");
  writeFileSync(table, 'question,answer\n"1 + 1?",2\n');
  expect(await uploadedRows(found, uploaded, table)).toEqual([{ question: "1 + 1?", answer: "2" }]);
  expect(await uploadedRows(found, uploaded, undefined)).toHaveLength(12);
  const bare = { ...found, folder };
  await expect(uploadedRows(bare, uploaded, undefined)).rejects.toThrow("add --dataset");
  const generated = await calculator();
  expect(await uploadedRows(found, generated, undefined)).toEqual([]);
  await expect(uploadedRows(found, generated, file)).rejects.toThrow("has rows of its own");
});

test("state in a module's variable and the day's date are found, and a print does not spoil --json", async () => {
  const at = environment(
    "forgetful",
    "let asked = 0;",
    "const dated = dataset(Task, () => ({ question: new Date().toDateString(), answer: '2' }));",
    "export const loadEnvironment = defineEnvironment({ args: z.strictObject({}), build: () =>",
    "  new MultiTurnEnv({ dataset: dated, maxTurns: 3, rubric: { rewards },",
    "    setupState: () => { asked = 0; console.log('set up'); return { shown: 0 }; },",
    "    envResponse: (_messages, state) => { asked += 1; state.shown = asked; return 'go on'; } }) });",
  );
  const { code, said, answer } = await validate(at, "--examples", "1");
  expect([code, answer.environment, answer.version, answer.ok]).toEqual([1, "forgetful", "1.2.3", false]);
  expect(said["restarts"]).toEqual(["error", expect.stringContaining("state.shown is 2 and then 1")]);
  expect(said["reset"]).toEqual(["error", expect.stringContaining("row.question is")]);
});

test("values that a module or the build draws or reads from the clock once for all rows are found", async () => {
  const at = environment(
    "drawn-once",
    "const year = new Date().getFullYear();",
    "const drawn = () => dataset(Task, [{ question: year + `: ` + Math.random(), answer: `2` }]);",
    "export const loadEnvironment = defineEnvironment({ args: z.strictObject({}), build: () =>",
    "  new SingleTurnEnv({ dataset: drawn(), rubric: { rewards } }) });",
  );
  const { code, said } = await validate(at);
  const thisYear = new Date().getFullYear();
  expect([code, said["reset"]]).toEqual([1, ["error", expect.stringContaining(`"${thisYear}: 0.`)]]);
  // Its clock is set forward by 400 days: over one New Year or two.
  const again = expect.stringMatching(new RegExp(`and then "(?!${thisYear})\\d{4}: 0\\.`));
  expect(said["reset"]).toEqual(["error", again]);
});

test("a promise that never settles ends the validation with an error message", async () => {
  const at = environment(
    "stuck",
    "export const loadEnvironment = defineEnvironment({ args: z.strictObject({}), build: () =>",
    "  new SingleTurnEnv({ dataset: rows, rubric: { rewards: { never: () => new Promise(() => {}) } } }) });",
  );
  const { code, said } = told(await rollcall(["env", "validate", at, "--json"]));
  expect([code, said]).toEqual([
    1,
    {
      rollouts: ["error", expect.stringContaining("awaits a promise that never settles")],
      workerd: ["ok", expect.any(String)],
    },
  ]);
});

test("a build that returns no environment is an error that says what to return", async () => {
  const at = environment(
    "no-environment",
    "export const loadEnvironment =",
    "  defineEnvironment({ args: z.strictObject({}), build: () => ({}) });",
  );
  const { code, said } = await validate(at);
  const why = expect.stringContaining("build must return an environment");
  expect([code, said["build"]]).toEqual([1, ["error", why]]);
});

test("a module's gold policy is played for rows without an answer, with secrets from the environment", async () => {
  const at = environment(
    "golden",
    "const bare = dataset(z.object({ question: z.string() }), [{ question: 'Say the word.' }]);",
    "export const goldPolicy = () => ['please'];",
    "export const loadEnvironment = defineEnvironment({",
    "  args: z.strictObject({}), needs: ['secret:MY_WORD'], build: () =>",
    "    new MultiTurnEnv({ dataset: bare, maxTurns: 1, envResponse: () => '',",
    "      setupState: async (_state, { secret }) => ({ word: await secret('MY_WORD') }),",
    "      rubric: { rewards: {",
    "        said: ({ completion, state }) => completion.at(-1)?.content === state.word } } }) });",
  );
  const { code, stdout } = await command(["env", "validate", at, "--json"], { env: { MY_WORD: "please" } });
  expect([code, JSON.parse(stdout).policies.gold]).toEqual([0, { mean: 1, n: 1 }]);
});

test("an environment with sql is played, each time with a new database", async () => {
  const at = environment(
    "counting",
    "export const loadEnvironment = defineEnvironment({",
    "  args: z.strictObject({}), needs: ['sql'], build: () =>",
    "    new MultiTurnEnv({ dataset: rows, maxTurns: 1, envResponse: () => '',",
    "      setupState: async (_state, { sql }) => ({",
    "        counted: await sql.exec('create table a(x); insert into a values (1), (2); select count(*) as n from a') }),",
    "      rubric: { rewards: {",
    "        said: ({ completion, state }) => completion.at(-1)?.content === String(state.counted[0].n) } } }) });",
  );
  const { code, said, answer } = await validate(at);
  expect([code, said["needs"]]).toEqual([0, ["ok", "needs sql"]]);
  expect(answer.policies.gold).toEqual({ mean: 1, n: 1 });
});

test("a need that is not met here is reported with what to do", () => {
  expect(unmetNeeds(["fetch", "sql", "secret:NO_SUCH_VARIABLE"])).toEqual([
    "secret:NO_SUCH_VARIABLE is read from the environment variable NO_SUCH_VARIABLE, which is not set",
  ]);
});

test("an environment that cannot be created is an error, not wrong usage", async () => {
  const at = environment(
    "broken",
    "export const loadEnvironment = defineEnvironment({ args: z.strictObject({}), build: () =>",
    "  new SingleTurnEnv({ dataset: rows, rubrik: {} }) });",
  );
  const { code, said } = await validate(at);
  expect([code, said["build"]]).toEqual([1, ["error", expect.stringContaining("rubrik")]]);
});

test.each([
  [
    "asks",
    'const vm = process.getBuiltinModule("node:vm");',
    "export const one = vm.runInNewContext('1');",
    /The \w+ method is not implemented\n {2}at .*asks\/environment\.ts:9:\d+$/,
  ],
  [
    "evaluates",
    "const load = () => new Function('rows', 'return rows')(rows);",
    "export const unused = 0;",
    /EvalError: Code generation from strings .*\n {2}at .*evaluates\/environment\.ts:8:\d+$/,
  ],
])("code that works in Node but not in a Worker is an error with its line: %s", async (name, ...lines) => {
  const [first, second, fault] = lines;
  const rowsOf = first.startsWith("const load") ? "load()" : "rows";
  const at = environment(
    name,
    first,
    second,
    "export const loadEnvironment = defineEnvironment({ args: z.object({}),",
    `build: () => new SingleTurnEnv({ dataset: ${rowsOf}, rubric: { rewards } }) });`,
  );
  const { code, said } = await validate(at);
  expect([code, said["rollouts"]?.[0], said["workerd"]]).toEqual([
    EXIT.bad,
    "ok",
    ["error", expect.stringMatching(fault)],
  ]);
});

test("arguments that do not fit are wrong usage", async () => {
  const { code, answer } = await validate("calculator", "-a", "max=1");
  expect([code, answer.error.message]).toEqual([2, expect.stringContaining("--args: ")]);
});

test.each([
  [["nowhere"], "the package nowhere is not installed here"],
  [["./nowhere"], "does not exist"],
  [["calculator", "--examples", "0"], "--examples: must be a whole number of at least 1"],
  [[], "one environment is required"],
])("%j is wrong usage, with the reason", async (argv, why) => {
  const validate = COMMANDS.find(({ name }) => name === "env validate");
  await expect(validate?.run(argv)).rejects.toMatchObject({
    exit: EXIT.usage,
    message: expect.stringContaining(why),
  });
});

test("on another day every way of reading the clock gives another day, and afterwards the real one", async () => {
  const readings = () => [new Date().toDateString(), new Date(Date.now()).toDateString(), Date().slice(0, 15)];
  const today = readings();
  const other = await onAnotherDay(async () => readings());
  expect(other.every((text, at) => text !== today[at])).toBe(true);
  expect(new Set(other).size).toBe(1);
  expect(await onAnotherDay(async () => new Date(0).getTime())).toBe(0);
  await expect(onAnotherDay(() => Promise.reject(new Error("x")))).rejects.toThrow("x");
  expect(readings()).toEqual(today);
});
