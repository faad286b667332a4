/**
 * Faults of Cloudflare itself, with the texts that it has for them, at each seam: D1, R2 and calls between objects. A run
 * that meets one, wherever it is, ends with every rollout played once and charged once.
 */
import { env } from "cloudflare:workers";
import { afterEach, expect, test } from "vitest";
import { ApiError } from "../../../src/contract/api-error.ts";
import { RunAudit } from "../../../src/contract/audit.ts";
import { RunView } from "../../../src/contract/run.ts";
import { NO_OUTCOMES } from "../../../src/kernel/endpoint/health.ts";
import { isPassing, isUnreadable, refusalOf } from "../../../src/kernel/kit/storage-faults.ts";
import type { EndpointRpc } from "../../../src/kernel/messages/rpc.ts";
import { FAULTS } from "../../fakes/platform-fault-texts.ts";
import { balanceOf, entriesOf, openPaying, settle } from "../paying.ts";
import { expectLaw, requestsOf, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

test("every text of a passing fault is classified as one, also as the cause of another error", () => {
  for (const message of Object.values(FAULTS).flat()) {
    for (const error of [new Error(message), new Error("Failed query: select 1", { cause: new Error(message) })]) {
      const classes = [isPassing(env, error), isUnreadable(env, error), refusalOf(error)];
      expect(classes, message).toEqual([true, false, null]);
    }
  }
});

test("a value that is too large, or an error of our own statement, does not pass", () => {
  const tooLarge =
    "Serialized RPC arguments or return values are limited to 32MiB, but the size of this value was: 34603028 bytes.";
  for (const message of [tooLarge, `D1_ERROR: ${tooLarge}`, "string or blob too big: SQLITE_TOOBIG"]) {
    const error = new Error(message);
    expect([isPassing(env, error), isUnreadable(env, error), refusalOf(error)], message).toEqual([
      false,
      false,
      message,
    ]);
  }
  for (const message of ["D1_ERROR: no such table: nowhere: SQLITE_ERROR", "D1_ERROR: Exceeded maximum DB size."]) {
    expect([isPassing(env, new Error(message)), isUnreadable(env, new Error(message))], message).toEqual([
      false,
      false,
    ]);
  }
});

/** The fault of one organisation: at its call number `at` of the seam, before or after the call's effect. */
interface Plan {
  readonly at: number;
  readonly when: "before" | "after";
  readonly message: string;
  calls: number;
  met: string | null;
}
const plans = new Map<string, Plan>();

/** Calls of organisations without a plan pass. */
async function meet<T>(org: string | null, what: string, call: () => Promise<T>): Promise<T> {
  const plan = org === null ? undefined : plans.get(org);
  if (plan === undefined) return await call();
  plan.calls += 1;
  if (plan.calls !== plan.at) return await call();
  plan.met = what;
  if (plan.when === "after") await call();
  throw new Error(plan.message);
}

const orgIn = (values: readonly unknown[]) => {
  const texts = values.filter((value) => typeof value === "string");
  return [...plans.keys()].find((org) => texts.some((text) => text.includes(org))) ?? null;
};

const RUNS = ["all", "first", "run", "raw"];

function faultyDatabase(database: D1Database): D1Database {
  const orgs = new WeakMap<object, string>();
  const statementOf = (statement: D1PreparedStatement, query: string): D1PreparedStatement =>
    new Proxy(statement, {
      get(target, property, self) {
        const member: unknown = Reflect.get(target, property);
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          if (property === "bind") {
            const bound = statementOf(target.bind(...args), query);
            const org = orgIn(args);
            if (org !== null) orgs.set(bound, org);
            return bound;
          }
          const call = () => Reflect.apply(member, target, args);
          return RUNS.includes(String(property)) ? meet(orgs.get(self) ?? null, query, call) : call();
        };
      },
    });
  return new Proxy(database, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        if (property === "prepare") return statementOf(target.prepare(String(args[0])), String(args[0]));
        const call = () => Reflect.apply(member, target, args);
        if (property !== "batch") return call();
        const [org = null] = (args[0] as object[]).flatMap((statement) => orgs.get(statement) ?? []);
        return meet(org, "batch", call);
      };
    },
  });
}

interface Named {
  readonly getByName: (name: string) => object;
}

function faultyObjects<Objects extends Named>(objects: Objects): Objects {
  return new Proxy(objects, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property);
      // The runtime's helpers recognise a namespace by its constructor's name.
      if (typeof member !== "function" || property === "constructor") return member;
      if (property !== "getByName") return member.bind(target);
      return (name: string) => {
        const [object, org] = [target.getByName(name), orgIn([name])];
        // The runtime's helpers take no other stub than its own.
        if (org === null) return object;
        return new Proxy(object, {
          get(stub, method) {
            const call = async (...args: unknown[]): Promise<unknown> => await Reflect.get(stub, method)(...args);
            return (...args: unknown[]) => meet(org, String(method), () => call(...args));
          },
        });
      };
    },
  });
}

function faultyStore(bucket: R2Bucket): R2Bucket {
  return new Proxy(bucket, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        return meet(orgIn([args[0]]), String(property), async () => await Reflect.apply(member, target, args));
      };
    },
  });
}

const WHOLE = { ...env };
afterEach(() => {
  Object.assign(env, WHOLE);
  plans.clear();
});

const ROLLOUTS = 2;
const PRICE = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 1_000_000 };

/** Repeats a request as the SDK does, as long as it is answered 503. Any other failure is the caller's. */
async function repeated(ask: () => Promise<Response>): Promise<Response> {
  for (;;) {
    const reply = await ask();
    if (reply.status !== 503) return reply;
    const { error } = ApiError.parse(await reply.json());
    expect([error.code, reply.headers.get("retry-after")]).toEqual(["unavailable", "2"]);
  }
}

async function read<T>(api: TestApi, path: string, parse: (body: unknown) => T): Promise<T> {
  const reply = await repeated(() => api.ask(path));
  const text = await reply.text();
  expect(reply.status, `${path}: ${text}`).toBe(200);
  return parse(JSON.parse(text));
}

/** A run of an organisation that pays, followed to its end. Returns what must be true of every such run. */
async function play(api: TestApi) {
  const model = script(RIGHT);
  const endpoint = { base_url: env.MODEL_URL, prices: PRICE };
  const request = { environment: "gsm8k", dataset: questions(ROLLOUTS), model, endpoint };
  const key = crypto.randomUUID();
  const begun = await repeated(() => api.post("/v1/runs", request, { "idempotency-key": key }));
  const text = await begun.text();
  expect(begun.status, text).toBe(202);
  const { id } = RunView.parse(JSON.parse(text));
  for (let ended = false; !ended; ) {
    const events = await repeated(() => api.ask(`/v1/runs/${id}/events`));
    expect(events.status).toBe(200);
    // A stream that breaks is read again.
    ended = (await events.text().catch(() => "")).includes("event: run.completed");
  }
  const run = await read(api, `/v1/runs/${id}`, (body) => RunView.parse(body));
  expectLaw(run.counts);
  return { id, model, run };
}

async function outcomeOf(api: TestApi, { id, model, run }: Awaited<ReturnType<typeof play>>) {
  plans.delete(api.scope.orgId);
  const settled = await settle(api, id);
  const audit = await read(api, `/v1/runs/${id}/audit`, (body) => RunAudit.parse(body));
  const keys = (await requestsOf(model)).map(({ idempotency_key }) => idempotency_key);
  const entries = await entriesOf(api, id);
  return {
    scored: run.counts.scored,
    failed: run.counts.failed,
    calls: new Set(keys).size,
    holds: audit.violations,
    settled,
    charges: entries.map(({ kind, amount_micros }) => `${kind} ${amount_micros}`).sort(),
    balance: (await balanceOf(api)).balance_micros,
  };
}

const SEAMS = {
  D1: { texts: FAULTS.database, arm: () => Object.assign(env, { DB: faultyDatabase(WHOLE.DB) }) },
  R2: { texts: FAULTS.store, arm: () => Object.assign(env, { STORE: faultyStore(WHOLE.STORE) }) },
  "calls between objects": {
    texts: FAULTS.object,
    arm: () =>
      Object.assign(env, {
        RUN: faultyObjects(WHOLE.RUN),
        ROLLOUT: faultyObjects(WHOLE.ROLLOUT),
        ENDPOINT: faultyObjects(WHOLE.ENDPOINT),
        ACCOUNT: faultyObjects(WHOLE.ACCOUNT),
      }),
  },
};

test("a query that failed inside an object is a passing fault to the caller of the object", async () => {
  const api = await openPaying(0);
  const { orgId } = api.scope;
  plans.set(orgId, { at: 1, when: "before", message: FAULTS.database[0] ?? "", calls: 0, met: null });
  SEAMS.D1.arm();
  const stub: unknown = env.ENDPOINT.getByName(`org/${orgId}/faulty`);
  const asked = { scope: api.scope, endpoint_id: "ep_1", run_id: "run_1", model: "m", outcomes: NO_OUTCOMES };
  const thrown = await (stub as EndpointRpc).ask({ ...asked, running: 0, wants: 1, more: true }).then(
    () => null,
    (error: unknown) => error,
  );
  expect([thrown instanceof Error, isPassing(env, thrown)]).toEqual([true, true]);
});

for (const [seam, { texts, arm }] of Object.entries(SEAMS)) {
  test(`${seam}: a run that meets a fault at any call ends with each rollout played once and charged once`, async () => {
    const opened = () => openPaying(1_000_000);
    const whole = await opened();
    const count: Plan = { at: 0, when: "before", message: "", calls: 0, met: null };
    plans.set(whole.scope.orgId, count);
    arm();
    const expected = await outcomeOf(whole, await play(whole));
    expect(expected).toMatchObject({ scored: ROLLOUTS, failed: {}, calls: ROLLOUTS, holds: [], settled: true });
    expect(count.calls).toBeGreaterThan(1);
    const cases = Array.from({ length: count.calls }, (_, at) => at + 1).flatMap((at) =>
      (["before", "after"] as const).map((when) => ({ at, when, message: texts[at % texts.length] ?? "" })),
    );
    const met: string[] = [];
    const outcomes = await Promise.all(
      cases.map(async ({ at, when, message }) => {
        const api = await opened();
        const plan: Plan = { at, when, message, calls: 0, met: null };
        plans.set(api.scope.orgId, plan);
        const what = () => `${when} call ${at} (${plan.met}): ${message}`;
        try {
          const outcome = await outcomeOf(api, await play(api));
          if (plan.met !== null) met.push(plan.met);
          return { what: what(), outcome };
        } catch (thrown) {
          return { what: what(), outcome: String(thrown) };
        }
      }),
    );
    expect(outcomes).toEqual(outcomes.map(({ what }) => ({ what, outcome: expected })));
    expect(met.length).toBeGreaterThan(cases.length / 2);
  });
}
