import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "../local/test-port.ts";
import { command, rollcall } from "./run-rollcall.ts";

const BIN = join(import.meta.dirname, "../../bin/rollcall.mjs");

let platform: Platform;
let model: ScriptedModel;
let client: RollcallClient;

beforeAll(async () => {
  model = await startScriptedModel({ reply: () => "It is 7." });
  const log = (line: string) => process.stderr.write(`${line}\n`);
  platform = await bootPlatform({ directory: null, port: testPort(24), log });
  client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
});
afterAll(async () => {
  await platform.stop();
  await model.stop();
});

/** Named by its URL: a busy machine may be too slow for the check whether a local platform runs. */
function surroundings() {
  return { ROLLCALL_URL: platform.url, ROLLCALL_API_KEY: platform.key };
}

function run(line: string) {
  return command(line.split(" "), { env: surroundings() });
}

function newRun(limits = {}) {
  const endpoint = { base_url: model.url };
  const request = { environment: "calculator", model: "m", endpoint, num_examples: 2, limits };
  return client.runs.create(request);
}

test("an unknown id is exit 2 and one object with the error", async () => {
  const lines = [
    "run show run_nope",
    "run watch run_nope",
    "rollout show ro_nope",
    "dataset show nope",
    "endpoint show nope",
    "secret delete nope",
  ];
  const results = await Promise.all(lines.map((line) => run(`${line} --json`)));
  for (const [at, { code, stdout }] of results.entries()) {
    expect([code, JSON.parse(stdout).error.code], lines[at]).toEqual([2, "not_found"]);
  }
});

test("for an unknown key the error says what to fix", async () => {
  const env = { ROLLCALL_URL: platform.url, ROLLCALL_API_KEY: "rk_wrong" };
  const { code, stderr } = await command(["run", "list"], { env });
  expect([code, stderr]).toEqual([2, expect.stringContaining("ROLLCALL_API_KEY must hold a key")]);
});

test("a row that is refused is named by its line and field, and nothing of the file is stored", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "rollcall-rows-")), "rows.jsonl");
  writeFileSync(file, '{"question":"1","answer":"#### 1"}\n\n{"question":"2"}\n');
  const { code, stdout } = await run(`dataset push ${file} --environment gsm8k --json`);
  const { error } = JSON.parse(stdout);
  expect([code, error.code, error.param]).toEqual([2, "invalid_row", "rows[1].answer"]);
  expect(error.message).toContain("line 3: ");
  expect((await client.datasets.list()).data).toEqual([]);
});

test("an upload that is interrupted exits 130 and leaves nothing", async () => {
  const env = { ...process.env, ...surroundings() };
  const child = spawn(process.execPath, [BIN, "dataset", "push", "-", "--json"], { env });
  let stdout = "";
  child.stdout.on("data", (part) => {
    stdout += part;
  });
  // More than a pipe holds: once it is written, the upload is in progress.
  const rows = '{"question":"1"}\n'.repeat(100_000);
  await new Promise((resolve) => child.stdin.write(rows, resolve));
  child.kill("SIGINT");
  const [code] = await once(child, "close");
  expect([code, JSON.parse(stdout).error.code]).toEqual([130, "interrupted"]);
  expect((await client.datasets.list()).data).toEqual([]);
});

test("watching several runs ends with 1 if one of them did not complete", async () => {
  const good = await newRun();
  const first = await run(`run watch ${good.id} --json`);
  expect([first.code, JSON.parse(first.stdout).data[0].status]).toEqual([0, "completed"]);
  model.failNext(2, { kind: "status", status: 400 });
  const bad = await newRun({ max_retries: 0 });
  const both = await run(`run watch ${good.id} ${bad.id} --json`);
  const statuses = JSON.parse(both.stdout).data.map(({ status }: { status: string }) => status);
  expect([both.code, statuses]).toEqual([1, ["completed", "failed"]]);
});

test("a run that hangs is watched until the timeout, continues, and can be cancelled", async () => {
  model.failNext(2, { kind: "hang" });
  const { id } = await newRun();
  const watched = await run(`run watch ${id} --timeout 0.5 --json`);
  expect([watched.code, JSON.parse(watched.stdout).error.code]).toEqual([1, "timeout"]);
  expect((await client.runs.get(id)).status).toBe("running");
  // On a busy machine the watch may end before both are dispatched.
  await expect.poll(async () => (await client.runs.get(id)).counts.in_flight).toBe(2);
  const cancelled = await run(`run cancel ${id}`);
  expect([cancelled.code, cancelled.stdout]).toEqual([0, expect.stringContaining(id)]);
  const ended = await run(`run watch ${id}`);
  expect([ended.code, ended.stdout]).toEqual([1, expect.stringContaining("cancelled 2")]);
});

test("runs are listed newest first, as many as requested, with a note if there are more", async () => {
  const ids = [(await newRun()).id, (await newRun()).id];
  const { stdout } = await run("run list --limit 1 --json");
  const page = JSON.parse(stdout);
  expect(page).toMatchObject({ data: [{ id: ids[1] }], last_id: ids[1], has_more: true });
  expect((await run("run list --limit 1")).stdout).toContain("There are more: --limit N");
});

test("an interrupted training is paused, says how to resume it, and can be resumed so", async () => {
  // A platform that is named by its directory includes the policy, which the embedded trainer trains.
  const here = { ROLLCALL_URL: "", ROLLCALL_DIR: platform.directory };
  const argv = ["train", "calculator", "--max-steps", "2", "--eval-examples", "0"];
  let pressed = false;
  const cut = await rollcall(argv, here, (said, kill) => {
    if (pressed || !/^Run run_/m.test(said)) return;
    pressed = true;
    kill("SIGINT");
  });
  const [, goOn = "", id = ""] = /rollcall (train --resume (run_\w+))\n/.exec(cut.stderr) ?? [];
  expect([cut.code, (await client.runs.get(id)).status]).toEqual([130, "paused"]);
  const second = await command(argv, { env: here });
  expect([second.code, second.stderr]).toEqual([2, expect.stringContaining(`${id} is training this`)]);
  const again = await command([...goOn.split(" "), "--json"], { env: here });
  expect([again.code, JSON.parse(again.stdout)]).toMatchObject([
    0,
    { run_id: id, status: "completed", steps: 2, before: null, after: null },
  ]);
});

test("a reader that stops reading ends the results without an error", async () => {
  const { id } = await client.runs.create({
    environment: "calculator",
    model: "m",
    endpoint: { base_url: model.url },
    // More than a pipe holds.
    num_examples: 200,
  });
  await run(`run watch ${id}`);
  const env = { ...process.env, ...surroundings() };
  const child = spawn(process.execPath, [BIN, "run", "results", id], { env });
  let stderr = "";
  child.stderr.on("data", (part) => {
    stderr += part;
  });
  await once(child.stdout, "data");
  child.stdout.destroy();
  expect(await once(child, "close")).toEqual([0, null]);
  expect(stderr).toBe("");
});

test("a secret that is set again is replaced, and listed once", async () => {
  const set = () =>
    command(["secret", "set", "AGAIN", "--from-env", "VALUE", "--json"], { env: { ...surroundings(), VALUE: "hush" } });
  const [first, second] = [await set(), await set()];
  expect(JSON.parse(second.stdout).id).toBe(JSON.parse(first.stdout).id);
  expect(first.stdout + second.stdout).not.toContain("hush");
  expect((await client.secrets.list()).data).toHaveLength(1);
});

test("an unreachable endpoint is added with a note, and a probe of it exits 4", async () => {
  const added = await run("endpoint add gone -b http://127.0.0.1:9/v1 --json");
  expect(added.code).toBe(0);
  expect(JSON.parse(added.stdout).capabilities.error).toEqual(expect.any(String));
  expect((await run("endpoint probe gone")).code).toBe(4);
});
