/**
 * Runs the steps of action.yml as the runner of GitHub does: each in a bash of its own, with its inputs as variables, and
 * the files for outputs and the summary. It evaluates only the expressions that the action has.
 */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parse } from "yaml";
import * as z from "zod";
import { runIn } from "../local/in-a-folder.ts";

const ROOT = resolve(import.meta.dirname, "../..");

const Texts = z.record(z.string(), z.string());
const Action = z.strictObject({
  name: z.string(),
  description: z.string(),
  branding: Texts,
  inputs: z.record(
    z.string(),
    z.strictObject({ description: z.string(), required: z.boolean().optional(), default: z.string().optional() }),
  ),
  outputs: z.record(z.string(), z.strictObject({ description: z.string(), value: z.string() })),
  runs: z.strictObject({
    using: z.literal("composite"),
    steps: z.array(
      z.strictObject({
        id: z.string(),
        shell: z.literal("bash"),
        "working-directory": z.string(),
        env: Texts,
        run: z.string(),
      }),
    ),
  }),
});

export const ACTION = Action.parse(parse(readFileSync(join(ROOT, "action.yml"), "utf8")));

interface Job {
  /** The values of `with`. */
  readonly inputs: Readonly<Record<string, string>>;
  /** `github.token`. */
  readonly token: string;
  /** GITHUB_API_URL. */
  readonly api: string;
  /** The payload of the event. */
  readonly event: object;
  /** The folder of the job; a new folder below it is RUNNER_TEMP. */
  readonly folder: string;
  /** When it is fulfilled, the job is cancelled: the step that runs gets a SIGINT. */
  readonly cancelled?: Promise<void>;
  /** More variables of the job. */
  readonly env?: Readonly<Record<string, string>>;
}

interface JobEnd {
  readonly code: number | null;
  readonly log: string;
  readonly outputs: Readonly<Record<string, string>>;
  readonly summary: string;
}

export async function runAction({ inputs, token, api, event, folder, cancelled, env = {} }: Job): Promise<JobEnd> {
  const temporary = mkdtempSync(join(folder, "runner-"));
  const file = (name: string) => join(temporary, name);
  writeFileSync(file("event.json"), JSON.stringify(event));
  writeFileSync(file("summary.md"), "");
  const defaults = Object.entries(ACTION.inputs).map(([name, { default: value = "" }]) => [name, value]);
  const values = new Map([["github.token", token]]);
  const evaluated = (text: string) => text.replace(/\$\{\{ (.*?) \}\}/g, (_, name: string) => values.get(name) ?? "");
  for (const [name, value] of [...defaults, ...Object.entries(inputs)]) {
    values.set(`inputs.${name}`, evaluated(value ?? ""));
  }
  const variables = {
    ...{ GITHUB_ACTION_PATH: ROOT, GITHUB_API_URL: api, GITHUB_SERVER_URL: "https://github.com" },
    ...{ GITHUB_REPOSITORY: "acme/agent", GITHUB_RUN_ID: "4711", GITHUB_SHA: "f".repeat(40), GITHUB_WORKFLOW: "evals" },
    ...{ GITHUB_JOB: "eval", GITHUB_EVENT_PATH: file("event.json"), GITHUB_STEP_SUMMARY: file("summary.md") },
    ...{ RUNNER_TEMP: temporary, CI: "true", GITHUB_ACTIONS: "true", ...env },
  };
  let [log, code]: [string, number | null] = ["", 0];
  for (const step of ACTION.runs.steps) {
    const [script, output] = [file(`${step.id}.sh`), file(`${step.id}.out`)];
    writeFileSync(script, step.run);
    writeFileSync(output, "");
    const own = Object.entries(step.env).map(([name, value]) => [name, evaluated(value)]);
    const cwd = resolve(folder, evaluated(step["working-directory"]));
    mkdirSync(cwd, { recursive: true });
    const bash = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script] as const;
    const all = { ...variables, ...Object.fromEntries(own), GITHUB_OUTPUT: output };
    const ended = await runIn(cwd, bash, all, (child) => cancelled?.then(() => child.kill("SIGINT")));
    log += ended.stdout + ended.stderr;
    code = ended.code;
    for (const [name, value] of outputsOf(readFileSync(output, "utf8"))) {
      values.set(`steps.${step.id}.outputs.${name}`, value);
    }
    if (code !== 0) break;
  }
  const outputs = Object.entries(ACTION.outputs).map(([name, { value }]) => [name, evaluated(value)]);
  return { code, log, outputs: Object.fromEntries(outputs), summary: readFileSync(file("summary.md"), "utf8") };
}

/** `name=value`, or `name<<END`, lines and END. */
function outputsOf(text: string): [string, string][] {
  const found = text.matchAll(/^([\w-]+)(?:=(.*)|<<(\S+)\n([\s\S]*?)\n\3)$/gm);
  return Array.from(found, ([, name = "", line, , lines]) => [name, line ?? lines ?? ""]);
}
