import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "../local/test-port.ts";
import { type CommandResult, command, rollcall } from "./run-rollcall.ts";

let platform: Platform;
const models: ScriptedModel[] = [];

beforeAll(async () => {
  platform = await bootPlatform({
    directory: null,
    port: testPort(0),
    log: (line) => process.stderr.write(`${line}\n`),
  });
});
afterAll(() => platform.stop());
afterEach(async () => {
  for (const model of models.splice(0)) await model.stop();
});

function run(argv: readonly string[]) {
  return command(["eval", ...argv], { env: { ROLLCALL_DIR: platform.directory } });
}

type OnStderr = Parameters<typeof rollcall>[2];

/** In a separate process, which a test may kill. */
function runApart(argv: readonly string[], onStderr: OnStderr) {
  return rollcall(argv, { ROLLCALL_DIR: platform.directory }, onStderr);
}

/** The one object on stdout. */
function json({ stdout }: CommandResult) {
  expect(stdout.trimEnd().split("\n")).toHaveLength(1);
  return JSON.parse(stdout);
}

async function model(reply: () => string): Promise<ScriptedModel> {
  const started = await startScriptedModel({ reply });
  models.push(started);
  return started;
}

function questions(count: number): string {
  const file = join(mkdtempSync(join(tmpdir(), "rollcall-rows-")), "rows.jsonl");
  const rows = Array.from({ length: count }, (_, index) => {
    return JSON.stringify({ question: `Question ${index}`, answer: "So it is.\n#### 42" });
  });
  writeFileSync(file, rows.join("\n"));
  return file;
}

test("the summary of a finished eval has the fields that scripts read, and the folder its rows", async () => {
  const { url, requests } = await model(() => "It is \\boxed{42}.");
  const base = mkdtempSync(join(tmpdir(), "rollcall-out-"));
  const flags = ["-m", "org/m", "-b", url, "--dataset", questions(5), "-r", "2", "-o", base];
  const result = await run(["gsm8k", ...flags, "--json", "--metadata", "branch=main"]);
  expect(result.code).toBe(0);
  const summary = json(result);
  expect(summary).toMatchObject({
    run_id: expect.stringMatching(/^run_/),
    status: "completed",
    environment: "gsm8k@1.1.0",
    model: "org/m",
    num_examples: 5,
    rollouts_per_example: 2,
    counts: {
      planned: 10,
      pending: 0,
      in_flight: 0,
      scored: 10,
      unscored: 0,
      failed: 0,
      cancelled: 0,
    },
    failed_by_class: {},
    cancelled_by_reason: {},
    reward: { mean: 1, se: 0, n_tasks: 5, n_rollouts: 10, n_unscored: 0, n_error: 0 },
    metrics: { correct_answer: { mean: 1, n: 10 } },
    usage: { policy: { total_tokens: expect.any(Number) }, judge: { total_tokens: 0 } },
    cost: { policy_micros: null, judge_micros: 0, charged_micros: 0 },
    turns: 10,
    seconds: expect.any(Number),
    results_path: join(base, "evals", "gsm8k--org--m", summary.run_id),
  });
  expect(requests).toHaveLength(10);
  const written = readFileSync(join(summary.results_path, "results.jsonl"), "utf8").trim();
  const rewards = written.split("\n").map((line) => JSON.parse(line).reward);
  expect(rewards).toEqual(Array(10).fill(1));
  const row = JSON.parse(written.split("\n")[0] ?? "");
  expect(Object.keys(row)).toEqual([
    ...["example_id", "prompt", "completion", "answer", "reward", "error", "timing"],
    ...["is_completed", "is_truncated", "stop_condition", "metrics", "tool_defs", "token_usage"],
    ...Object.keys(row.metrics),
  ]);
  const metadata = JSON.parse(readFileSync(join(summary.results_path, "metadata.json"), "utf8"));
  expect(metadata).toMatchObject({
    ...{ env_id: "gsm8k", shuffle: false, avg_reward: 1, avg_error: 0 },
    ...{ pass_at_k: { "1": 1, "2": 1 }, pass_threshold: 0.5, metadata: { branch: "main" } },
    usage: { final_output_tokens: expect.any(Number) },
  });
});

test("without an endpoint the policy plays five tasks at its own sizes, says so, and prints a table", async () => {
  const { code, stdout, stderr } = await run(["calculator"]);
  expect(code).toBe(0);
  expect(stderr).toContain("the bundled policy plays calculator");
  expect(stdout).toMatch(/environment +reward +tasks/);
  expect(stdout).toMatch(/calculator +\d\.\d+ ± \d\.\d+ +5 +5 /);
});

test.each([
  [["nope"], 2, "no environment is called nope"],
  [["gsm8k", "-m", "m", "-b", `http://127.0.0.1:${testPort(48)}/v1`], 2, "gsm8k has no rows of its own"],
  [["gsm8k", "--dataset", questions(1)], 2, "gsm8k needs a model: set its endpoint with -b"],
  [["calculator", "-m", "gpt"], 2, "the endpoint of gpt is required: -b"],
  [["calculator", "-a", "max=1"], 2, "expected number to be >=2"],
  [["calculator", "-m", "m", "-b", `http://127.0.0.1:${testPort(48)}/v1`], 4, "is not reachable"],
])("%j is refused before anything runs", async (argv, exit, message) => {
  const result = await run([...argv, "--json"]);
  expect(result.code).toBe(exit);
  expect(json(result).error.message).toContain(message);
});

test("a file too large for the run's request is uploaded first, and the run names it", async () => {
  const { url } = await model(() => "It is \\boxed{42}.");
  const flags = ["-m", "m", "-b", url, "--dataset", questions(20_000), "-n", "2", "--json"];
  const result = await run(["gsm8k", ...flags]);
  expect([result.code, json(result).counts.scored]).toEqual([0, 2]);
  const [, id = ""] = /uploaded as (ds_\w+) \(20,000 rows\)/.exec(result.stderr) ?? [];
  const again = await run(["gsm8k", ...flags.with(5, id)]);
  expect([again.code, json(again).num_examples]).toEqual([0, 2]);
});

test("requested fields of the state are in the rows", async () => {
  const { url } = await model(() => "I will not guess.");
  const base = mkdtempSync(join(tmpdir(), "rollcall-out-"));
  const flags = ["-m", "m", "-b", url, "-n", "2", "-o", base, "-C", "low,nowhere", "--json"];
  const summary = json(await run(["guess-number", ...flags]));
  const written = readFileSync(join(summary.results_path, "results.jsonl"), "utf8").trim();
  const rows = written.split("\n").map((line) => JSON.parse(line));
  expect(rows.map(({ low, nowhere }) => [low, nowhere])).toEqual([
    [1, null],
    [1, null],
  ]);
  const metadata = JSON.parse(readFileSync(join(summary.results_path, "metadata.json"), "utf8"));
  expect(metadata.state_columns).toEqual(["low", "nowhere"]);
});

test("gates: exit 3 and the reason below a threshold or a baseline, 0 if they are met", async () => {
  const base = mkdtempSync(join(tmpdir(), "rollcall-out-"));
  const good = await model(() => "It is \\boxed{42}.");
  const bad = await model(() => "It is \\boxed{41}.");
  const rows = questions(6);
  const flags = (url: string) => ["gsm8k", "-m", "m", "-b", url, "--dataset", rows];
  const branch = `branch=${base}`;
  const metadata = ["--metadata", branch];
  const before = json(await run([...flags(good.url), ...metadata, "--fail-under", "0.8", "--json"]));
  expect(before.gates).toMatchObject([{ gate: "fail_under", verdict: "passed" }]);
  expect(before.comparison).toBeNull();
  const junit = join(base, "report.xml");
  const markdown = join(base, "eval.md");
  const gates = ["--fail-under", "0.8", "--baseline", branch, "--junit", junit, "--markdown", markdown];
  const worse = await run([...flags(bad.url), ...metadata, ...gates]);
  expect(worse.code).toBe(3);
  expect(worse.stderr).toContain(`Baseline ${before.run_id}: the newest completed run of gsm8k`);
  expect(worse.stdout).toMatch(/difference +−1\.000 ± 0\.000 \(95 %: −1\.000 to −1\.000\)\n/);
  expect(worse.stdout).toMatch(/0 better, 6 worse, 0 the same; McNemar p 0\.031\n/);
  expect(worse.stdout).toMatch(/\nfail-under +failed +mean reward 0\.000/);
  expect(worse.stdout).toMatch(/\nbaseline +failed +the paired difference −1\.000/);
  expect(readFileSync(junit, "utf8")).toMatch(
    /<testsuites name="rollcall run_\w+" tests="8" failures="8" errors="0" time=/,
  );
  expect(readFileSync(markdown, "utf8")).toMatch(
    /: a gate failed\n[\s\S]*\| baseline \| failed \|[\s\S]*passed in one run only: 6<[\s\S]*did not pass: 6<[\s\S]*boxed&#123;41&#125;/,
  );
  const named = ["--baseline", before.run_id, "--max-drop", "0.05", "--json"];
  const same = await run([...flags(good.url), ...named]);
  expect([same.code, json(same).comparison.n_matched]).toEqual([0, 6]);
});

test("failed rollouts make a failed run: exit 1, or 3 with --min-scored", async () => {
  const broken = await model(() => "never said");
  broken.failNext(1000, { kind: "status", status: 400 });
  const flags = ["calculator", "-m", "m", "-b", broken.url, "-n", "2", "--json"];
  const plain = await run(flags);
  expect([plain.code, json(plain).failed_by_class]).toEqual([1, { provider: 2 }]);
  const gated = await run([...flags, "--min-scored", "0.5"]);
  expect([gated.code, json(gated).status]).toEqual([3, "failed"]);
});

test.each([
  [
    { kind: "status", status: 404, body: { error: { message: "no model m here" } } },
    /provider: .*404.*no model m here/,
  ],
  [
    { kind: "status", status: 400, body: { detail: "max_tokens is too large" } },
    /provider: .*400.*max_tokens is too large/,
  ],
  [
    { kind: "status", status: 429, body: { error: { message: "quota of org x is used up" } } },
    /provider: .*quota of org x is used up/,
  ],
  [{ kind: "garbage", status: 503, text: "upstream is away" }, /provider: .*503.*upstream is away/],
  [{ kind: "garbage", text: "<html>proxy</html>" }, /provider: the reply is not JSON: status 200, .*18 characters/],
  [{ kind: "empty_choices" }, /provider: .*choices/],
  [{ kind: "reset" }, /provider: .+/],
] as const)("the table has the endpoint's own words: %o", async (fault, words) => {
  const broken = await model(() => "never said");
  broken.failNext(1000, fault);
  const { code, stdout } = await run(["calculator", "-m", "m", "-b", broken.url, "-n", "2", "--max-retries", "0"]);
  expect(code).toBe(1);
  expect(stdout).toMatch(words);
});

test("failures that a run allows exit 0, and 1 with --fail-on-error", async () => {
  const flaky = await model(() => "never mind");
  const flags = ["calculator", "-m", "m", "-b", flaky.url, "-n", "2", "-c", "1", "--json"];
  flaky.failNext(1, { kind: "status", status: 400 });
  const allowed = await run([...flags, "--min-scored", "0.5"]);
  expect([allowed.code, json(allowed).counts.failed]).toEqual([0, 1]);
  flaky.failNext(1, { kind: "status", status: 400 });
  const refused = await run([...flags, "--min-scored", "0.5", "--fail-on-error"]);
  expect([refused.code, json(refused).status]).toEqual([1, "completed"]);
});

test("an interrupted eval leaves its run going and says how to follow it to the end", async () => {
  const slow = await model(() => "It is 0.");
  slow.setLatency(1000);
  const flags = ["calculator", "-m", "m", "-b", slow.url, "-n", "3", "-c", "1", "--json"];
  let interrupted = false;
  const first = await runApart(["eval", ...flags], (said, kill) => {
    if (interrupted || !said.includes("Run run_")) return;
    interrupted = true;
    kill("SIGINT");
  });
  expect(first.code).toBe(130);
  const [again = "", id = ""] = /rollcall eval --resume (run_\w+)/.exec(first.stderr) ?? [];
  expect(json(first).error.message).toContain(again);
  slow.setLatency(0);
  const second = await run(["--resume", id, "--json"]);
  expect([second.code, json(second).counts.scored]).toEqual([0, 3]);
});

test("R-gen-1, R-gen-2, R-gen-3: a resumed eval retries what failed, keeps what is scored, and changes nothing", async () => {
  const flaky = await model(() => "It is 0.");
  flaky.failNext(5, { kind: "status", status: 400 });
  const flags = ["-m", "m", "-b", flaky.url, "-n", "4", "-r", "2", "-c", "1", "-T", "0.5"];
  const first = await run(["calculator", ...flags, "--json"]);
  const { run_id, counts } = json(first);
  expect([first.code, counts.scored, counts.failed]).toEqual([1, 3, 5]);
  const other = ["-m", "another", "-T", "1", "-n", "3", "--json"];
  const refused = await run(["calculator", "--resume", run_id, ...other]);
  const { error } = json(refused);
  expect([refused.code, error.code, error.param]).toEqual([2, "conflict", "num_examples"]);
  expect(error.message).toContain('num_examples is 4, not 3; model is "m", not "another"');
  expect(error.message).toContain("sampling.temperature is 0.5, not 1");
  const calls = flaky.requests.length;
  const resume = ["--resume", "last", "--fail-on-error", "--json"];
  const second = await run(["calculator", ...flags, ...resume]);
  expect([second.code, json(second).run_id]).toEqual([0, run_id]);
  expect(json(second).reward).toMatchObject({ n_rollouts: 8, n_error: 0 });
  expect(second.stderr).toContain("5 of 8 rollouts are left");
  expect(flaky.requests.length).toBe(calls + 5);
});

test("an interrupted generate leaves no file, and its printed command writes the rows when the run has ended", async () => {
  const slow = await model(() => "It is \\boxed{42}.");
  slow.setLatency(1000);
  const out = join(mkdtempSync(join(tmpdir(), "rollcall-out-")), "rows.jsonl");
  const generate = (argv: readonly string[]) =>
    command(["generate", ...argv, "--json"], { env: { ROLLCALL_DIR: platform.directory } });
  const flags = ["-m", "m", "-b", slow.url, "--dataset", questions(2), "-c", "1"];
  let interrupted = false;
  const wanted = ["--out", out, "--min-reward", "1", "--json"];
  const first = await runApart(["generate", "gsm8k", ...flags, ...wanted], (said, kill) => {
    if (interrupted || !said.includes("Run run_")) return;
    interrupted = true;
    kill("SIGINT");
  });
  expect([first.code, existsSync(out)]).toEqual([130, false]);
  const [, again = ""] = /rollcall generate (--out .*--resume run_\w+)/.exec(first.stderr) ?? [];
  expect(again).toContain(`--out ${out} --min-reward 1 --resume`);
  slow.setLatency(0);
  const second = await generate(again.split(" "));
  expect([second.code, json(second).rows]).toEqual([0, 2]);
  const rows = readFileSync(out, "utf8").trim().split("\n");
  expect(rows.map((row) => JSON.parse(row).messages.length)).toEqual([3, 3]);
  const nowhere = await generate(["gsm8k", ...flags]);
  expect([nowhere.code, json(nowhere).error.param]).toEqual([2, "out"]);
});

test("a run that takes longer than --timeout is cancelled", async () => {
  const hanging = await model(() => "never said");
  hanging.failNext(10, { kind: "hang" });
  const result = await run(["calculator", "-m", "m", "-b", hanging.url, "-n", "2", "--json", "--timeout", "3"]);
  expect(result.code).toBe(1);
  expect(json(result)).toMatchObject({ status: "cancelled", cancelled_by_reason: { user: 2 } });
});

test("endpoint add sets the list price of the named model, unless prices are given or unwanted", async () => {
  const env = { ROLLCALL_DIR: platform.directory, OPENAI_API_KEY: "sk-1234567890" };
  const add = async (name: string, flags: readonly string[]) => {
    const words = ["endpoint", "add", name, "--preset", "openai", "-m", "gpt-5-mini", "--no-probe", "--json", ...flags];
    const result = await command(words, { env });
    return [json(result).prices, result.stderr];
  };
  const listed = { input_per_mtok_micros: 250_000, output_per_mtok_micros: 2_000_000 };
  expect(await add("mini", [])).toEqual([listed, expect.stringContaining("the list prices of gpt-5-mini as of 20")]);
  const own = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 0 };
  expect(await add("own", ["--input-price", "1", "--output-price", "0"])).toEqual([own, ""]);
  expect(await add("none", ["--no-prices"])).toEqual([null, ""]);
});
