/** `GET /metrics` of the whole Worker: its content, its cost, and that a failing part hides no other. */
import { env, exports } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { endpointObject } from "../../src/kernel/kit/names.ts";
import { scrapeMetrics } from "../../src/telemetry/scrape-metrics.ts";
import { admit } from "../accounts/admit.ts";
import { WAIT } from "../hang-limits.ts";
import { openPlatform } from "../kernel/platform.ts";
import { questions, RIGHT } from "../kernel/rows.ts";
import { script } from "../kernel/script.ts";

const MOST_READS = 30;
/** Of the second D1 database. */
const MORE_READS = 3;
/** A look-up of the key, and a block of requests. */
const READS_OF_THE_API = 2;

type TestApi = Awaited<ReturnType<typeof openPlatform>>;
let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** The Worker's bindings, with a count of every statement, object call and queue call. */
function countingEnv(): { readonly counted: Env; readonly reads: () => number } {
  let reads = 0;
  const counting = (target: object, isRead: (name: string | symbol) => boolean): object =>
    new Proxy(target, {
      get: (_, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        return (...given: unknown[]) => {
          if (isRead(name)) reads += 1;
          const made: unknown = Reflect.apply(member, target, given);
          return name === "getByName" ? counting(made as object, () => true) : made;
        };
      },
    });
  const counted = new Proxy(env, {
    get: (_, name) => {
      const binding: unknown = Reflect.get(env, name);
      if (typeof binding !== "object" || binding === null) return binding;
      return counting(binding, (called) => ["prepare", "metrics"].includes(String(called)));
    },
  });
  return { counted, reads: () => reads };
}

function valuesOf(text: string): Map<string, number> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]),
  );
}

test("a key with the scope metrics reads text that Prometheus accepts, and an admin is refused", async () => {
  const ask = async (token: string) =>
    await exports.default.fetch("http://platform.test/metrics", { headers: { authorization: `Bearer ${token}` } });
  const reply = await ask(await admit(api.scope, { scopes: ["metrics"] }));
  expect(reply.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(await reply.text()).toContain("# TYPE rollcall_runs gauge\n");
  expect((await ask(await admit(api.scope, { scopes: ["admin"] }))).status).toBe(403);
  expect((await ask(await admit(api.scope, { scopes: ["operator"] }))).status).toBe(200);
});

const ENDED = 'rollcall_runs_ended_total{status="completed"}';
const SCORED = 'rollcall_rollouts_ended_total{outcome="scored",reason=""}';

test("an ended run is counted, and its endpoint shows the latencies of its calls", async () => {
  const before = valuesOf(await scrapeMetrics(env, Date.now()));
  const run = await api.finish({ environment: "gsm8k", dataset: questions(3), model: script(RIGHT) });
  let after = before;
  const grown = (name: string) => (after.get(name) ?? Number.NaN) - (before.get(name) ?? Number.NaN);
  // D1 and the endpoint's object get the data a moment after the end; runs of other files add to it meanwhile.
  await vi.waitUntil(async () => {
    after = valuesOf(await scrapeMetrics(env, Date.now()));
    return grown(ENDED) >= 1 && grown(SCORED) >= 3;
  }, WAIT);
  // A scrape reads the endpoints that most runs use, and other tests have some in this database.
  const endpoint = endpointObject(env, api.scope, run.endpoint?.id ?? "");
  await vi.waitUntil(async () => (await endpoint.latencies()) !== null, WAIT);
  const latencies = await endpoint.latencies();
  expect(latencies?.counts.reduce((sum, count) => sum + count, 0)).toBe(3);
  expect(after.get('rollcall_queue_messages{queue="run-segments"}')).toBeGreaterThanOrEqual(0);
});

test("a scrape takes at most 30 reads, however many endpoints exist, and counts them", async () => {
  for (let made = 0; made < 8; made += 1) {
    await api.finish({ environment: "gsm8k", dataset: questions(1), model: script(RIGHT) });
  }
  const { counted, reads } = countingEnv();
  const values = valuesOf(await scrapeMetrics(counted, Date.now()));
  expect(values.get("rollcall_endpoints")).toBeGreaterThan(5);
  expect(values.get("rollcall_scrape_reads")).toBe(reads());
  expect(reads()).toBeGreaterThan(15);
  expect(reads() + READS_OF_THE_API).toBeLessThanOrEqual(MOST_READS + MORE_READS);
});

test("a queue that does not answer is left out and counted, and the rest is shown", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  const away = new Proxy(env.ROLLOUT_GROUPS, {
    get: () => () => Promise.reject(new Error("away")),
  });
  const text = await scrapeMetrics({ ...env, ROLLOUT_GROUPS: away }, Date.now());
  const values = valuesOf(text);
  expect(values.has('rollcall_queue_messages{queue="rollout-groups"}')).toBe(false);
  expect(values.get('rollcall_queue_messages{queue="rollout-scores"}')).toBeGreaterThanOrEqual(0);
  expect(values.get('rollcall_scrape_failed_reads{part="queues"}')).toBe(1);
  expect(values.get('rollcall_scrape_failed_reads{part="database"}')).toBe(0);
});

test("if the database does not answer, its counts are left out and not shown as 0", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  const away = new Proxy(env.DB, {
    get: () => () => {
      throw new Error("away");
    },
  });
  const values = valuesOf(await scrapeMetrics({ ...env, DB: away }, Date.now()));
  expect([...values.keys()].filter((name) => /^rollcall_(runs|rollouts|endpoints)/.test(name))).toEqual([]);
  expect(values.get('rollcall_scrape_failed_reads{part="database"}')).toBe(2);
});
