import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { readCommandLine } from "../../src/cli/command-line.ts";
import { evalArguments } from "../../src/cli/eval/arguments.ts";
import { asCommandError, EXIT } from "../../src/cli/exit.ts";
import { EVAL_FLAGS } from "../../src/cli/run-flags.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

function parseEvalArguments(argv: readonly string[]) {
  return evalArguments(readCommandLine({ name: "eval", help: "", program: "", flags: EVAL_FLAGS }, argv));
}

function file(name: string, text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), "rollcall-args-")), name);
  writeFileSync(path, text);
  return path;
}

/** The exit code and the message of a refused command line. */
function refusal(...argv: string[]): { exit: number; message: string; param: string | null } {
  try {
    parseEvalArguments(argv);
  } catch (thrown) {
    const { exit, message, failure } = asCommandError(thrown);
    return { exit, message, param: failure.param };
  }
  throw new Error("it was accepted");
}

test("a cap that is not an amount of dollars is refused with its flag's name", () => {
  for (const dollars of ["0", "-1", "0.0000001", "1000000.01"]) {
    const refused = refusal("gsm8k", `--max-cost=${dollars}`);
    expect(refused).toMatchObject({ exit: EXIT.usage, param: "max-cost" });
    expect(refused.message).toContain("--max-cost: must be dollars, from $0.000001 to $1,000,000.00");
  }
  expect(parseEvalArguments(["gsm8k", "--max-cost", "0.000001"]).draft.max_cost_micros).toBe(1);
});

test("short and long flags make the same request", () => {
  vi.stubEnv("MY_KEY", "sk-1");
  const short = parseEvalArguments("gsm8k@1 -m q -b http://h/v1 -k MY_KEY -n -1 -r 4 -c 8 -t 64 -T 0.5".split(" "));
  const long = parseEvalArguments([
    "gsm8k@1",
    "--model=q",
    "--base-url=http://h/v1",
    "--api-key-var=MY_KEY",
    "--num-examples=-1",
    "--rollouts-per-example=4",
    "--max-concurrent=8",
    "--max-tokens=64",
    "--temperature=0.5",
  ]);
  expect(short).toEqual({ ...long, connect: { ...long.connect, beforeBoot: expect.any(Function) } });
  expect(short.draft).toEqual({
    environment: "gsm8k@1",
    model: "q",
    endpoint: { base_url: "http://h/v1", api_key: "sk-1" },
    num_examples: -1,
    rollouts_per_example: 4,
    max_concurrent: 8,
    sampling: { max_tokens: 64, temperature: 0.5 },
  });
});

test("the command that resumes a run keeps its gates, its files and its tracker, quoted where a shell would split them", () => {
  const gates = ["--fail-under", "0.8", "--baseline", "branch=main", "--baseline", "os=it's"];
  const files = ["--junit", "my report.xml", "--markdown", "eval.md", "-s", "-C", "a,b"];
  const track = ["--track", "wandb", "--track-project", "my models"];
  const { again } = parseEvalArguments(["calculator", "-n", "5", ...gates, ...files, ...track]);
  expect(again).toBe(
    "npx rollcall eval --fail-under 0.8 --baseline branch=main --baseline 'os=it'\\''s' --junit 'my report.xml' --markdown eval.md --save-results --state-columns a,b --track wandb --track-project 'my models'",
  );
  expect(parseEvalArguments(["calculator"]).again).toBe("npx rollcall eval");
});

test("the request holds nothing that was not given", () => {
  expect(parseEvalArguments(["calculator"]).draft).toEqual({ environment: "calculator" });
});

test("environment arguments are JSON, a file, or k=v, and are merged", () => {
  const args = file("args.json", '{"max": 3}');
  const { draft } = parseEvalArguments(["e", "-a", args, "-a", "x=text", "-a", "y=[1]"]);
  expect(draft.environment_args).toEqual({ max: 3, x: "text", y: [1] });
  expect(parseEvalArguments(["e", "-a", '{"a":{"b":1}}']).draft.environment_args).toEqual({
    a: { b: 1 },
  });
});

test("a number with too many digits is refused with its flag, and so is a repeated key", () => {
  const refused = (...given: string[]) => expect(() => parseEvalArguments(["e", ...given]));
  refused("-a", '{"n":9007199254740993}').toThrow(
    "--env-args: n: the whole number 9007199254740993 has too many digits",
  );
  refused("-a", "n=1e400").toThrow("--env-args: n: the number 1e400 is too large");
  refused("-S", '{"top_p":1,"top_p":0}').toThrow('--sampling-args: the key "top_p" appears twice');
  refused("-f", file("large.json", '{"seed":-9007199254740993.0}')).toThrow("--file: seed: the whole number -9007199");
  const rows = file("large.jsonl", '{"question":"1"}\n\n{"answer":[12345678901234567890123]}\n');
  refused("--dataset", rows).toThrow(`--dataset: ${rows}:3: answer[0]: the whole number 12345678901234567890123`);
});

test("sampling arguments override -t, and flags override the request file", () => {
  const run = file("run.json", '{"environment":"e","model":"a","limits":{"call_timeout_s":5}}');
  const { draft } = parseEvalArguments([
    "-f",
    run,
    "-m",
    "b",
    "--max-retries",
    "0",
    "-t",
    "9",
    "-S",
    '{"max_tokens":7,"top_p":1}',
  ]);
  expect(draft).toEqual({
    environment: "e",
    model: "b",
    limits: { call_timeout_s: 5, max_retries: 0 },
    sampling: { max_tokens: 7, top_p: 1 },
  });
});

test("a dataset is the rows of a file, without blank lines, or the name of an uploaded one", () => {
  const rows = file("rows.jsonl", '\uFEFF{"question":"1"}\n\n{"question":"2"}\n');
  expect(parseEvalArguments(["e", "--dataset", rows]).dataset).toEqual({
    kind: "rows",
    file: rows,
    rows: [{ question: "1" }, { question: "2" }],
  });
  expect(parseEvalArguments(["e", "--dataset", "questions"]).dataset).toEqual({
    kind: "uploaded",
    name: "questions",
  });
  expect(parseEvalArguments(["e"]).dataset).toBeNull();
});

test("a file too large for a request is not even read", () => {
  const large = file("rows.jsonl", "not JSON\n".repeat(200_000));
  expect(parseEvalArguments(["e", "--dataset", large]).dataset).toEqual({
    kind: "file",
    file: large,
  });
});

test("an endpoint is named or given by URL, and a name replaces the one in the file", () => {
  vi.stubEnv("MY_KEY", "sk-1");
  expect(parseEvalArguments(["e", "-e", "fast"]).draft.endpoint).toBe("fast");
  const inline = file("run.json", '{"endpoint":{"base_url":"http://h/v1"}}');
  expect(parseEvalArguments(["-f", inline, "-e", "fast"]).draft.endpoint).toBe("fast");
  expect(parseEvalArguments(["-f", inline, "-k", "MY_KEY"]).draft.endpoint).toEqual({
    base_url: "http://h/v1",
    api_key: "sk-1",
  });
  const fleet = file("fleet.json", '{"fleet":"trained"}');
  expect(parseEvalArguments(["-f", inline, "--fleet", "gpus"]).draft).toMatchObject({ fleet: "gpus" });
  expect(parseEvalArguments(["-f", inline, "--fleet", "gpus"]).draft).not.toHaveProperty("endpoint");
  expect(parseEvalArguments(["-f", fleet]).draft).toMatchObject({ fleet: "trained" });
  expect(parseEvalArguments(["-f", fleet, "-e", "fast"]).draft).not.toHaveProperty("fleet");
  const named = file("run.json", '{"endpoint":"fast"}');
  expect(parseEvalArguments(["-f", named]).draft.endpoint).toBe("fast");
  expect(parseEvalArguments(["-f", named, "-b", "http://h/v1"]).draft.endpoint).toEqual({
    base_url: "http://h/v1",
  });
});

test("a judge may be given by its URL, with a key from the named variable", () => {
  process.env["BENCH_KEY"] = "sk-judge";
  const url = "https://h.example/v1";
  const { draft } = parseEvalArguments(["e", "--judge", `a=org/m@1@${url}`, "--judge-key-var", "BENCH_KEY"]);
  expect(draft.judges).toEqual({
    a: { model: "org/m@1", endpoint: { base_url: url, api_key: "sk-judge" } },
  });
});

test("judges and state columns are lists", () => {
  const { draft, stateColumns } = parseEvalArguments(
    "e --judge a=org/m@1@openai --judge b=m@ep_1 -s -C low,high".split(" "),
  );
  expect(draft.judges).toEqual({
    a: { model: "org/m@1", endpoint: "openai" },
    b: { model: "m", endpoint: "ep_1" },
  });
  expect(stateColumns).toEqual(["low", "high"]);
});

test.each([
  [["e", "--nonsense"], "--nonsense is not a flag of eval", null],
  [["a", "b"], "exactly one environment is required, not a, b", null],
  [["e", "-n", "many"], "--num-examples: many is not a number", "num-examples"],
  [["e", "-b", "nowhere"], "--base-url: nowhere is not a URL", "base-url"],
  [["e", "-k", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE is not set", "api-key-var"],
  [["e", "-S", "[1]"], "--sampling-args: it is not a JSON object", "sampling-args"],
  [["e", "-f", "/no/such/file"], "--file: ENOENT", "file"],
  [["e", "--metadata", "branch"], "--metadata: branch is not k=v", "metadata"],
  [["e", "-e", "fast", "-b", "http://h/v1"], "--endpoint: cannot be combined with", "endpoint"],
  [["e", "--fleet", "gpus", "-e", "fast"], "--fleet: cannot be combined with --endpoint", "fleet"],
  [["e", "--judge", "a=m@b", "--judge-key-var", "HOME"], "needs a --judge with a URL", "judge-key-var"],
  [["e", "--judge", "a=m"], "--judge: a=m is not NAME=MODEL@ENDPOINT", "judge"],
  [["e", "-C", "low"], "--state-columns: needs -s or -o", "state-columns"],
  [["e", "--dataset", "./none.jsonl"], "--dataset: ENOENT", "dataset"],
  [["e", "--timeout", "0"], "--timeout: must be more than 0 seconds", "timeout"],
])("%j is refused as wrong usage", (argv, message, param) => {
  const refused = refusal(...argv);
  expect(refused).toMatchObject({ exit: EXIT.usage, param });
  expect(refused.message).toContain(message);
});

test("a row that is not a JSON object is named by its line", () => {
  const rows = file("rows.jsonl", '{"question":"1"}\noops\n');
  expect(refusal("e", "--dataset", rows).message).toContain("rows.jsonl:2 is not a JSON object");
});

test("gates are read with their settings, and refused if one lacks the other", () => {
  const line = "e --fail-under 0.8 --min-scored 0.9 --baseline a=1 --baseline b=2 --max-drop 0 --metric m";
  const { gates, draft, junit } = parseEvalArguments(line.split(" "));
  expect(gates).toEqual({
    ...{ failUnder: 0.8, minScored: 0.9, maxDrop: 0, metric: "m" },
    baseline: { metadata: { a: "1", b: "2" } },
  });
  expect([draft.min_scored, junit]).toEqual([0.9, null]);
  expect(refusal("e", "--max-drop", "0.1")).toMatchObject({ exit: 2, param: "max-drop" });
  expect(refusal("e", "--baseline", "r", "--max-drop", "-1")).toMatchObject({ param: "max-drop" });
  expect(refusal("e", "--metric", "m")).toMatchObject({ exit: 2, param: "metric" });
  expect(refusal("e", "--fail-under", "x")).toMatchObject({ exit: 2, param: "fail-under" });
});

test("flags name the agent of a run, and override the agent of a file", () => {
  const request = file("run.json", JSON.stringify({ agent: { name: "filed", lease_s: 30 } }));
  expect(parseEvalArguments(["gsm8k", "-f", request]).draft.agent).toEqual({ name: "filed", lease_s: 30 });
  const flags = ["--agent", "named", "--agent-sampling", "override", "--max-turns", "3"];
  const { draft, program } = parseEvalArguments(["gsm8k", "-f", request, ...flags]);
  expect(draft.agent).toEqual({ name: "named", lease_s: 30, sampling: "override", max_turns: 3 });
  expect(program).toBeNull();
});

test("a program after -- plays a run of an agent with its own name, and its flags are not the command's", () => {
  const { draft, program, again } = parseEvalArguments(["gsm8k", "-n", "3", "--", "sh", "-c", "exit 1", "-n", "-5"]);
  expect(draft).toMatchObject({ num_examples: 3, agent: { name: expect.stringMatching(/^eval-\w{8}$/) } });
  expect(program).toMatchObject({ command: ["sh", "-c", "exit 1", "-n", "-5"], maxConcurrent: 8 });
  expect([program?.again, again]).toEqual([" -- sh -c 'exit 1' -n -5", `npx rollcall eval --agent ${program?.name}`]);
});

test.each([
  [["--agent-sampling", "keep"], "--agent-sampling: needs --agent, or a program after --"],
  [["--max-turns", "3"], "--max-turns: needs --agent, or a program after --"],
  [["--agent", "No spaces"], "--agent: No spaces must be 1 to 63 of a-z"],
  [["--"], "a program is required after --"],
  [["--", "no-such-program-at-all"], "no-such-program-at-all: not found on PATH"],
  [["--", "./nowhere.sh"], "./nowhere.sh: not found or not executable"],
  [["--resume", "run_1", "--", "sh"], "--agent: is required to resume a run with a program"],
])("%j is refused", (flags, message) => {
  expect(refusal("gsm8k", ...flags)).toMatchObject({ exit: EXIT.usage, message: expect.stringContaining(message) });
});
