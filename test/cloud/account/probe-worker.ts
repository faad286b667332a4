/**
 * The Worker that `npm run test:cloud` deploys next to a preview of the platform. It measures how the runtime behaves,
 * one probe an object, and is also the server that the probes call: a silent one, a streaming one and a model.
 *
 * A probe runs in the alarm of its object, as rollouts do, and its result is polled: so no measurement depends on how
 * long a request from outside may take. Every number that a request names is bounded here.
 */
import { DurableObject } from "cloudflare:workers";
import * as z from "zod";
import { modelReply } from "./probe-model.ts";

export interface ProbeEnv {
  readonly DB: D1Database;
  readonly STORE: R2Bucket;
  /** The bucket of the platform: it is emptied before it is deleted. */
  readonly PRODUCT_STORE: R2Bucket;
  readonly QUEUE: Queue<Sent>;
  readonly PROBE: DurableObjectNamespace<ProbeObject>;
  readonly TOKEN: string;
}

interface Sent {
  readonly probe: string;
  readonly at: number;
}

const MiB = 1024 * 1024;
const CONNECTIONS = 6;
const MOST_S = 400;
const POLL_MS = 200;

const Seconds = z.number().min(0).max(MOST_S);
/** What a probe does, and its sizes. `origin`: the address of the server that is called. */
const Job = z.discriminatedUnion("probe", [
  z.strictObject({ probe: z.literal("silence"), origin: z.url(), seconds: Seconds }),
  z.strictObject({
    probe: z.literal("stream"),
    origin: z.url(),
    seconds: Seconds,
    every_s: z.number().min(0.01).max(60),
  }),
  z.strictObject({ probe: z.literal("connections"), origin: z.url(), seconds: Seconds, streamed: z.boolean() }),
  z.strictObject({ probe: z.literal("alarms"), objects: z.int().min(1).max(200), after_ms: z.int().max(60_000) }),
  z.strictObject({ probe: z.literal("facet") }),
  z.strictObject({ probe: z.literal("batch") }),
  z.strictObject({ probe: z.literal("queue"), messages: z.int().min(1).max(1000), limit_s: Seconds }),
  z.strictObject({ probe: z.literal("multipart"), part_mib: z.number().min(5).max(50), parts: z.int().min(1).max(4) }),
  z.strictObject({ probe: z.literal("value"), mib: z.number().min(0).max(64) }),
  z.strictObject({ probe: z.literal("memory"), mib: z.int().min(1).max(1024) }),
  z.strictObject({ probe: z.literal("faults") }),
]);
type Job = z.infer<typeof Job>;

/** An error as its receiver sees it. */
interface ErrorSeen {
  readonly name: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly overloaded: boolean;
}

function seen(thrown: unknown): ErrorSeen {
  const { retryable, overloaded } = Object(thrown);
  const [name, message] = thrown instanceof Error ? [thrown.name, thrown.message] : ["", String(thrown)];
  return { name, message, retryable: retryable === true, overloaded: overloaded === true };
}

/** The error of a call; null if it succeeded. */
async function errorOf(call: () => unknown): Promise<ErrorSeen | null> {
  try {
    await call();
    return null;
  } catch (thrown) {
    return seen(thrown);
  }
}

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Milliseconds that `call` took, with its result or its error. */
async function timed<T>(call: () => Promise<T>) {
  const from = Date.now();
  try {
    const value = await call();
    return { ms: Date.now() - from, value, error: null };
  } catch (thrown) {
    return { ms: Date.now() - from, value: null, error: seen(thrown) };
  }
}

export class ProbeObject extends DurableObject<ProbeEnv> {
  readonly #arrivals: number[] = [];
  readonly #held: Uint8Array[] = [];

  async start(name: string, job: Job): Promise<void> {
    const { kv } = this.ctx.storage;
    if (kv.get("name") !== undefined) return;
    kv.put("name", name);
    kv.put("job", job);
    await this.ctx.storage.setAlarm(Date.now());
  }

  /** Null until the probe has ended. */
  result(): { readonly result: unknown } | null {
    return this.ctx.storage.kv.get<{ result: unknown }>("result") ?? null;
  }

  override async alarm(): Promise<void> {
    const { kv } = this.ctx.storage;
    const due = kv.get<number>("due");
    if (due !== undefined) return kv.put("late", Date.now() - due);
    const [name, job] = [kv.get<string>("name"), kv.get<Job>("job")];
    if (name === undefined || job === undefined || kv.get("result") !== undefined) return;
    // A probe that its own object did not survive is not repeated: that is its result.
    const again = kv.get("begun") === true;
    kv.put("begun", true);
    await this.ctx.storage.sync();
    const error = again ? { error: "the object of the probe was restarted" } : null;
    kv.put("result", { result: error ?? (await this.#play(name, job).catch((thrown) => ({ error: seen(thrown) }))) });
  }

  #play(name: string, job: Job): Promise<unknown> {
    switch (job.probe) {
      case "silence":
        return timed(() => this.#fetch(`${job.origin}/silent?s=${job.seconds}`).then(statusOf));
      case "stream":
        return timed(() => this.#fetch(`${job.origin}/stream?s=${job.seconds}&every=${job.every_s}`).then(statusOf));
      case "connections":
        return this.#connections(job);
      case "alarms":
        return this.#alarms(name, job);
      case "facet":
        return this.#facet();
      case "batch":
        return this.#batch();
      case "queue":
        return this.#queue(name, job);
      case "multipart":
        return this.#multipart(name, job);
      case "value":
        return this.#value(name, job.mib);
      case "memory":
        return timed(() => this.env.PROBE.getByName(`${name}/victim`).grow(job.mib));
      case "faults":
        return this.#faults(name);
    }
  }

  #fetch(url: string): Promise<Response> {
    return fetch(url, { headers: { authorization: `Bearer ${this.env.TOKEN}` } });
  }

  /** Whether a seventh call is answered while six others have their headers, or wait for them. */
  async #connections({ origin, seconds, streamed }: Extract<Job, { probe: "connections" }>) {
    const path = streamed ? `/stream?s=${seconds}&every=1` : `/silent?s=${seconds}`;
    const headers = Array.from({ length: CONNECTIONS }, () => this.#fetch(`${origin}${path}`));
    if (streamed) await Promise.all(headers);
    let ended = 0;
    const six = headers.map((reply) =>
      reply
        .then((answered) => answered.arrayBuffer())
        .then(() => {
          ended += 1;
        }),
    );
    const { ms, error } = await timed(() => this.#fetch(`${origin}/now`).then((reply) => reply.text()));
    const ended_before = ended;
    const failed = (await Promise.allSettled(six)).filter(({ status }) => status === "rejected").length;
    return { ms, error, held_ms: seconds * 1000, ended_before, failed };
  }

  async #alarms(name: string, { objects, after_ms }: Extract<Job, { probe: "alarms" }>) {
    const stubs = Array.from({ length: objects }, (_, at) => this.env.PROBE.getByName(`${name}/${at}`));
    const due = Date.now() + after_ms;
    await Promise.all(stubs.map((stub) => stub.wakeAt(due)));
    const until = due + 120_000;
    await wait(after_ms);
    for (;;) {
      const late = await Promise.all(stubs.map((stub) => stub.lateMs()));
      if (!late.includes(null) || Date.now() > until) return { late_ms: late };
      await wait(POLL_MS);
    }
  }

  async wakeAt(due: number): Promise<void> {
    this.ctx.storage.kv.put("due", due);
    await this.ctx.storage.setAlarm(due);
  }

  /** Null until the alarm has fired. */
  lateMs(): number | null {
    return this.ctx.storage.kv.get<number>("late") ?? null;
  }

  /** The database of a facet: whether it counts, and whether its tables are its own. */
  async #facet() {
    const found: unknown = Reflect.get(this.ctx.exports, "ProbeSqlObject");
    const facet: unknown = this.ctx.facets.get("sql", () => ({ class: found as DurableObjectClass }));
    const stub = facet as DurableObjectStub<ProbeSqlObject>;
    const counts = [await stub.count(), await stub.count()];
    const tables = this.ctx.storage.sql.exec("select name from sqlite_master where name = 'counted'").toArray().length;
    return { declared: found !== undefined, counts, tables_in_host: tables };
  }

  /** A batch whose last statement fails. */
  async #batch() {
    await this.env.DB.exec("create table if not exists batched (n integer)");
    const insert = this.env.DB.prepare("insert into batched values (1)");
    const error = await errorOf(() =>
      this.env.DB.batch([insert, this.env.DB.prepare("insert into nowhere values (1)")]),
    );
    const rows = await this.env.DB.prepare("select count(*) as n from batched").first<number>("n");
    return { error, rows_left: rows };
  }

  async #queue(name: string, { messages, limit_s }: Extract<Job, { probe: "queue" }>) {
    const until = Date.now() + limit_s * 1000;
    for (let sent = 0; sent < messages; sent += 1) await this.env.QUEUE.send({ probe: name, at: Date.now() });
    while (this.#arrivals.length < messages && Date.now() < until) await wait(POLL_MS);
    return { sent: messages, took_ms: this.#arrivals };
  }

  arrived(tookMs: readonly number[]): void {
    this.#arrivals.push(...tookMs);
  }

  /** Equal parts and a shorter last one; then parts of which the second is shorter than the third. */
  async #multipart(name: string, { part_mib, parts }: Extract<Job, { probe: "multipart" }>) {
    const size = part_mib * MiB;
    const upload = async (key: string, sizes: readonly number[]) => {
      const { error } = await timed(async () => {
        const upload = await this.env.STORE.createMultipartUpload(key);
        const done: R2UploadedPart[] = [];
        for (const [at, bytes] of sizes.entries()) done.push(await upload.uploadPart(at + 1, new Uint8Array(bytes)));
        await upload.complete(done);
      });
      const stored = (await this.env.STORE.head(key))?.size ?? null;
      return { bytes: sizes.reduce((sum, bytes) => sum + bytes, 0), stored, error };
    };
    return {
      equal: await upload(`${name}/equal`, [...Array.from({ length: parts }, () => size), 1000]),
      unequal: await upload(`${name}/unequal`, [size + MiB, size, size + MiB]),
    };
  }

  async #value(name: string, mib: number) {
    const stub = this.env.PROBE.getByName(`${name}/receiver`);
    const argument = await errorOf(() => stub.take(new Uint8Array(mib * MiB)));
    const reply = await errorOf(() => stub.give(mib));
    return { mib, argument, reply };
  }

  take(bytes: Uint8Array): number {
    return bytes.byteLength;
  }

  give(mib: number): Uint8Array {
    return new Uint8Array(mib * MiB);
  }

  /** Holds this many MiB at once. */
  async grow(mib: number): Promise<number> {
    for (let held = 0; held < mib; held += 8) {
      this.#held.push(new Uint8Array(8 * MiB).fill(1));
      await wait(1);
    }
    const bytes = this.#held.reduce((sum, part) => sum + part.byteLength, 0);
    this.#held.length = 0;
    return bytes / MiB;
  }

  /** Errors that a caller can provoke. */
  async #faults(name: string) {
    const victim = (what: string) => this.env.PROBE.getByName(`${name}/${what}`);
    return {
      "an object that aborts itself": await errorOf(() => victim("aborts").abort()),
      "a row over 2 MB": await errorOf(() => victim("row").storeRow(3_000_000)),
      "a row over 2 MB in D1": await errorOf(() =>
        this.env.DB.prepare("select ? as x").bind("x".repeat(3_000_000)).first(),
      ),
      "a table of D1 that does not exist": await errorOf(() => this.env.DB.prepare("select * from nowhere").first()),
      "a message over 128 KB": await errorOf(() => this.env.QUEUE.send({ probe: "x".repeat(200_000), at: 0 })),
    };
  }

  abort(): void {
    this.ctx.abort("the probe aborts it");
  }

  storeRow(bytes: number): void {
    this.ctx.storage.sql.exec("create table if not exists big (x text)");
    this.ctx.storage.sql.exec("insert into big values (?)", "x".repeat(bytes));
  }

  /** Answers after this many seconds. */
  async hold(seconds: number): Promise<string> {
    await wait(seconds * 1000);
    return "held";
  }
}

export class ProbeSqlObject extends DurableObject<ProbeEnv> {
  count(): number {
    const { sql } = this.ctx.storage;
    sql.exec("create table if not exists counted (n integer)");
    sql.exec("insert into counted values (1)");
    return sql.exec<{ n: number }>("select count(*) as n from counted").one().n;
  }
}

async function statusOf(reply: Response) {
  return { status: reply.status, bytes: (await reply.arrayBuffer()).byteLength };
}

/** A body of one byte every so often, for so long. */
function trickle(seconds: number, everyS: number): ReadableStream<Uint8Array> {
  const until = Date.now() + seconds * 1000;
  return new ReadableStream({
    async pull(controller) {
      controller.enqueue(new Uint8Array([46]));
      if (Date.now() >= until) return controller.close();
      await wait(everyS * 1000);
    },
  });
}

async function countBytes(body: ReadableStream<Uint8Array> | null): Promise<number> {
  let bytes = 0;
  for await (const part of body ?? []) bytes += part.byteLength;
  return bytes;
}

/** One page of a bucket's objects. */
async function emptyPage(bucket: R2Bucket): Promise<number> {
  const { objects } = await bucket.list({ limit: 500 });
  if (objects.length > 0) await bucket.delete(objects.map(({ key }) => key));
  return objects.length;
}

const Query = z.object({
  s: z.coerce.number().min(0).max(MOST_S).default(0),
  every: z.coerce.number().min(0.01).default(1),
});

async function answer(request: Request, env: ProbeEnv): Promise<Response> {
  const url = new URL(request.url);
  const { s, every } = Query.parse(Object.fromEntries(url.searchParams));
  const probe = /^\/probes\/([\w-]{1,60})$/.exec(url.pathname)?.[1];
  if (probe !== undefined) {
    const stub = env.PROBE.getByName(probe);
    if (request.method === "POST") await stub.start(probe, Job.parse(await request.json()));
    return Response.json(await stub.result());
  }
  switch (url.pathname) {
    case "/now":
      return new Response("now");
    case "/silent":
      await wait(s * 1000);
      return new Response("answered");
    case "/stream":
      return new Response(trickle(s, every));
    case "/sink":
      return Response.json({ bytes: await countBytes(request.body) });
    case "/held":
      return Response.json(await errorOf(() => env.PROBE.getByName("held").hold(s)));
    case "/query":
      // Each row costs SQLite about 0.2 microseconds.
      return Response.json(
        await errorOf(() =>
          env.DB.prepare(
            "with recursive c(n) as (select 1 union all select n + 1 from c where n < ?) select sum(n) from c",
          )
            .bind(s * 5_000_000)
            .first(),
        ),
      );
    case "/empty":
      return Response.json({ deleted: (await emptyPage(env.STORE)) + (await emptyPage(env.PRODUCT_STORE)) });
    case "/v1/chat/completions":
      return modelReply(await request.json());
    default:
      return new Response("not found", { status: 404 });
  }
}

export default {
  async fetch(request, env) {
    if (request.headers.get("authorization") !== `Bearer ${env.TOKEN}`) return new Response("no", { status: 401 });
    try {
      return await answer(request, env);
    } catch (thrown) {
      return Response.json(seen(thrown), { status: thrown instanceof z.ZodError ? 400 : 500 });
    }
  },
  async queue(batch, env) {
    const now = Date.now();
    const byProbe = Map.groupBy(batch.messages, ({ body }) => body.probe);
    for (const [probe, messages] of byProbe) {
      await env.PROBE.getByName(probe).arrived(messages.map(({ body }) => now - body.at));
    }
  },
} satisfies ExportedHandler<ProbeEnv, Sent>;
