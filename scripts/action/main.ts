/**
 * The step of the action of GitHub (action.yml) that runs the eval: it writes the result to the summary of the job, to
 * the outputs of the step, and to a comment on the pull request. It exits 0 if the eval does, else 1; a comment that
 * cannot be written fails nothing.
 *
 * Imports nothing but Node and files without packages: with `version` or `path` none are installed here.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { inlineCode } from "../../src/cli/terminal/markdown.ts";
import { runPage } from "../../src/contract/pages.ts";
import { GithubRefusal, keepComment } from "./comment.ts";
import {
  at,
  InputError,
  type Inputs,
  jsonOf,
  numberAt,
  readInputs,
  textAt,
  type Variables,
  variable,
} from "./inputs.ts";

/** Characters of an error in the summary and the comment; the log has all. */
const ERROR = 1000;

interface Ended {
  readonly code: number;
  /** What the command printed with --json. */
  readonly printed: unknown;
  /** The result as Markdown; null if the command ended before it had one. */
  readonly markdown: string | null;
}

async function main(env: NodeJS.ProcessEnv): Promise<number> {
  const inputs = readInputs(env);
  const event: unknown = JSON.parse(readFileSync(variable(env, "GITHUB_EVENT_PATH"), "utf8"));
  const ended = await runEval(inputs, env);
  const runId = textAt(ended.printed, "run_id") ?? "";
  const link = inputs.platform === null || runId === "" ? "" : inputs.platform + runPage(runId);
  writeOutputs(variable(env, "GITHUB_OUTPUT"), {
    "run-id": runId,
    reward: String(numberAt(ended.printed, "reward", "mean") ?? ""),
    passed: String(ended.code === 0),
    "exit-code": String(ended.code),
    junit: inputs.junit !== null && existsSync(inputs.junit) ? resolve(inputs.junit) : "",
    link,
  });
  const text = `${ended.markdown ?? failureText(inputs, ended)}\n${footer(link, event, env)}\n`;
  appendFileSync(variable(env, "GITHUB_STEP_SUMMARY"), text);
  if (inputs.comment) await comment(inputs, event, text, env);
  return ended.code === 0 ? 0 : 1;
}

/** Runs the command; its progress goes to the log. */
async function runEval({ words, keys }: Inputs, env: NodeJS.ProcessEnv): Promise<Ended> {
  const file = join(mkdtempSync(join(variable(env, "RUNNER_TEMP"), "rollcall-")), "eval.md");
  const program = join(variable(env, "ROLLCALL_FOLDER"), "bin/rollcall.mjs");
  const [environment = "", ...flags] = words;
  const all = [program, "eval", environment, "--json", `--markdown=${file}`, ...flags];
  // The inputs hold keys that neither the command nor a program of its `--` needs.
  const variables: NodeJS.ProcessEnv = { ...env, ...keys };
  for (const name of Object.keys(variables)) if (name.startsWith("INPUT_")) delete variables[name];
  // The log may contain text of models. Until the token comes again, the runner obeys no line of it.
  const token = randomUUID();
  process.stdout.write(`::stop-commands::${token}\n`);
  const child = spawn(process.execPath, all, {
    env: variables,
    stdio: ["ignore", "pipe", "pipe"],
  });
  passOnSignals(child);
  child.stderr.on("data", (part) => process.stdout.write(part));
  const [printed, [code, signal]] = await Promise.all([textOf(child.stdout), once(child, "close")]);
  const json = jsonOf(printed);
  process.stdout.write(`\n${logOf(json)}::${token}::\n`);
  if (typeof code !== "number") throw new Error(`rollcall eval was ended by ${signal}`);
  return { code, printed: json, markdown: existsSync(file) ? readFileSync(file, "utf8") : null };
}

/** The runner ends a cancelled step by a signal to this process alone. */
function passOnSignals(child: ChildProcess): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
}

/** The reward and the gates, a line each. */
function logOf(printed: unknown): string {
  const gates = at(printed, "gates");
  const lines = Array.isArray(gates)
    ? gates.map((gate) => `${textAt(gate, "gate")} ${textAt(gate, "verdict")}: ${textAt(gate, "message")}\n`)
    : [];
  const reward = numberAt(printed, "reward", "mean");
  return [reward === null ? "" : `mean reward ${reward.toFixed(3)}\n`, ...lines].join("");
}

function failureText({ environment }: Inputs, { code, printed }: Ended): string {
  const message = textAt(printed, "error", "message") ?? `rollcall eval exits ${code}; see the log`;
  return `### ${inlineCode(environment)}: the eval did not end\n\n${inlineCode(message, ERROR)}\n`;
}

function footer(link: string, event: unknown, env: Variables): string {
  const server = variable(env, "GITHUB_SERVER_URL");
  const job = `${server}/${variable(env, "GITHUB_REPOSITORY")}/actions/runs/${variable(env, "GITHUB_RUN_ID")}`;
  // GITHUB_SHA of a pull request is a merge that nobody knows.
  const commit = textAt(event, "pull_request", "head", "sha") ?? variable(env, "GITHUB_SHA");
  return [link === "" ? "" : `[page of the run](${link})`, `[log](${job})`, `commit ${commit.slice(0, 7)}`]
    .filter((part) => part !== "")
    .join(" · ");
}

async function comment(inputs: Inputs, event: unknown, text: string, env: Variables): Promise<void> {
  const number = pullRequestOf(event);
  if (number === null) return log("notice", "no comment: this event has no pull request");
  if (inputs.token === "") return log("notice", "no comment: github-token is empty");
  // One comment for each eval of a workflow.
  const about = [env["GITHUB_WORKFLOW"], env["GITHUB_JOB"], inputs.environment, inputs.model];
  const digest = createHash("sha256").update(JSON.stringify(about)).digest("hex");
  const pull = {
    ...{ api: variable(env, "GITHUB_API_URL"), repository: variable(env, "GITHUB_REPOSITORY") },
    ...{ number, token: inputs.token },
  };
  try {
    const address = await keepComment(pull, `<!-- rollcall-eval ${digest.slice(0, 16)} -->`, text);
    process.stdout.write(`The result is at ${address}\n`);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const refused = error instanceof GithubRefusal && (error.status === 403 || error.status === 404);
    if (!refused) return log("warning", `no comment: ${why}`);
    const hint = "the job needs the permission pull-requests: write, which a workflow of a fork does not get";
    log("notice", `no comment: ${why}: ${hint}. The result is in the summary of the job`);
  }
}

function pullRequestOf(event: unknown): number | null {
  const number = numberAt(event, "pull_request", "number");
  return number === null && at(event, "issue", "pull_request") !== undefined
    ? numberAt(event, "issue", "number")
    : number;
}

function writeOutputs(file: string, outputs: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(outputs)) {
    const end = randomUUID();
    appendFileSync(file, `${name}<<${end}\n${value}\n${end}\n`);
  }
}

function log(level: "error" | "warning" | "notice", message: string): void {
  const escaped = message.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
  process.stdout.write(`::${level}::${escaped}\n`);
}

try {
  process.exitCode = await main(process.env);
} catch (error) {
  if (!(error instanceof InputError)) throw error;
  log("error", error.message);
  process.exitCode = 1;
}
