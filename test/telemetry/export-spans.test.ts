/** Spans of a run that was really played, sent to a collector on a real socket. */
import { env } from "cloudflare:workers";
import { beforeAll, beforeEach, expect, test, vi } from "vitest";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { runObject } from "../../src/kernel/kit/names.ts";
import { Subrequests } from "../../src/kernel/kit/subrequests.ts";
import { exportSpans, forgetCollector } from "../../src/telemetry/export-spans.ts";
import { readTotals } from "../../src/telemetry/queries.ts";
import type { Span } from "../../src/telemetry/spans.ts";
import type { Received } from "../fakes/otlp-collector.ts";
import { WAIT } from "../hang-limits.ts";
import { openPlatform, type TestApi } from "../kernel/platform.ts";
import { questions, RIGHT } from "../kernel/rows.ts";
import { script } from "../kernel/script.ts";

const SEGMENT = 1;
const logged: string[] = [];
let api: TestApi;
let runId: string;
beforeAll(async () => {
  api = await openPlatform();
  const run = await api.finish({ environment: "gsm8k", dataset: questions(3), model: script(RIGHT) });
  runId = run.id;
  const folded = async () => (await runObject(env, api.scope, runId).segmentTrace(SEGMENT))?.key != null;
  await vi.waitUntil(folded, WAIT);
});

beforeEach(() => {
  forgetCollector();
  logged.length = 0;
  vi.spyOn(console, "error").mockImplementation((line: string) => {
    logged.push(line);
  });
});

/** `name`: selects the collector's behaviour. */
async function exported(name: string, changes: Partial<Env> = {}): Promise<{ received: Received[]; spans: Span[] }> {
  const collector = `${env.COLLECTOR_URL}/${name}`;
  const message = { kind: "segment", scope: api.scope, run_id: runId, segment: SEGMENT } as const;
  await exportSpans({ ...env, OTLP_ENDPOINT: collector, ...changes }, message, null, new Subrequests());
  const received = await (await fetch(collector)).json<Received[]>();
  const spans = received.flatMap(({ body }) => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans as Span[]);
  return { received, spans };
}

async function dropped(): Promise<number> {
  return (await readTotals(databaseOf(env))).find(({ kind }) => kind === "spans_dropped")?.n ?? 0;
}

test("a segment becomes a span of the run, one for each rollout and one for each turn below it", async () => {
  const { received, spans } = await exported(crypto.randomUUID(), { OTLP_HEADERS: "authorization=Basic%20abc,x-a=b" });
  expect(received).toHaveLength(1);
  expect(received[0]?.headers).toMatchObject({
    authorization: "Basic abc",
    "x-a": "b",
    "content-type": "application/json",
  });
  expect(spans.map(({ name }) => name.split(" ")[0]).sort()).toEqual([
    ...["chat", "chat", "chat"],
    ...["invoke_agent", "invoke_agent", "invoke_agent", "run"],
  ]);
  const [run] = spans.filter(({ name }) => name.startsWith("run"));
  const rollouts = spans.filter(({ name }) => name.startsWith("invoke_agent"));
  const turns = spans.filter(({ name }) => name.startsWith("chat"));
  expect(new Set(rollouts.map(({ parentSpanId }) => parentSpanId))).toEqual(new Set([run?.spanId]));
  expect(new Set(turns.map(({ parentSpanId }) => parentSpanId))).toEqual(new Set(rollouts.map(({ spanId }) => spanId)));
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  for (const { spanId, traceId } of spans) expect([spanId, traceId].join(" ")).toMatch(/^[0-9a-f]{16} [0-9a-f]{32}$/);
  expect(JSON.stringify(spans)).not.toMatch(/messages|plain question/);
});

test("a repeated message sends the same spans with the same ids", async () => {
  const name = crypto.randomUUID();
  await exported(name);
  const { received } = await exported(name);
  expect(received).toHaveLength(2);
  expect(received[1]?.body).toBe(received[0]?.body);
});

test("prompts and completions are included only if the deployment allows it", async () => {
  const { spans } = await exported(crypto.randomUUID(), { OTLP_CONTENT: "true" });
  const [turn] = spans.filter(({ name }) => name.startsWith("chat"));
  const keys = turn?.attributes.map(({ key }) => key);
  expect(keys).toEqual(expect.arrayContaining(["gen_ai.input.messages", "gen_ai.output.messages"]));
  expect(JSON.stringify(turn)).toContain("plain question");
});

test("without a collector nothing is sent", async () => {
  const run = vi.fn();
  const silent = new Proxy(env, {
    get: (_, name) => (name === "RUN" ? run() : name === "OTLP_ENDPOINT" ? "" : undefined),
  });
  const message = { kind: "segment", scope: api.scope, run_id: runId, segment: SEGMENT } as const;
  await exportSpans(silent, message, null, new Subrequests());
  expect(run).not.toHaveBeenCalled();
});

test("a collector that is busy once is called again, and nothing is lost", async () => {
  const before = await dropped();
  const { received } = await exported(`once-503-${crypto.randomUUID()}`);
  expect(received).toHaveLength(2);
  expect(await dropped()).toBe(before);
});

test("refused spans are counted and dropped, and an unavailable collector is not called for a while", async () => {
  const before = await dropped();
  const name = `refuse-503-${crypto.randomUUID()}`;
  expect((await exported(name)).received).toHaveLength(2);
  expect((await exported(name)).received).toHaveLength(2);
  expect(await dropped()).toBe(before + 14);
  expect(logged.join("\n")).toContain('"message":"spans dropped"');
});

test("a request that the collector refuses as invalid is not repeated", async () => {
  const before = await dropped();
  expect((await exported(`refuse-400-${crypto.randomUUID()}`)).received).toHaveLength(1);
  expect(await dropped()).toBe(before + 7);
});

test("if a collector accepts only some spans, the rest is counted", async () => {
  const before = await dropped();
  await exported(`partial-${crypto.randomUUID()}`);
  expect(await dropped()).toBe(before + 2);
});

test("an address that this deployment may not call is not called", async () => {
  const before = await dropped();
  const { received } = await exported(crypto.randomUUID(), { ALLOW_PRIVATE_ENDPOINTS: "false" });
  expect(received).toEqual([]);
  expect(await dropped()).toBe(before + 7);
});
