/** The pages for people who come from a loop or from verifiers: their files are written, and their commands run in order. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { textOf } from "../../src/contract/messages.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "../local/test-port.ts";
import { documentedCommands } from "./readme-commands.ts";
import { type CommandResult, command } from "./run-rollcall.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

const DOCS = resolve(import.meta.dirname, "../../docs");
/** A block whose first line names its file. */
const FILE = /```\w+\n\/\/ (\S+)\n([\s\S]*?)```/g;

let platform: Platform;
let model: ScriptedModel;

beforeAll(async () => {
  platform = await bootPlatform({
    directory: null,
    port: testPort(0),
    log: (line) => process.stderr.write(`${line}\n`),
  });
  model = await startScriptedModel({ reply: ({ messages }) => solve(textOf(messages.at(-1))) });
});
afterAll(async () => {
  await platform.stop();
  await model.stop();
});

function solve(question: string): string {
  const [, a, b] = /(\d+) \+ (\d+)/.exec(question) ?? [];
  return `It is \\boxed{${Number(a) + Number(b)}}.`;
}

/** Writes the files of a page into a new folder and runs its commands there. */
async function follow(page: string, files: Readonly<Record<string, string>> = {}): Promise<CommandResult[]> {
  const text = readFileSync(join(DOCS, page), "utf8");
  const folder = temporaryDirectory();
  const written = Array.from(text.matchAll(FILE), ([, name = "", body = ""]) => [name, body] as const);
  for (const [name, body] of [...written, ...Object.entries(files)]) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), body);
  }
  const results: CommandResult[] = [];
  for (const documented of documentedCommands(text)) {
    const words = documented.command.replaceAll("MODEL_URL", model.url).replaceAll("MODEL", "scripted").split(" ");
    expect(words.slice(0, 2)).toEqual(["npx", "rollcall"]);
    const result = await command(words.slice(2), { env: { ROLLCALL_DIR: platform.directory }, cwd: folder });
    expect(result.code, `${documented.command}\n${result.stderr}${result.stdout}`).toBe(0);
    results.push(result);
  }
  return results;
}

test("from a bare loop: the program and the environment score every rollout of the same rows", async () => {
  const [, rows = ""] =
    /```json\n(\{"question"[\s\S]*?)```/.exec(readFileSync(join(DOCS, "from-a-loop.md"), "utf8")) ?? [];
  const [agent, validated, evaluated, ...more] = await follow("from-a-loop.md", { "rows.jsonl": rows });
  expect(more).toEqual([]);
  expect(agent?.stdout).toMatch(/\nagent +1\.000 ± 0\.000 +3 +12 /);
  expect(validated?.stdout).toMatch(/✓ gold +every gold play scores 1 or more/);
  expect(evaluated?.stdout).toMatch(/\nsums +1\.000 ± 0\.000 +3 +12 /);
});

test("from verifiers: the environment in TypeScript is fit to run, and scores every rollout", async () => {
  const [validated, evaluated, ...more] = await follow("from-verifiers.md");
  expect(more).toEqual([]);
  expect(validated?.stdout).toMatch(/✓ gold +every gold play scores 1 or more/);
  expect(evaluated?.stdout).toMatch(/\nsums +1\.000 ± 0\.000 +2 +8 /);
});
