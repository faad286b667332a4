/** Commands that only read, on the directory of a run that was interrupted. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { lockDirectory } from "../../src/local/directory-lock.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";
import { type CommandResult, command, rollcall } from "./run-rollcall.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

function json({ stdout, stderr, code }: CommandResult) {
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
}

test("a command waits for another that boots or only reads on the same directory", async () => {
  const directory = temporaryDirectory();
  const lock = await lockDirectory(directory);
  const argv = ["run", "list", "--json"];
  const listed = await rollcall(argv, { ROLLCALL_DIR: directory }, (said) => {
    if (said.includes("is in use by another command: waiting for it")) lock.release();
  });
  expect(json(listed)).toMatchObject({ data: [] });
});

test.each([
  { ends: "Ctrl-C", flags: [], exit: 130, code: "interrupted" },
  { ends: "--timeout", flags: ["--timeout", "1"], exit: 1, code: "timeout" },
])("$ends ends the wait for a directory that is in use", async ({ flags, exit, code }) => {
  const directory = temporaryDirectory();
  const lock = await lockDirectory(directory);
  onTestFinished(() => lock.release());
  const argv = ["run", "list", "--json", ...flags];
  const ended = await rollcall(argv, { ROLLCALL_DIR: directory }, (said, kill) => {
    if (exit === 130 && said.endsWith("waiting for it.\n")) kill("SIGINT");
  });
  expect([ended.code, JSON.parse(ended.stdout).error.code], ended.stderr).toEqual([exit, code]);
});

test("commands that only read play nothing of an unfinished run, and the next that plays continues it at once", async () => {
  const directory = temporaryDirectory();
  let answers = false;
  const model = await startScriptedModel({
    reply: () => (answers ? "It is \\boxed{42}." : { fault: { kind: "hang" } }),
  });
  onTestFinished(() => model.stop());
  const rows = join(directory, "rows.jsonl");
  const row = { question: "What is it?", answer: "So it is.\n#### 42" };
  writeFileSync(rows, `${JSON.stringify(row)}\n`.repeat(4));
  const env = { ROLLCALL_DIR: directory };

  const flags = ["-m", "m", "-b", model.url, "--dataset", rows, "-c", "3"];
  let asked: Promise<void> | null = null;
  const cutOff = await rollcall(["eval", "gsm8k", ...flags], env, (said, kill) => {
    if (asked !== null || !/Run run_/.test(said)) return;
    const all = expect.poll(() => model.requests.length).toBe(3);
    asked = all.then(() => kill("SIGINT"));
  });
  await asked;
  expect(cutOff.code).toBe(130);
  const [id = ""] = /run_\w+/.exec(cutOff.stderr) ?? [];

  const listed = json(await command(["run", "list", "--json"], { env }));
  expect(listed.data).toMatchObject([{ id, status: "running" }]);
  const shown = json(await command(["run", "show", id, "--json"], { env }));
  expect(shown).toMatchObject({ status: "running", counts: { in_flight: 3, pending: 1 } });
  expect(json(await command(["run", "results", id, "--json"], { env })).data).toEqual([]);
  expect(json(await command(["run", "audit", id, "--json"], { env }))).toMatchObject({ holds: true });
  expect(model.requests).toHaveLength(3);

  answers = true;
  const watched = json(await command(["run", "watch", id, "--json"], { env }));
  expect(watched.data).toMatchObject([{ status: "completed", counts: { scored: 4 } }]);
  // The three interrupted calls are sent again.
  expect(model.requests).toHaveLength(7);
});
