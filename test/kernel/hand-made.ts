/** Runs made by hand, for tests that lose messages: the real object on its real storage, with queues that may lose. */
import { createExecutionContext, createMessageBatch, getQueueResult } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { mintRunId } from "../../src/core/ids.ts";
import { SHARDS } from "../../src/core/run-queues.ts";
import worker, { RunObject } from "../../src/index.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { getRun, insertRun, type NewRun } from "../../src/kernel/db/runs.ts";
import { segmentKey } from "../../src/kernel/kit/names.ts";
import { idMac } from "../../src/kernel/kit/secrets.ts";
import type { RunMessage, RunSpec } from "../../src/kernel/messages/wire.ts";
import { newRun } from "../../src/kernel/service/begin-run.ts";
import type { SegmentLine } from "../../src/kernel/trajectory/store.ts";
import { endpointRow } from "./http/run-rows.ts";
import type { TestApi } from "./platform.ts";

/** Writes a run as accepting it would, without creating its object: like the run `template`, except for `changes`. */
export async function acceptedOnly(
  { scope }: TestApi,
  template: string,
  changes: Partial<RunSpec> = {},
): Promise<NewRun> {
  const record = await getRun(databaseOf(env), scope, template);
  if (record === null) throw new Error("no such template");
  const endpoint = endpointRow({ base_url: env.MODEL_URL, sealed_key: null });
  const now = Date.now();
  const run_id = mintRunId({
    now,
    random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
    mac: idMac(env.ROLLCALL_SECRET),
  });
  const options = { now, idempotencyKey: null, requestHash: "" };
  const run = newRun(record.run, { run_id, endpoint_id: endpoint.id, ...changes }, options);
  await insertRun(databaseOf(env), scope, run, endpoint);
  return run;
}

/** A queue that drops its messages while `losing`. */
export class LossyQueue implements Queue {
  losing = true;
  refusing = false;
  readonly given: unknown[] = [];
  readonly delays: number[] = [];
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  metrics(): Promise<QueueMetrics> {
    return this.#queue.metrics();
  }

  send(body: unknown): Promise<QueueSendResponse> {
    return this.sendBatch([{ body }]);
  }

  async sendBatch(messages: Iterable<MessageSendRequest>): Promise<QueueSendBatchResponse> {
    const batch = [...messages];
    this.given.push(...batch.map(({ body }) => body));
    this.delays.push(...batch.map(({ delaySeconds = 0 }) => delaySeconds));
    if (this.refusing) throw new Error("the queue is away");
    if (!this.losing) return await this.#queue.sendBatch(batch);
    return { metadata: { metrics: { backlogCount: 0, backlogBytes: 0 } } };
  }
}

/** The objects of a namespace with one method replaced. `call` makes the real call to the object `name`. */
export function interposed<Namespace extends Env["RUN"] | Env["ACCOUNT"] | Env["ROLLOUT"] | Env["GATHERER"]>(
  namespace: Namespace,
  method: string,
  instead: (call: () => Promise<unknown>, name: string, args: readonly unknown[]) => Promise<unknown>,
): Namespace {
  return new Proxy(namespace, {
    get: (objects, property) => {
      const member: unknown = Reflect.get(objects, property);
      // The runtime's helpers recognise a namespace by its constructor's name.
      if (typeof member !== "function" || property === "constructor") return member;
      if (property !== "getByName") return member.bind(objects);
      return (name: string) =>
        new Proxy(objects.getByName(name), {
          get: (stub, called) => {
            const call = (...args: unknown[]) => Reflect.get(stub, called)(...args);
            if (called !== method) return call;
            return (...args: unknown[]) => instead(async () => await call(...args), name, args);
          },
        });
    },
  });
}

export interface LossyRun {
  readonly groups: LossyQueue;
  readonly scores: LossyQueue;
  readonly judgements: LossyQueue;
  /** Runs inside the run's object, with an instance whose queues lose messages. */
  readonly within: <T>(use: (run: RunObject) => T | Promise<T>) => Promise<T>;
}

/** Creates the run's object, with queues that lose everything until that is switched off. */
export async function createLossy(platform: TestApi, row: NewRun): Promise<LossyRun> {
  const groups = new LossyQueue(env.ROLLOUT_GROUPS);
  const scores = new LossyQueue(env.ROLLOUT_SCORES);
  const judgements = new LossyQueue(env.ROLLOUT_JUDGEMENTS);
  const segments = new LossyQueue(env.RUN_SEGMENTS);
  const queues = {
    ...allShards("ROLLOUT_GROUPS", groups),
    ...allShards("ROLLOUT_SCORES", scores),
    ROLLOUT_JUDGEMENTS: judgements,
    ROLLOUT_JUDGEMENTS_1: judgements,
    ROLLOUT_JUDGEMENTS_2: judgements,
    ROLLOUT_JUDGEMENTS_3: judgements,
    ROLLOUT_JUDGEMENTS_SLOW: judgements,
    ROLLOUT_JUDGEMENTS_SLOW_1: judgements,
    ROLLOUT_JUDGEMENTS_SLOW_2: judgements,
    ROLLOUT_JUDGEMENTS_SLOW_3: judgements,
    ROLLOUT_JUDGEMENTS_SILENT: judgements,
    RUN_SEGMENTS: segments,
  };
  let lossy: RunObject | undefined;
  const within: LossyRun["within"] = (use) =>
    platform.inRun(row.id, (_, state) => {
      lossy ??= new RunObject(state, { ...env, ...queues });
      return use(lossy);
    });
  await within((run) => run.create(row.spec));
  return { groups, scores, judgements, within };
}

/** Bindings with this queue for the messages of every run. */
export function allShards(binding: "ROLLOUT_GROUPS" | "ROLLOUT_SCORES", queue: Queue): Partial<Env> {
  const others = Array.from({ length: SHARDS - 1 }, (_, at) => [`${binding}_${at + 1}`, queue]);
  return { [binding]: queue, ...Object.fromEntries(others) };
}

/** Delivers a batch to the Worker as the platform's queue would; returns which messages were acked. */
export async function deliver(
  queue: string,
  bodies: readonly RunMessage[],
  { bindings = {} }: { bindings?: Partial<Env> } = {},
): Promise<string[]> {
  const messages = bodies.map((body, at) => ({
    id: String(at),
    timestamp: new Date(),
    attempts: 1,
    body,
  }));
  const batch = createMessageBatch<RunMessage>(queue, messages);
  const context = createExecutionContext();
  await worker.queue(batch, { ...env, ...bindings });
  return (await getQueueResult(batch, context)).explicitAcks;
}

/** Writes the run's first segment now, if it was not written yet, and reads it. */
export async function segmentLines({ scope, inRun }: TestApi, run_id: string): Promise<SegmentLine[]> {
  // Segments are made a moment after their last rollout has ended; here that must have happened.
  await inRun(run_id, (run) => run.alarm());
  await deliver("run-segments", [{ kind: "segment", scope, run_id, segment: 1 }]);
  const prefix = segmentKey(scope, run_id, "").replace(/\.jsonl$/, "");
  const { objects } = await env.STORE.list({ prefix });
  const texts = await Promise.all(objects.map(async ({ key }) => (await env.STORE.get(key))?.text() ?? ""));
  const segments = texts.map((text) => text.split("\n"));
  // The rest of a long run may be in a second, shorter segment by now.
  const [longest = []] = segments.toSorted((one, other) => other.length - one.length);
  return longest.map((line) => JSON.parse(line));
}
