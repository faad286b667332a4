/** The action of GitHub: its steps, against a platform, a model and the API of GitHub on loopback. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { type FakeGithub, startGithub, TOKENS } from "../fakes/github.ts";
import { type Answer, type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "../local/test-port.ts";
import { ACTION, runAction } from "./run-action.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const PULL = 7;
const EVENT = { pull_request: { number: PULL, head: { sha: "abcdef0123456789" } } };
const SECRET = "sk-a-secret-of-the-endpoint";

let platform: Platform;
let model: ScriptedModel;
let github: FakeGithub;
let answer = "";
/** If set, it is called in place of an answer. */
let silence: (() => void) | null = null;
const base = mkdtempSync(join(tmpdir(), "rollcall-action-"));

beforeAll(async () => {
  const rows = [1, 2, 3, 4].map((at) => `{"question":"Question ${at}","answer":"#### 42"}\n`);
  writeFileSync(join(base, "rows.jsonl"), rows.join(""));
  model = await startScriptedModel({ reply });
  const log = (line: string) => process.stderr.write(`${line}\n`);
  platform = await bootPlatform({ directory: null, port: testPort(0), log });
});
beforeEach(async () => {
  silence = null;
  answer = "It is \\boxed{42}.";
  github = await startGithub("acme/agent", PULL);
  return () => github.stop();
});
afterAll(async () => {
  await Promise.all([platform.stop(), model.stop()]);
  await rm(base, { recursive: true });
});

/** A workflow as far as the test reads it. */
const Step = z.object({ id: z.string().optional(), with: z.record(z.string(), z.unknown()).optional() });
const Workflow = z.object({ jobs: z.object({ eval: z.object({ steps: z.array(Step) }) }) });

function reply(): Answer | string {
  if (silence === null) return answer;
  silence();
  return { fault: { kind: "hang" } };
}

interface Call {
  readonly cancelled?: Promise<void>;
  readonly inputs?: Readonly<Record<string, string>>;
  readonly token?: string;
  readonly event?: object;
}

/** An eval of four tasks on the platform of the test. */
function evaluate({ inputs = {}, token = TOKENS.job, event = EVENT, ...more }: Call = {}) {
  const usual = {
    ...{ environment: "gsm8k", model: "m", "base-url": model.url, "api-key": SECRET, dataset: "rows.jsonl" },
    ...{ "platform-url": `${platform.url}/`, "platform-key": platform.key },
  };
  return runAction({ inputs: { ...usual, ...inputs }, token, api: github.url, event, folder: base, ...more });
}

test("a passing eval: its outputs, the summary of the job, a JUnit report and a comment with a link", async () => {
  const { code, log, outputs, summary } = await evaluate({
    inputs: { "fail-under": "0.8", "rollouts-per-example": "2" },
  });
  expect(log).toMatch(/\nmean reward 1\.000\nfail_under passed: mean reward 1\.000/);
  expect(code).toBe(0);
  const link = `${platform.url}/runs/${outputs["run-id"]}`;
  expect(outputs).toEqual({
    ...{ "run-id": expect.stringMatching(/^run_\w+$/), reward: "1", passed: "true", "exit-code": "0", link },
    junit: join(base, "rollcall-junit.xml"),
  });
  expect(readFileSync(outputs["junit"] ?? "", "utf8")).toContain('<testsuite name="gates"');
  expect(summary).toMatch(/^### <code>gsm8k&#64;1&#46;1&#46;0<\/code>: passed\n/);
  expect(summary).toContain("| rollouts | scored 8 |");
  const job = "https://github.com/acme/agent/actions/runs/4711";
  expect(summary).toContain(`\n[page of the run](${link}) · [log](${job}) · commit abcdef0\n`);
  const [comment, ...more] = github.comments;
  expect(more).toEqual([]);
  expect(comment?.body).toMatch(/^<!-- rollcall-eval [0-9a-f]{16} -->\n/);
  expect(comment?.body).toContain(summary);
  expect(log + summary).not.toContain(SECRET);
  expect(model.requests.length).toBeGreaterThan(0);
});

test("a failing gate exits 1, and the same comment is updated, past a hundred others", async () => {
  for (let at = 0; at < 130; at++) github.add({ by: "person", body: `review ${at}` });
  await evaluate({ inputs: { "fail-under": "0.8" } });
  const created = github.comments.at(-1);
  expect(created?.body).toContain(": passed\n");
  answer = "It is \\boxed{41}. </code> @octocat | <b>";
  const { code, outputs } = await evaluate({ inputs: { "fail-under": "0.8" } });
  expect([code, outputs["exit-code"], outputs["passed"], outputs["reward"]]).toEqual([1, "3", "false", "0"]);
  expect(github.comments).toHaveLength(131);
  expect(created?.body).toContain(": a gate failed\n");
  expect(created?.body).toContain("&#60;&#47;code&#62; &#64;octocat &#124; &#60;b&#62;</code>");
});

test("another model, or another environment, has a comment of its own", async () => {
  await evaluate();
  await evaluate({ inputs: { model: "n" } });
  expect(github.comments).toHaveLength(2);
});

test("the comment of a stranger who copied the marker stays as it is", async () => {
  await evaluate();
  const [own] = github.comments.splice(0);
  const copied = github.add({ by: "person", body: own?.body ?? "" });
  answer = "It is \\boxed{41}.";
  await evaluate();
  expect(copied.body).toBe(own?.body);
  expect(github.comments).toHaveLength(2);
  // To the token of that person it is the own comment.
  await evaluate({ inputs: { "github-token": TOKENS.person } });
  expect(github.comments).toHaveLength(2);
  expect(copied.body).not.toBe(own?.body);
});

test("a fork may not comment: a notice says why, and the eval decides", async () => {
  const { code, log, summary } = await evaluate({ token: TOKENS.fork });
  expect(code).toBe(0);
  expect(log).toMatch(/\n::notice::no comment: GitHub answered 403: Resource not accessible by integration: .* fork /);
  expect(summary).toContain("| rollouts | scored 4 |");
  expect(github.comments).toEqual([]);
});

test("a comment that fails otherwise is a warning, and without a pull request there is none", async () => {
  const refused = await evaluate({ token: "ghs_expired" });
  expect([refused.code, refused.log]).toEqual([
    0,
    expect.stringContaining("::warning::no comment: GitHub answered 401"),
  ]);
  const pushed = await evaluate({ event: { ref: "refs/heads/main" } });
  expect([pushed.code, pushed.log]).toEqual([
    0,
    expect.stringContaining("::notice::no comment: this event has no pull"),
  ]);
  expect(pushed.summary).toContain("· commit fffffff\n");
  const asked = github.requests.length;
  const silent = await evaluate({ inputs: { comment: "false" } });
  expect([silent.code, github.requests.length]).toEqual([0, asked]);
});

test("an eval that cannot begin replaces the result in the comment by its reason", async () => {
  await evaluate();
  const { code, outputs, summary } = await evaluate({ inputs: { "max-drop": "0.1" } });
  expect([code, outputs["exit-code"], outputs["run-id"], outputs["link"]]).toEqual([1, "2", "", ""]);
  expect(summary).toMatch(
    /^### <code>gsm8k<\/code>: the eval did not end\n\n<code>--max-drop&#58; needs --baseline<\/code>/,
  );
  expect(github.comments).toHaveLength(1);
  expect(github.comments[0]?.body).toContain(summary);
});

test("a cancelled job interrupts the eval, and the comment says so", async () => {
  await evaluate();
  const called = Promise.withResolvers<void>();
  silence = called.resolve;
  const { code, outputs } = await evaluate({ cancelled: called.promise });
  expect([code, outputs["exit-code"], outputs["passed"]]).toEqual([1, "130", "false"]);
  expect(github.comments).toHaveLength(1);
  expect(github.comments[0]?.body).toContain("<code>interrupted; run run&#95;");
});

test("a run finds its baseline by the metadata of an earlier one", async () => {
  const metadata = "branch=main\nsuite=quick\n";
  await evaluate({ inputs: { metadata } });
  answer = "It is \\boxed{41}.";
  const { code, outputs, summary } = await evaluate({ inputs: { baseline: metadata } });
  expect([code, outputs["exit-code"]]).toEqual([1, "3"]);
  expect(summary).toContain("| baseline | failed | <code>the paired difference −1&#46;000");
  expect(summary).toContain("Tasks that passed in one run only: 4");
});

test("an input is never read by the shell, nor as a flag, nor as a command to the runner", async () => {
  const hostile = '"; touch hacked; $(touch hacked) `touch hacked` --force';
  answer = "\n::error::from a model\n##[error]from a model";
  const inputs = { model: hostile, metadata: `note=${hostile}`, args: "--name=--json\n--max-tokens=64" };
  const { code, outputs, log } = await evaluate({ inputs });
  expect([code, outputs["reward"]]).toEqual([0, "0"]);
  const reply = await fetch(`${platform.url}/v1/runs/${outputs["run-id"]}`, {
    headers: { authorization: `Bearer ${platform.key}` },
  });
  expect(await reply.json()).toMatchObject({ model: hostile, metadata: { note: hostile }, name: "--json" });
  const [, token = "nothing"] = /^::stop-commands::(\S+)$/m.exec(log) ?? [];
  expect(log).toContain(`\n::${token}::\n`);
  expect(existsSync(join(base, "hacked"))).toBe(false);
  const scripts = ACTION.runs.steps.map(({ run }) => run).join("\n");
  expect(scripts).not.toContain("${{");
});

test.each([
  ["environment", "", 'environment: must name an environment, not ""'],
  ["environment", "--help", 'environment: must name an environment, not "--help"'],
  ["comment", "yes", 'comment: must be true or false, not "yes"'],
  ["platform-url", "example.com", "platform-url: must be an http or https URL"],
  ["version", "1.0.0 --registry=x", 'version: must be a version or a tag of npm, not "1.0.0 --registry=x"'],
  ["path", "nowhere", "nowhere is not a Rollcall: it has no bin/rollcall.mjs"],
])("%s: %j is refused", async (name, value, message) => {
  const { code, log, summary } = await evaluate({ inputs: { [name]: value } });
  expect([code, summary]).toEqual([1, ""]);
  expect(log).toMatch(/^::error::/m);
  expect(log).toContain(message);
});

test("without a platform one is started, in the working directory, from the named Rollcall", async () => {
  mkdirSync(join(base, "project"), { recursive: true });
  const inputs = {
    ...{ environment: "calculator", "num-examples": "2", path: ROOT, "working-directory": "project" },
    ...{ args: `--ephemeral\n--port=${testPort(1)}`, junit: "" },
  };
  const job = { token: TOKENS.job, api: github.url, event: EVENT, folder: base };
  const { code, log, outputs, summary } = await runAction({ ...job, inputs });
  expect(log).not.toContain("::error::");
  expect(code).toBe(0);
  expect(outputs).toMatchObject({ passed: "true", link: "", junit: "" });
  expect(summary).toContain("| rollouts | scored 2 |");
});

test("the workflow of docs/ci.md makes a baseline on the main branch, and compares a pull request with it", async () => {
  const [, workflow = ""] = /```yaml\n([\s\S]*?)```/.exec(readFileSync(join(ROOT, "docs/ci.md"), "utf8")) ?? [];
  const steps = Workflow.parse(parse(workflow)).jobs.eval.steps;
  const { with: written = {} } = steps.find(({ id }) => id === "eval") ?? {};
  expect(Object.keys(written).filter((name) => ACTION.inputs[name] === undefined)).toEqual([]);
  const run = (ref: string, baseline: string, event: object) => {
    const inputs = Object.entries(written).map(([name, value]) => {
      const text = String(value)
        .replace(/\$\{\{ github\.ref_name \}\}/, ref)
        .replace("MODEL_URL", model.url);
      return [name, name === "baseline" ? baseline : text];
    });
    const { "api-key": _, "platform-url": _url, "platform-key": _key, ...others } = Object.fromEntries(inputs);
    return evaluate({ inputs: others, event });
  };
  expect(await run("main", "", { ref: "refs/heads/main" })).toMatchObject({ code: 0 });
  const { code, summary } = await run("7/merge", "branch=main", EVENT);
  expect(code).toBe(0);
  expect(summary).toMatch(/\n\| min-scored \| passed .*\n\| fail-under \| passed .*\n\| baseline \| passed /);
});

test("every input reaches a step, and every step gets declared inputs only", () => {
  const used = ACTION.runs.steps.flatMap((step) => {
    return Object.values({ ...step.env, folder: step["working-directory"] }).flatMap((value) => {
      return /^\$\{\{ inputs\.(.*) \}\}$/.exec(value)?.[1] ?? [];
    });
  });
  expect([...new Set(used)].sort()).toEqual(Object.keys(ACTION.inputs).sort());
});
