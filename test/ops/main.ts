/** A real Prometheus and collector with a local platform; see README.md. Exits with 1 and the problems found. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import type { Span } from "../../src/telemetry/spans.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const RUNS = 4;
const TASKS = 30;
/** A rate needs two scrapes that differ, and runs report their last calls when they end. */
const SCRAPE_S = 2;

const { values } = parseArgs({
  options: { prometheus: { type: "string" }, promtool: { type: "string" }, collector: { type: "string" } },
});
const { prometheus, promtool, collector } = values;
if (prometheus === undefined || promtool === undefined || collector === undefined) {
  throw new Error("node test/ops/main.ts --prometheus FILE --promtool FILE --collector FILE");
}

const folder = mkdtempSync(join(tmpdir(), "rollcall-ops-"));
const children: ChildProcess[] = [];
const wrong: string[] = [];
const log = (line: string) => process.stdout.write(`${line}\n`);

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  await new Promise((closed) => server.close(closed));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

function begin(program: string, args: readonly string[]): void {
  children.push(spawn(program, args, { stdio: ["ignore", "ignore", "inherit"], cwd: folder }));
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 240; tries += 1) {
    if (await holds().catch(() => false)) return;
    await pause(500);
  }
  throw new Error(`it never came: ${what}`);
}

interface Queried {
  readonly status: string;
  readonly error?: string;
  readonly data: { readonly result: readonly { readonly value: [number, string] }[] };
}

async function asked(platform: Platform, path: string, body?: object): Promise<Response> {
  const headers = { authorization: `Bearer ${platform.key}`, "content-type": "application/json" };
  const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  const reply = await fetch(new URL(path, platform.url), init);
  if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
  return reply;
}

async function playRun(platform: Platform): Promise<void> {
  const dataset = Array.from({ length: TASKS }, (_, at) => ({ question: `question ${at}`, answer: "#### 4" }));
  const request = { environment: "gsm8k", dataset, model: "m", endpoint: "watched" };
  const { id } = (await (await asked(platform, "/v1/runs", request)).json()) as { id: string };
  await (await asked(platform, `/v1/runs/${id}/events`)).text();
}

function collectorConfig(port: number, spans: string): string {
  return `receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:${port}"}}}}
exporters: {file: {path: "${spans}", flush_interval: 200ms}}
service:
  telemetry: {metrics: {level: none}, logs: {level: warn}}
  pipelines: {traces: {receivers: [otlp], exporters: [file]}}
`;
}

function prometheusConfig(target: string, keyFile: string): string {
  return `scrape_configs:
  - job_name: rollcall
    scrape_interval: ${SCRAPE_S}s
    authorization: {credentials_file: ${keyFile}}
    static_configs: [{targets: ["${target}"]}]
`;
}

async function queryFor(port: number, query: string): Promise<readonly { readonly value: [number, string] }[]> {
  const reply = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`);
  const { status, error, data } = (await reply.json()) as Queried;
  if (status !== "success") throw new Error(`${query}: ${error}`);
  return data.result;
}

async function checkQueries(port: number): Promise<void> {
  const dashboard = JSON.parse(readFileSync(join(ROOT, "docs/dashboards/rollcall.json"), "utf8"));
  for (const { title, targets } of dashboard.panels) {
    for (const { expr } of targets) {
      const found = await queryFor(port, expr);
      const numbers = found.map(({ value }) => Number(value[1]));
      log(`  ${found.length} series, the largest ${Math.max(...numbers.filter(Number.isFinite))}: ${title}: ${expr}`);
      if (numbers.length === 0 || numbers.every(Number.isNaN)) wrong.push(`${title} shows nothing: ${expr}`);
    }
  }
  const page = readFileSync(join(ROOT, "docs/operations.md"), "utf8");
  const alarms = Array.from(page.matchAll(/^\| ([a-z ]+) \| `([^`]+)` \|/gm));
  for (const [, name = "", query = ""] of alarms) {
    const found = await queryFor(port, query);
    log(`  alarm ${name}: ${found.length === 0 ? "silent" : "rings"}`);
    if (found.length > 0) wrong.push(`the alarm ${name} rings where nothing is wrong`);
  }
}

function spansIn(file: string): Span[] {
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return lines.flatMap((line) => {
    const { resourceSpans } = JSON.parse(line);
    return resourceSpans.flatMap((one: { scopeSpans: { spans: Span[] }[] }) =>
      one.scopeSpans.flatMap(({ spans }) => spans),
    );
  });
}

function countByKind(spans: readonly Span[]): Record<string, number> {
  const kinds = Object.groupBy(spans, ({ name }) => name.split(" ")[0] ?? "");
  return Object.fromEntries(Object.entries(kinds).map(([kind, of = []]) => [kind, of.length]));
}

async function check(): Promise<void> {
  const [otlpPort, promPort] = [await freePort(), await freePort()];
  const spansFile = join(folder, "spans.jsonl");
  writeFileSync(join(folder, "collector.yaml"), collectorConfig(otlpPort, spansFile));
  begin(collector ?? "", ["--config", join(folder, "collector.yaml")]);
  process.env["OTLP_ENDPOINT"] = `http://127.0.0.1:${otlpPort}`;
  const model = await startScriptedModel({ reply: () => "\\boxed{4}", latencyMs: 60 });
  const platform = await bootPlatform({ directory: null, log: () => undefined });
  try {
    const key = { name: "prometheus", scopes: ["metrics"] };
    const { key: token } = (await (await asked(platform, "/v1/keys", key)).json()) as { key: string };
    writeFileSync(join(folder, "key"), token, { mode: 0o600 });
    const target = new URL(platform.url).host;
    writeFileSync(join(folder, "prometheus.yaml"), prometheusConfig(target, join(folder, "key")));
    const listen = `--web.listen-address=127.0.0.1:${promPort}`;
    const files = ["--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--log.level=error"];
    begin(prometheus ?? "", [...files, listen]);
    const timed = "sum(rollcall_model_latency_seconds_count)";
    const counted = async (query: string) => Number((await queryFor(promPort, query))[0]?.value[1] ?? 0);
    // One endpoint for all runs: the first scrape of an endpoint gives no rate.
    await asked(platform, "/v1/endpoints", { name: "watched", base_url: model.url, probe: false });
    await playRun(platform);
    await until("calls are scraped", async () => (await counted(timed)) > 0);
    await until("Prometheus scrapes", async () => (await counted('up{job="rollcall"}')) === 1);
    for (let run = 1; run < RUNS; run += 1) await playRun(platform);
    const ended = 'sum(rollcall_rollouts_ended_total{outcome="scored"})';
    await until("all ends are scraped", async () => (await counted(ended)) === RUNS * TASKS);
    await until("all calls are scraped", async () => (await counted(timed)) >= RUNS * TASKS);
    const text = await (await asked(platform, "/metrics")).text();
    writeFileSync(join(folder, "metrics.txt"), text);
    execFileSync(promtool ?? "", ["check", "metrics"], { input: text, stdio: ["pipe", "inherit", "inherit"] });
    log("promtool has nothing to say against the text; what the dashboard's queries yield:");
    await checkQueries(promPort);
    const all = { run: RUNS, invoke_agent: RUNS * TASKS, chat: RUNS * TASKS };
    const whole = async () => new Set(spansIn(spansFile).map(({ spanId }) => spanId)).size === RUNS * (1 + 2 * TASKS);
    await until("the collector has every span", whole);
    log(`the collector wrote ${JSON.stringify(countByKind(spansIn(spansFile)))}; expected ${JSON.stringify(all)}`);
  } finally {
    await platform.stop();
    await model.stop();
  }
}

try {
  await check();
} finally {
  for (const child of children) child.kill();
}
for (const line of wrong) log(`WRONG ${line}`);
log(`${wrong.length === 0 ? "good" : "not good"}; everything is in ${folder}`);
process.exitCode = wrong.length === 0 ? 0 : 1;
