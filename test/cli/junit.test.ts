/**
 * Every report is checked against the schema of Jenkins' xUnit plugin and read back with a strict XML parser.
 * test/fixtures/junit-10.xsd: jenkinsci/xunit-plugin, model/xsd/junit-10.xsd (MIT), as pytest 9.2.0 has it in its
 * sources.
 */
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SaxesParser } from "saxes";
import { expect, test } from "vitest";
import { validateXML } from "xmllint-wasm";
import { checkFolderOf } from "../../src/cli/argument-values.ts";
import type { GateResult } from "../../src/cli/eval/gates.ts";
import { writeJunit } from "../../src/cli/eval/junit.ts";
import { taskCases } from "../../src/cli/eval/task-cases.ts";
import type { ResultRow } from "../../src/contract/run.ts";
import { RESULT_ROW } from "../kernel/http/examples.ts";
import { aRun } from "./a-run.ts";

const JENKINS = readFileSync(join(import.meta.dirname, "../fixtures/junit-10.xsd"), "utf8");

interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: Element[];
  text: string;
}

/** Throws if the text is not well-formed XML 1.0. */
function parsed(text: string): Element {
  const root: Element = { name: "", attributes: {}, children: [], text: "" };
  const open = [root];
  const parser = new SaxesParser();
  parser.on("error", (error) => {
    throw error;
  });
  parser.on("opentag", ({ name, attributes }) => {
    const element = { name, attributes, children: [], text: "" };
    open.at(-1)?.children.push(element);
    open.push(element);
  });
  parser.on("closetag", () => open.pop());
  parser.on("text", (part) => {
    const inside = open.at(-1);
    if (inside !== undefined) inside.text += part;
  });
  parser.write(text).close();
  return root.children[0] ?? root;
}

async function report(
  rows: readonly Partial<ResultRow>[],
  { gates = [], metric = null, tasks = 1, best }: Partial<Judged> = {},
): Promise<Element> {
  const file = join(mkdtempSync(join(tmpdir(), "rollcall-junit-")), "report.xml");
  const run = { ...aRun({}), num_examples: tasks, ...(best !== undefined && { max_reward: best }) };
  await writeJunit(file, run, await taskCases(run, asRows(rows), metric), gates);
  const text = readFileSync(file, "utf8");
  expect(await schemaErrors(text)).toEqual([]);
  return parsed(text);
}

async function schemaErrors(contents: string): Promise<string[]> {
  const xml = [{ fileName: "report.xml", contents }];
  const schema = [{ fileName: "junit-10.xsd", contents: JENKINS }];
  const { errors } = await validateXML({ xml, schema });
  return errors.map(({ message }) => message);
}

test("the validator refuses elements outside the schema", async () => {
  const [message] = await schemaErrors('<testsuites skipped="1"/>');
  expect(message).toContain("The attribute 'skipped' is not allowed");
});

interface Judged {
  readonly gates: readonly GateResult[];
  readonly metric: string | null;
  readonly tasks: number;
  readonly best: number;
}

async function* asRows(rows: readonly Partial<ResultRow>[]): AsyncGenerator<ResultRow> {
  for (const row of rows) yield { ...RESULT_ROW, ...row };
}

/** The first child of each case of the first suite, or that it passed. */
function kinds({ children: [suite] }: Element): (string | undefined)[] {
  return suite?.children.map(({ children }) => children[0]?.name ?? "passed") ?? [];
}

const failed = { outcome: "failed", reason: "provider", reward: null, metrics: {} } as const;
const error = { error: "E", message: "503 overloaded", error_chain_str: "", error_chain_repr: "" };

test("a task is one case: passed by its mean, failed, in error, or skipped", async () => {
  const rows: Partial<ResultRow>[] = [
    { group: 0, slot: 0, reward: 1 },
    { group: 0, slot: 1, reward: 0 },
    { group: 1, slot: 0, reward: 0, timing: { start_time: 0, total: 1.25 } },
    { group: 1, slot: 1, reward: 0.5, timing: { start_time: 0, total: 1 } },
    { group: 2, ...failed, error: { ...error, retryable: true } },
    { group: 3, ...failed, outcome: "cancelled", reason: "user" },
    { group: 4, ...failed, superseded_by: "ro_later" },
  ];
  const root = await report(rows, { tasks: 5 });
  expect(kinds(root)).toEqual(["passed", "failure", "error", "skipped", "skipped"]);
  const counts = { tests: "5", failures: "1", errors: "1", skipped: "2" };
  const { skipped, ...ofAll } = counts;
  expect(root.attributes).toMatchObject(ofAll);
  const [suite] = root.children;
  expect(suite?.attributes).toMatchObject({ name: "calculator@1.2.0", ...counts });
  const cases = suite?.children ?? [];
  expect(cases[1]?.attributes).toEqual({
    ...{ classname: "calculator@1.2.0", name: "example 0", time: "2.250" },
  });
  const messages = cases.map(({ children }) => children[0]?.attributes["message"]);
  expect(messages).toEqual([
    undefined,
    "reward 0.250 is under 0.5 (2 of 2 rollouts scored)",
    "failed (provider): 503 overloaded (0 of 1 rollouts scored)",
    "cancelled (user): no score (0 of 1 rollouts scored)",
    "the run ended before it",
  ]);
  expect(cases[1]?.children[0]?.text).toContain(`npx rollcall rollout show ${RESULT_ROW.rollout_id}`);
});

test("whatever a model writes, the file is well-formed, and characters that XML cannot hold are shown as codes", async () => {
  const said = `<b a="1">&amp;</b> ]]> \u0000\u0001\u0008\u001b[31m\ufffe\ud800 😀\r\n\ttab`;
  const root = await report([{ reward: 0, completion: [{ role: "assistant", content: said }] }]);
  const text = root.children[0]?.children[0]?.children[0]?.text ?? "";
  expect(text).toContain('<b a="1">&amp;</b> ]]> \\u{0}\\u{1}\\u{8}\\u{1b}[31m\\u{fffe}');
  expect(text).toContain("\ufffd 😀\r\n\ttab");
  const gate = { gate: "baseline", verdict: "failed", message: 'a "b"\n<c>\u0007' } as const;
  const suite = (await report([{}], { gates: [gate] })).children[1];
  const message = suite?.children[0]?.children[0]?.attributes["message"];
  expect(message).toBe('a "b"\n<c>\\u{7}');
});

test("a declared best reward is a property of the suite", async () => {
  const root = await report([{ group: 0, reward: 1 }], { best: 1.1 });
  const [properties] = root.children[0]?.children ?? [];
  expect(properties).toMatchObject({
    name: "properties",
    children: [{ name: "property", attributes: { name: "max_reward", value: "1.1" } }],
  });
});

test("a long reply is cut, and a reply in parts is read as its text", async () => {
  const parts = [
    { type: "text", text: "one" },
    { type: "text", text: "two" },
  ];
  const rows: Partial<ResultRow>[] = [
    { group: 0, reward: 0, completion: [{ role: "assistant", content: "x".repeat(10_000) }] },
    { group: 1, reward: 0, completion: [{ role: "assistant", content: parts }] },
  ];
  const [long, short] = (await report(rows, { tasks: 2 })).children[0]?.children ?? [];
  expect(long?.children[0]?.text.length).toBeLessThan(2200);
  expect(short?.children[0]?.text).toMatch(/\n\nonetwo$/);
});

test("gates are in a separate suite, and another score decides if it is named", async () => {
  const gates: GateResult[] = [
    { gate: "min_scored", verdict: "passed", message: "all" },
    { gate: "fail_under", verdict: "failed", message: "under" },
    { gate: "baseline", verdict: "inconclusive", message: "unclear" },
  ];
  const root = await report([{ reward: 1, metrics: { right: 0 } }], { gates, metric: "right" });
  expect(kinds(root)).toEqual(["failure"]);
  const suite = root.children[1];
  expect(suite?.attributes).toMatchObject({
    name: "gates",
    tests: "3",
    failures: "1",
    errors: "1",
  });
  const names = suite?.children.map((one) => [one.attributes["name"], one.children[0]?.name]);
  expect(names).toEqual([
    ["min_scored", undefined],
    ["fail_under", "failure"],
    ["baseline", "error"],
  ]);
  expect(root.attributes).toMatchObject({ tests: "4", failures: "2" });
});

test("a file in a missing folder is refused beforehand", () => {
  expect(() => checkFolderOf("/nowhere/at/all/report.xml", "junit")).toThrow("does not exist");
  checkFolderOf("report.xml", "junit");
});

test("a file that cannot be written is an error with the flag's name", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-junit-"));
  const written = writeJunit(folder, aRun({}), [], []);
  await expect(written).rejects.toMatchObject({ exit: 2, failure: { param: "junit" } });
});
