/**
 * `npm run fuzz`: sends requests that Schemathesis makes from the OpenAPI document, as callers of every kind, and
 * checks each reply against the document. Prints counts of requests and replies. Exits with 1 after a finding, or if a
 * key was lost on the way.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, createWriteStream, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import * as z from "zod";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { documentFor } from "./document.ts";
import { CALLERS, type CallerName, prepare } from "./organization.ts";

const { values } = parseArgs({
  options: {
    schemathesis: { type: "string", default: "schemathesis" },
    as: { type: "string", multiple: true, default: [...CALLERS] },
    seed: { type: "string", default: "1" },
    examples: { type: "string", default: "20" },
    port: { type: "string", default: "8787" },
    out: { type: "string", default: "/tmp/rollcall-fuzz" },
  },
});
const CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
/**
 * Requests that end, delete or lock out come last; so does the stream of events, which does not end while a run is in
 * progress.
 */
const LAST = [
  ["method", "DELETE"],
  ...["cancelRun", "cancelRollout", "registerTrainer", "updateOrganization", "streamEvents"].map(
    (id) => ["operation-id", id] as const,
  ),
] as const;
const PASSES = ["exclude", "include"].map((way) => LAST.flatMap(([what, value]) => [`--${way}-${what}`, value]));
const Interaction = z.object({ response: z.object({ status_code: z.int() }).nullable() });
const Recorder = z.object({ label: z.string(), interactions: z.record(z.string(), Interaction).default({}) });
const Line = z.object({ ScenarioFinished: z.object({ recorder: Recorder }) });

async function fuzz({ url, key, policyUrl }: Platform, caller: CallerName): Promise<boolean> {
  const folder = join(values.out, caller);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const target = await prepare({ url, key, policyUrl }, caller);
  const headers = target.key === null ? {} : { authorization: `Bearer ${target.key}` };
  const document = documentFor(await (await fetch(`${url}/openapi.json`)).text(), target.known);
  writeFileSync(join(folder, "openapi.json"), document);
  const asked = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const exits: number[] = [];
  for (const [pass, filter] of PASSES.entries())
    exits.push(await request(folder, String(pass), [url, ...asked, ...filter]));
  const { status } = await fetch(`${url}${target.key === null ? "/healthz" : "/v1/whoami"}`, { headers });
  process.stdout.write(`${JSON.stringify({ caller, exits, key_after: status, ...(await countReplies(folder)) })}\n`);
  return exits.every((exit) => exit === 0) && status !== 401;
}

/** Returns its exit code; its output is in `findings-….txt`. */
async function request(folder: string, pass: string, more: readonly string[]): Promise<number> {
  const flags = ["--seed", values.seed, "--max-examples", values.examples, "--no-shrink", "--continue-on-failure"];
  const report = ["--no-color", "--report", "ndjson", "--report-dir", folder, "--request-timeout", "60"];
  const args = ["run", join(folder, "openapi.json"), "--checks", CHECKS, ...flags, ...report, "--url", ...more];
  const env = { ...process.env, SCHEMATHESIS_HOOKS: join(import.meta.dirname, "hooks.py") };
  const made = spawn(values.schemathesis, args, { env, cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  made.stdout.pipe(createWriteStream(join(folder, `findings-${pass}.txt`)));
  const [exit] = await once(made, "close");
  return exit ?? 1;
}

/** Replies by status, and how many operations succeeded; `none`: a request without an answer. */
async function countReplies(folder: string) {
  const replies: Record<string, number> = {};
  const operations: Record<string, number> = {};
  const reports = readdirSync(folder).filter((name) => name.endsWith(".ndjson"));
  for await (const line of linesOf(reports.map((name) => join(folder, name)))) {
    if (!line.startsWith('{"ScenarioFinished"')) continue;
    const { label, interactions } = Line.parse(JSON.parse(line)).ScenarioFinished.recorder;
    for (const { response } of Object.values(interactions)) {
      const status = response?.status_code ?? "none";
      replies[status] = (replies[status] ?? 0) + 1;
      operations[label] = (operations[label] ?? 0) + (Number(status) < 300 ? 1 : 0);
    }
  }
  const requests = Object.values(replies).reduce((sum, count) => sum + count, 0);
  return { requests, replies, never_succeeded: Object.keys(operations).filter((label) => operations[label] === 0) };
}

async function* linesOf(files: readonly string[]) {
  for (const file of files) yield* createInterface(createReadStream(file));
}

const platform = await bootPlatform({
  directory: null,
  port: Number(values.port),
  log: (line) => process.stderr.write(`${line}\n`),
});
const interrupt = () => void platform.stop().then(() => process.exit(130));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, interrupt);
const good: boolean[] = [];
for (const caller of CALLERS.filter((name) => values.as.includes(name))) good.push(await fuzz(platform, caller));
await platform.stop();
process.exitCode = good.every(Boolean) ? 0 : 1;
