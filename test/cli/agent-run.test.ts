/** `rollcall agent run` with real programs, on a local platform with a scripted model. */
import { chmodSync, existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { PlayedRollout } from "../../src/cli/agent/worker.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { RollcallClient, type RunRequestInput, type RunView } from "../../src/sdk/client.ts";
import { type ScriptedModel, type ScriptedModelOptions, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "../local/test-port.ts";
import { type CommandResult, command, rollcall } from "./run-rollcall.ts";

const NODE = process.execPath;
const SECRET = "rk_a-key-that-programs-must-not-get";

let platform: Platform;
let client: RollcallClient;
const models: ScriptedModel[] = [];
let agents = 0;

beforeAll(async () => {
  const log = (line: string) => process.stderr.write(`${line}\n`);
  platform = await bootPlatform({ directory: null, port: testPort(0), log });
  client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
});
afterAll(() => platform.stop());
afterEach(async () => {
  for (const model of models.splice(0)) await model.stop();
});

function program(name: string): string {
  return join(import.meta.dirname, "agent-programs", name);
}

function temporaryFile(name: string): string {
  return join(mkdtempSync(join(tmpdir(), "rollcall-agent-test-")), name);
}

async function model(reply: ScriptedModelOptions["reply"]): Promise<ScriptedModel> {
  const started = await startScriptedModel({ reply });
  models.push(started);
  return started;
}

interface Begun {
  readonly run: RunView;
  readonly name: string;
}

/** A run of an agent with a name of its own. */
async function begin({ url }: ScriptedModel, more: Partial<RunRequestInput> = {}): Promise<Begun> {
  agents += 1;
  const name = `tester-${agents}`;
  const request = { environment: "agent", dataset: [{ question: "What is 2 + 2?" }], model: "scripted", ...more };
  const agent = { lease_s: 5, ...more.agent, name };
  return { run: await client.runs.create({ ...request, agent, endpoint: { base_url: url } } as RunRequestInput), name };
}

/** Plays the run to its end; its own variables include a key of the platform. */
function play({ run, name }: Begun, words: readonly string[], flags: readonly string[] = []): Promise<CommandResult> {
  const argv = ["agent", "run", "--name", name, "--run", run.id, "--json", ...flags, "--", ...words];
  return command(argv, { env: { ROLLCALL_DIR: platform.directory, ROLLCALL_API_KEY: SECRET } });
}

function played({ stdout }: CommandResult): PlayedRollout[] {
  const lines = stdout.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line));
}

async function rolloutsOf({ run }: Begun) {
  const ended = await client.runs.get(run.id);
  const { data } = await client.rollouts.list(run.id);
  return { ended, rollouts: await Promise.all(data.map(({ id }) => client.rollouts.get(id))) };
}

/** Whether a process of the group is left, also one that has ended and was not collected yet. */
function isGroupAlive(leader: number): boolean {
  try {
    return process.kill(-leader, 0);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false;
    throw error;
  }
}

const script = (text: string) => [NODE, "-e", text];

test("a program with OpenAI's client plays every rollout, and its result file has the rewards", async () => {
  const chat = await model(({ messages }) => (messages.length > 1 ? "yes" : "4"));
  const rows = Array.from({ length: 3 }, (_, at) => ({ question: `What is ${at} + 2?` }));
  const begun = await begin(chat, { dataset: rows });
  const result = await play(begun, [NODE, program("openai-client.ts")], ["-c", "2"]);
  expect(result.code, result.stderr).toBe(0);
  expect(played(result)).toHaveLength(3);
  for (const line of played(result)) {
    expect(line).toMatchObject({ object: "played_rollout", run_id: begun.run.id, state: "finished", exit_code: 0 });
  }
  const { ended, rollouts } = await rolloutsOf(begun);
  expect(ended).toMatchObject({ status: "completed", counts: { scored: 3 }, report: { reward: { mean: 1 } } });
  expect(rollouts.map(({ turns }) => turns.length)).toEqual([2, 2, 2]);
  expect(chat.requests).toHaveLength(6);
  expect(result.stderr).toContain("Rollouts: 3 finished");
});

test("what a program with Anthropic's client prints is the answer, and the environment's rubric scores it", async () => {
  const chat = await model(() => "It is \\boxed{4}.");
  const dataset = [{ question: "What is 2 + 2?", answer: "So it is.\n#### 4" }];
  const begun = await begin(chat, { environment: "gsm8k", dataset });
  const result = await play(begun, [NODE, program("anthropic-client.ts")]);
  expect(result.code, result.stderr).toBe(0);
  const { ended, rollouts } = await rolloutsOf(begun);
  expect(ended).toMatchObject({ counts: { scored: 1 }, report: { reward: { mean: 1 } } });
  expect(rollouts[0]?.turns).toHaveLength(1);
});

test("a program gets its task by variables and files in a folder of its own, and not the key of the command", async () => {
  const chat = await model(() => "unused");
  const long = "x".repeat(200_000);
  const begun = await begin(chat, { dataset: [{ question: "short" }, { question: long }] });
  const text = `const { readFileSync } = require("node:fs");
    const { ROLLCALL_TASK: task, ROLLCALL_TASK_FILE: file, ROLLCALL_PROMPT: prompt, ...all } = process.env;
    const answer = JSON.stringify({ task, prompt, held: Object.values(all).includes("${SECRET}"),
      same: require("node:path").dirname(file) === process.cwd(), row: JSON.parse(readFileSync("task.json", "utf8")).question.length,
      messages: JSON.parse(readFileSync(all.ROLLCALL_PROMPT_FILE, "utf8")).length, run: all.ROLLCALL_RUN_ID,
      rollout: all.OPENAI_BASE_URL.includes(all.ROLLCALL_ROLLOUT_ID), model: all.ROLLCALL_MODEL, key: all.ANTHROPIC_API_KEY });
    console.log(answer);`;
  const result = await play(begun, script(text));
  expect(result.code, result.stderr).toBe(0);
  const { rollouts } = await rolloutsOf(begun);
  const said = rollouts.map(({ completion }) => JSON.parse(String(completion?.at(-1)?.["content"])));
  const same = { held: false, same: true, messages: 1, run: begun.run.id, rollout: true, model: "scripted" };
  const [short, other] = said.toSorted((a, b) => a.row - b.row);
  expect(short).toEqual({ ...same, task: '{"question":"short"}', prompt: "short", row: 5, key: "[key]" });
  expect(other).toEqual({ ...same, row: 200_000, key: "[key]" });
});

test.each([
  [
    "process.exitCode = 3; console.error('no tool', process.env.OPENAI_API_KEY)",
    "ExitCode",
    "exit code 3\nno tool [key]",
  ],
  ["process.kill(process.pid, 'SIGKILL')", "Signal", "ended by SIGKILL"],
  ["fs.writeFileSync(process.env.ROLLCALL_RESULT_FILE, '{')", "BadResult", "the result file: is not JSON"],
  ["fs.mkdirSync(process.env.ROLLCALL_RESULT_FILE)", "BadResult", "the result file: is not a regular file"],
  [
    "fs.writeFileSync(process.env.ROLLCALL_RESULT_FILE, JSON.stringify({ rewards: { solved: 'yes' } }))",
    "BadResult",
    "the result file: rewards.solved: ",
  ],
  [
    "fs.writeFileSync(process.env.ROLLCALL_RESULT_FILE, 'x'.repeat(2_000_000))",
    "BadResult",
    "the result file: has 2000000 bytes; the maximum is 1048576",
  ],
])("%s fails the rollout with %s", async (text, error, message) => {
  const begun = await begin(await model(() => "unused"));
  const result = await play(begun, script(text));
  expect(result.code, result.stderr).toBe(0);
  expect(played(result)).toMatchObject([
    { state: "failed", error: { error, message: expect.stringContaining(message) } },
  ]);
  const { ended, rollouts } = await rolloutsOf(begun);
  expect(ended.counts.failed).toEqual({ agent: 1 });
  expect(rollouts[0]?.error).toMatchObject({ error, message: expect.stringContaining(message) });
});

test("an error in the result file of a program that exits with 0 has the class that the program names", async () => {
  const begun = await begin(await model(() => "unused"));
  const error = JSON.stringify({ error: { kind: "environment", error: "NoDisk", message: "the disk is full" } });
  const result = await play(
    begun,
    script(`fs.writeFileSync(process.env.ROLLCALL_RESULT_FILE, ${JSON.stringify(error)})`),
  );
  expect(played(result)).toMatchObject([{ state: "failed", error: { error: "NoDisk" } }]);
  expect((await rolloutsOf(begun)).ended.counts.failed).toEqual({ environment: 1 });
});

test("of a long output the last 64 KiB are the answer, from the beginning of a character on", async () => {
  const begun = await begin(await model(() => "unused"));
  await play(begun, script("process.stdout.write('€'.repeat(100_000))"));
  const { rollouts } = await rolloutsOf(begun);
  expect(rollouts[0]?.completion?.at(-1)?.["content"]).toBe("€".repeat(Math.floor((64 * 1024) / 3)));
});

test("a program that cannot be started ends the command, and its rollouts are given back", async () => {
  const chat = await model(() => "4");
  const begun = await begin(chat, { dataset: [{ question: "a" }, { question: "b" }] });
  const missing = await play(begun, ["no-such-program-at-all"]);
  expect([missing.code, played(missing)]).toMatchObject([
    2,
    [{ error: { message: expect.stringContaining("on PATH") } }],
  ]);
  const broken = temporaryFile("broken");
  writeFileSync(broken, "#!/no/such/interpreter\n");
  chmodSync(broken, 0o755);
  const result = await play(begun, [broken]);
  expect(result.code).toBe(2);
  expect(result.stderr).toContain(`${broken}: the program cannot be started: `);
  const again = await client.agents.lease(begun.name, { worker: "another", max: 2 });
  expect(again.length).toBeGreaterThan(0);
  const { ended } = await rolloutsOf(begun);
  expect(ended).toMatchObject({ status: "running", counts: { failed: {} } });
  await client.runs.cancel(begun.run.id);
});

test("after kill -9 of a worker another one ends its rollout, and the model is called once for each turn", async () => {
  const chat = await model(({ messages }) => `${messages.at(-1)?.content}!`);
  const begun = await begin(chat);
  const go = temporaryFile("go");
  const words = [NODE, program("two-turns.ts"), go];
  const argv = ["agent", "run", "--name", begun.name, "--show-output", "--", ...words];
  await rollcall(argv, { ROLLCALL_DIR: platform.directory }, (said, kill) => {
    if (said.includes("after turn 1")) kill("SIGKILL");
  });
  // The first program is still there and continues; until its lease expires its calls count.
  writeFileSync(go, "");
  const result = await play(begun, words);
  expect(played(result)).toMatchObject([{ state: "finished" }]);
  const { ended, rollouts } = await rolloutsOf(begun);
  expect(ended.counts.in_flight).toBe(0);
  expect(rollouts[0]?.completion?.at(-1)?.["content"]).toBe("one! two!");
  expect(chat.requests.map(({ last_user }) => last_user)).toEqual(["one", "two"]);
});

test("Ctrl-C stops the programs and gives their rollouts back: another worker leases them at once", async () => {
  const begun = await begin(await model(() => "unused"), { agent: { name: "x", lease_s: 3600 } });
  const argv = ["agent", "run", "--name", begun.name, "--show-output", "--json"];
  // It leaves SIGTERM to its own child, which must end with it.
  const words = script(`require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => 0, 1e6)"]);
    process.on("SIGTERM", () => process.exit(0)); console.log("here: " + process.pid); setInterval(() => 0, 1e6);`);
  let pid = 0;
  const result = await rollcall([...argv, "--", ...words], { ROLLCALL_DIR: platform.directory }, (said, kill) => {
    const [, printed] = /here: (\d+)/.exec(said) ?? [];
    if (printed === undefined || pid !== 0) return;
    pid = Number(printed);
    kill("SIGINT");
  });
  expect(result.code, result.stderr).toBe(130);
  const [line, error] = result.stdout
    .trim()
    .split("\n")
    .map((text) => JSON.parse(text));
  expect([line.state, error.error.code]).toEqual(["released", "interrupted"]);
  await expect.poll(() => isGroupAlive(pid)).toBe(false);
  const [leased] = await client.agents.lease(begun.name, { worker: "another" });
  expect(leased).toMatchObject({ rollout_id: line.rollout_id, lease: 2 });
  await client.runs.cancel(begun.run.id);
});

test("a rollout that the platform ends stops its program", async () => {
  const begun = await begin(await model(() => "unused"));
  const here = temporaryFile("here");
  const hanging = play(begun, script(`fs.writeFileSync(${JSON.stringify(here)}, ""); setInterval(() => 0, 1e6);`));
  await expect.poll(() => existsSync(here)).toBe(true);
  await client.runs.cancel(begun.run.id);
  const result = await hanging;
  expect([result.code, played(result)]).toMatchObject([0, [{ state: "ended", signal: "SIGTERM", error: null }]]);
});

/** `rollcall eval agent` with a program, on rows of its own. */
function evalFlags({ url }: ScriptedModel, rows: number): string[] {
  const file = temporaryFile("rows.jsonl");
  const lines = Array.from({ length: rows }, (_, at) => JSON.stringify({ question: `What is ${at} + 2?` }));
  writeFileSync(file, lines.join("\n"));
  return ["eval", "agent", "--dataset", file, "-m", "scripted", "-b", url, "--json"];
}

test("an eval with a program after -- plays its own run, and takes a file of the folder as its argument", async () => {
  const chat = await model(({ messages }) => (messages.length > 1 ? "yes" : "4"));
  const argv = [...evalFlags(chat, 4), "-c", "2", "--max-turns", "2", "--", NODE, "openai-client.ts"];
  const cwd = join(import.meta.dirname, "agent-programs");
  const result = await command(argv, { env: { ROLLCALL_DIR: platform.directory }, cwd });
  expect(result.code, result.stderr).toBe(0);
  expect(JSON.parse(result.stdout)).toMatchObject({ status: "completed", counts: { scored: 4 }, turns: 8 });
});

test("an eval shows why its program fails", async () => {
  const argv = [...evalFlags(await model(() => "unused"), 2), "--", ...script("throw new RangeError('too far')")];
  const result = await command(argv, { env: { ROLLCALL_DIR: platform.directory } });
  expect([result.code, JSON.parse(result.stdout)]).toMatchObject([1, { failed_by_class: { agent: 2 } }]);
  expect(result.stderr).toMatch(/ro_\w+ +failed +\d+\.\d s +ExitCode: exit code 1⏎[^\n]*RangeError: too far/);
});

test("an interrupted eval prints the command that continues it, with its agent and its program", async () => {
  const chat = await model(() => "done");
  const go = temporaryFile("go");
  const finish = "fs.writeFileSync(process.env.ROLLCALL_RESULT_FILE, JSON.stringify({ rewards: { solved: 1 } }))";
  const waiting = `fs.writeFileSync('${go}.here', ''); setInterval(() => { if (fs.existsSync('${go}')) { ${finish}; process.exit(0); } }, 20);`;
  const argv = [...evalFlags(chat, 1), "--", ...script(waiting)];
  const env = { ROLLCALL_DIR: platform.directory };
  let stop = (): void => undefined;
  const begun = rollcall(argv, env, (_, kill) => {
    stop = () => kill("SIGINT");
  });
  await expect.poll(() => existsSync(`${go}.here`)).toBe(true);
  stop();
  const first = await begun;
  expect(first.code, first.stderr).toBe(130);
  const [, flags = ""] = /rollcall eval (--agent eval-\w+ --resume run_\w+) -- /.exec(first.stderr) ?? [];
  expect(first.stderr).toContain(`-- ${NODE} -e '`);
  const [, name, , run = ""] = flags.split(" ");
  const other = await command(["eval", "--agent", "other", "--resume", run, "--", ...script(waiting)], { env });
  expect([other.code, other.stderr]).toEqual([
    ...[2, expect.stringContaining(`agent.name is "${name}", not "other". Start a new run instead`)],
  ]);
  const shown = await command(["run", "show", run], { env });
  expect(shown.stdout).toMatch(new RegExp(`agent +${name}`));
  writeFileSync(go, "");
  const again = await command(["eval", ...flags.split(" "), "--json", "--", ...script(waiting)], { env });
  expect(again.code, again.stderr).toBe(0);
  expect(JSON.parse(again.stdout)).toMatchObject({ counts: { scored: 1 } });
});

test("an eval whose program cannot be started cancels its run", async () => {
  const broken = temporaryFile("broken");
  writeFileSync(broken, "#!/no/such/interpreter\n");
  chmodSync(broken, 0o755);
  const argv = [...evalFlags(await model(() => "unused"), 1), "--", broken];
  const result = await command(argv, { env: { ROLLCALL_DIR: platform.directory } });
  expect([result.code, JSON.parse(result.stdout).error.code]).toEqual([2, "not_started"]);
  const [, id = ""] = /Run (run_\w+)/.exec(result.stderr) ?? [];
  expect((await client.runs.get(id)).status).toBe("cancelled");
});

test("a worker waits for a platform that restarts, and its program goes on", async () => {
  const chat = await model(({ messages }) => `${messages.at(-1)?.["content"]}!`);
  const directory = temporaryFile("state");
  const boot = () => bootPlatform({ directory, port: testPort(20), log: () => undefined });
  const first = await boot();
  const there = new RollcallClient({ baseUrl: first.url, apiKey: first.key });
  const agent = { name: "tester", lease_s: 3600 };
  const request = { environment: "agent", dataset: [{ question: "a" }], model: "scripted", agent };
  const run = await there.runs.create({ ...request, endpoint: { base_url: chat.url } });
  const go = temporaryFile("go");
  const argv = ["agent", "run", "--name", "tester", "--show-output", "--run", run.id, "--json"];
  const env = { ROLLCALL_URL: first.url, ROLLCALL_API_KEY: first.key };
  let said = "";
  const worker = rollcall([...argv, "--", NODE, program("two-turns.ts"), go], env, (all) => {
    said = all;
  });
  await expect.poll(() => said).toContain("after turn 1");
  await first.stop();
  await expect.poll(() => said).toContain("The platform does not answer");
  const second = await boot();
  writeFileSync(go, "");
  const result = await worker;
  expect([result.code, played(result)], result.stderr).toMatchObject([0, [{ state: "finished" }]]);
  expect(result.stderr).toContain("The platform answers again.");
  expect(chat.requests.map(({ last_user }) => last_user)).toEqual(["one", "two"]);
  await second.stop();
});

test("a key that the platform refuses ends the worker", async () => {
  const env = { ROLLCALL_URL: platform.url, ROLLCALL_API_KEY: SECRET };
  const result = await command(["agent", "run", "--name", "tester", "--json", "--", NODE, "-e", "0"], { env });
  expect([result.code, JSON.parse(result.stdout).error.code]).toEqual([2, "unauthorized"]);
});
