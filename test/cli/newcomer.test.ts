/**
 * README from top to bottom, typed into one terminal in a fresh clone of this working tree. Values that the page leaves
 * open (a model, its endpoint, a key, the id of a run) are filled in; the endpoint is a scripted one that has the
 * answers of the rows in the repository. `npm test` is only checked for existence: this file is one of its tests.
 *
 * The installed packages are linked from this tree, in the state that `npm start` would install: that takes a minute
 * and is the first step of CI.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { textOf } from "../../src/contract/messages.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { copyPackages, plainEnvironment, succeedIn } from "../local/in-a-folder.ts";
import { testPort } from "../local/test-port.ts";
import { Terminal } from "./newcomer-terminal.ts";
import { type DocumentedCommand, documentedCommands } from "./readme-commands.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const ONLY_LOOKED_UP = /^npm test\b/;

/** The last output; the ids in place of the page's `run_…` and `ro_…`. */
interface Ids {
  run: string;
  rollout: string;
}

const clone = mkdtempSync(join(tmpdir(), "rollcall-newcomer-"));
let model: ScriptedModel;
let terminal: Terminal;
let platform: ChildProcess | null = null;

beforeAll(async () => {
  const listed = await succeedIn(ROOT, ["git", "ls-files", "-co", "--exclude-standard"]);
  const deleted = await succeedIn(ROOT, ["git", "ls-files", "-d"]);
  const gone = new Set(deleted.split("\n"));
  for (const file of listed.split("\n").filter((name) => name !== "" && !gone.has(name))) {
    cpSync(join(ROOT, file), join(clone, file));
  }
  await copyPackages(ROOT, clone);
  model = await startScriptedModel({ reply: ({ messages }) => solve(textOf(messages.at(-1))) });
  terminal = new Terminal(clone, plainEnvironment());
});

afterAll(async () => {
  terminal.close();
  if (platform?.pid !== undefined) process.kill(-platform.pid, "SIGKILL");
  await model.stop();
  await rm(clone, { recursive: true });
});

const ROWS = readFileSync(join(ROOT, "environments/gsm8k/examples.jsonl"), "utf8").trim();
const SOLUTIONS = new Map<string, string>(
  ROWS.split("\n").map((line) => {
    const { question, answer } = JSON.parse(line);
    return [question, answer];
  }),
);

function solve(question: string): string {
  const [, answer] = /####\s*(.+)$/.exec(SOLUTIONS.get(question) ?? "") ?? [];
  return `\\boxed{${answer}}`;
}

test("README, from top to bottom, does what it says", async () => {
  const documented = documentedCommands(readFileSync(join(clone, "README.md"), "utf8"));
  expect(documented.length).toBeGreaterThan(4);
  const ids: Ids = { run: "", rollout: "" };
  for (const step of documented) {
    if (ONLY_LOOKED_UP.test(step.command)) {
      expect(manifest.scripts.test).toBeDefined();
      continue;
    }
    const said = step.command.startsWith("npm start") ? await start() : await type(step, ids);
    expectShown(step, said);
    ids.run = /run_[a-z0-9]{20,}/.exec(said)?.[0] ?? ids.run;
    ids.rollout = /ro_[a-z0-9_]{20,}/.exec(said)?.[0] ?? ids.rollout;
  }
  await stop();
  expect(existsSync(join(clone, ".rollcall/platform.json"))).toBe(false);
});

async function type({ command }: DocumentedCommand, ids: Ids): Promise<string> {
  const { code, text } = await terminal.type(fillIn(command, ids));
  expect(code, `${command}\n${text}`).toBe(0);
  return text;
}

function fillIn(command: string, { run, rollout }: Ids): string {
  const { url, key } = ready();
  return command
    .replaceAll("https://your-endpoint/v1", model.url)
    .replaceAll(/\bMODEL\b/g, "newcomer")
    .replaceAll("sk-…", "sk-newcomer")
    .replaceAll("rk_…", key)
    .replaceAll("$KEY", key)
    .replaceAll("http://127.0.0.1:8787", url)
    .replaceAll("run_…", run)
    .replaceAll("ro_…", rollout);
}

/** `npm start` must have made the platform. */
function ready(): { url: string; key: string } {
  if (platform === null) return { url: "", key: "" };
  return JSON.parse(readFileSync(join(clone, ".rollcall/platform.json"), "utf8"));
}

/**
 * The first words of each line that the page shows begin a line of the output, except for a curve, which differs each
 * time.
 */
function expectShown({ command, shown }: DocumentedCommand, said: string): void {
  const firstWords = new Set(said.split("\n").map(firstWord));
  for (const line of shown.filter((it) => !/^\s*(…|$)|[│┤└]/.test(it))) {
    expect(firstWords, `${command} shows: ${line}\n${said}`).toContain(firstWord(line));
  }
}

function firstWord(line: string): string {
  return line.trim().split(/\s+/)[0] ?? "";
}

/** The output until the platform is ready. */
function start(): Promise<string> {
  // The demo is shortened: the page does not promise its length.
  const short = ["--max-steps", "1", "--eval-examples", "4"];
  const args = ["start", "--", "--port", String(testPort(40)), ...short];
  const child = spawn("npm", args, { cwd: clone, env: plainEnvironment(), detached: true });
  platform = child;
  return new Promise((resolve, reject) => {
    let said = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (part) => {
        said += part;
        if (said.includes("Ctrl-C stops it")) resolve(said);
      });
    }
    child.on("close", (code) => {
      platform = null;
      reject(new Error(`npm start ends with ${code}:\n${said}`));
    });
  });
}

/** Ctrl-C: a terminal sends it to npm and to the processes that npm started. */
function stop(): Promise<void> {
  return new Promise((resolve) => {
    if (platform?.pid === undefined) return resolve();
    platform.on("close", () => resolve());
    process.kill(-platform.pid, "SIGINT");
  });
}
