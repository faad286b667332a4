/**
 * The busiest paths at once, in a workerd whose heap ends at 128 MB: rollouts with large streamed replies, their scores,
 * uploads, and readers of large pages. With the budget of a deployment everything ends, and the process lives.
 */
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { type Fault, type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "../local/test-port.ts";

const MIB = 1024 * 1024;
/** Of each reply. Two bytes each, in memory and as UTF-8: together they do not fit into the heap. */
const CHARACTERS = 1 * MIB;
/** With BUDGET_MIB=1024, the budget of one machine, the process dies. */
const BUDGET_MIB = Number(process.env["BUDGET_MIB"] ?? 48);
const ROLLOUTS = 48;
const READERS = 6;
const UPLOADS = 3;
const UPLOAD_ROWS = 3000;

/** A reply ends so long after its text: without a budget all of them are in memory then. */
const THINKS_MS = 30_000;

let model: ScriptedModel;
beforeAll(async () => {
  const fault = largeStream();
  model = await startScriptedModel({ reply: () => ({ fault }) });
});
afterAll(() => model.stop());

/** The answer 4, after so many characters. */
function largeStream(): Fault {
  const event = (delta: object, more: object = {}) =>
    `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`;
  const piece = "ж".repeat(32 * 1024);
  const pieces = Array.from({ length: CHARACTERS / piece.length }, () => event({ content: piece }));
  const end = [event({ content: "\\boxed{4}" }, { finish_reason: "stop" }), "data: [DONE]\n\n"].join("");
  return { kind: "stream", text: pieces.join(""), rest: { text: end, ms: THINKS_MS } };
}

/** Miniflare passes the variable to each workerd that it starts. Other test files of this process must not have it. */
async function withCappedHeap<T>(boot: () => Promise<T>): Promise<T> {
  const name = "MINIFLARE_WORKERD_V8_FLAGS";
  const before = process.env[name];
  process.env[name] = "--max-old-space-size=128";
  try {
    return await boot();
  } finally {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  }
}

async function boot(budget: number): Promise<Platform> {
  const bindings = { MEMORY_BUDGET_MIB: budget, ROLLOUT_CHARACTERS: 4 * MIB };
  return await withCappedHeap(() =>
    bootPlatform({ directory: null, port: testPort(0), log: () => undefined, bindings }),
  );
}

function clientOf({ url, key }: Platform) {
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(new URL(path, url), { ...init, headers: { authorization: `Bearer ${key}`, ...init.headers } });
  /** Repeats the request while the reply is 429. */
  const askAgain = async (path: string, init?: () => RequestInit): Promise<Response> => {
    for (;;) {
      const reply = await ask(path, init?.());
      if (reply.status !== 429) return reply;
      await reply.body?.cancel();
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  return { ask, askAgain };
}

type Client = ReturnType<typeof clientOf>;

async function startRun({ ask }: Client): Promise<string> {
  const dataset = Array.from({ length: ROLLOUTS }, () => ({ question: "What is 2 + 2?", answer: "#### 4" }));
  const request = { environment: "gsm8k", dataset, endpoint: { base_url: model.url }, model: "large" };
  const headers = { "content-type": "application/json" };
  const reply = await ask("/v1/runs", {
    method: "POST",
    headers,
    body: JSON.stringify({ ...request, max_concurrent: 48 }),
  });
  expect(reply.status).toBe(202);
  return ((await reply.json()) as { id: string }).id;
}

interface Ended {
  readonly status: string;
  readonly counts: { readonly scored: number };
}

async function endOf({ ask }: Client, id: string): Promise<Ended> {
  for (;;) {
    const run = (await (await ask(`/v1/runs/${id}`)).json()) as Ended;
    if (run.status !== "queued" && run.status !== "running") return run;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** All pages, and how many rows they have. */
async function readAll({ askAgain }: Client, first: string): Promise<number> {
  let rows = 0;
  for (let path: string | null = first; path !== null; ) {
    const reply: Response = await askAgain(path);
    expect(reply.status).toBe(200);
    const text = await reply.text().catch(() => null);
    // Its memory was given to another page.
    if (text === null) continue;
    rows += text.split("\n").length - 1;
    path = /<([^>]+)>; rel="next"/.exec(reply.headers.get("link") ?? "")?.[1] ?? null;
  }
  return rows;
}

/** About 12 MB. Returns its id. */
async function upload({ askAgain }: Client): Promise<string> {
  const row = JSON.stringify({ question: "q".repeat(4000), answer: "#### 4" });
  const body = `${row}\n`.repeat(UPLOAD_ROWS);
  const headers = { "content-type": "application/jsonl" };
  const reply = await askAgain("/v1/datasets", () => ({ method: "POST", headers, body }));
  expect(reply.status).toBe(201);
  return ((await reply.json()) as { id: string }).id;
}

const times = <T>(count: number, make: () => Promise<T>) => Promise.all(Array.from({ length: count }, make));

test("with the budget of a deployment everything ends, and the process lives", async () => {
  const platform = await boot(BUDGET_MIB);
  try {
    const pid = platform.workerdPid();
    const client = clientOf(platform);
    const rows = `/v1/datasets/${await upload(client)}/rows?limit=1000`;
    const id = await startRun(client);
    const [run, readers] = await Promise.all([
      endOf(client, id),
      times(READERS, () => readAll(client, rows)),
      times(UPLOADS, () => upload(client)),
    ]);
    expect(run).toMatchObject({ status: "completed", counts: { scored: ROLLOUTS } });
    expect(readers).toEqual(readers.map(() => UPLOAD_ROWS));
    expect(await readAll(client, `/v1/runs/${id}/results?limit=1000`)).toBe(ROLLOUTS);
    expect(platform.workerdPid()).toBe(pid);
  } finally {
    await platform.stop();
  }
});

/** Keeps as many MB of numbers as its address says. */
const KEEPER = `export default {
  async fetch(request) {
    const kept = [];
    for (let mb = Number(new URL(request.url).searchParams.get("mb")); mb > 0; mb -= 1) {
      kept.push(Array.from({ length: 131072 }, (_, at) => at + 0.5));
    }
    return new Response(String(kept.length));
  },
};`;

test("a Worker that keeps more than the heap has ends its process, so the heap is capped", async () => {
  const worker = await withCappedHeap(async () => {
    const started = new Miniflare(convertV4MiniflareOptions({ modules: true, cf: false, script: KEEPER }));
    await started.ready;
    return started;
  });
  try {
    expect(await (await worker.dispatchFetch("http://keeper.test/?mb=40")).text()).toBe("40");
    await expect(worker.dispatchFetch("http://keeper.test/?mb=400")).rejects.toThrow();
  } finally {
    await worker.dispose();
  }
});
