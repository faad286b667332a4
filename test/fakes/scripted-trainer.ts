/**
 * A trainer that learns nothing: it uses the protocol of docs/training.md with plain fetch, so that it runs in Node and
 * in workerd, and each misbehaviour is a method. Its weights are the list of their batches.
 *
 * Invariants: it checks every digest that it gets. Like a real trainer, it writes a checkpoint before it acknowledges
 * the batch. When it crashes, the checkpoint stays, and a new trainer continues from it.
 */
import type * as z from "zod";
import {
  Acked,
  type BatchManifest,
  type BatchOffer,
  type HeartbeatRequest,
  Leased,
  type LeaseView,
  Registered,
  type WeightVersionReport,
  WeightVersions,
} from "../../src/contract/trainer-wire.ts";

/** The point between two actions at which it crashes. */
export type CrashPoint =
  | "after the lease"
  | "before the checkpoint"
  | "after the checkpoint"
  | "before the ack is read"
  | "after the ack"
  | "after publishing";

/** The data on its disk. */
export interface Checkpoint {
  version: number;
  last: { readonly batch_id: string; readonly sha256: string } | null;
  /** Batches in the weights, in the order they were trained. */
  lineage: string[];
}

export interface ScriptedTrainerOptions {
  /** The platform's URL, without /v1. */
  readonly url: string;
  readonly run: string;
  readonly token: string;
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  readonly checkpoint?: Checkpoint;
  readonly trainer_id?: string;
  /** Reported as having applied each version; null for no such report. */
  readonly replica?: string | null;
  /** Its acknowledgements report that the weights are published, instead of a report after them. */
  readonly publishesWithAck?: boolean;
  readonly diesAt?: { readonly point: CrashPoint; readonly step: number };
  /** In place of the optimiser: runs between the batch's arrival and the checkpoint. */
  readonly train?: (leased: Leased) => Promise<void>;
  /** How long one request is repeated while the platform does not answer. */
  readonly patienceMs?: number;
}

/** The lines of a credit overlay, and the bytes of the objects, unpacked. */
export interface ReadBatch {
  readonly objects: readonly Uint8Array[];
  readonly credits: readonly Readonly<Record<string, unknown>>[];
}

/** The platform refused a request. */
export class TrainerRefused extends Error {
  readonly status: number;
  readonly code: string;
  readonly body: unknown;
  constructor(what: string, status: number, body: unknown) {
    const error = Object(Object(body).error);
    super(`${what}: ${status} ${error.code ?? ""} ${error.message ?? ""}`);
    this.status = status;
    this.code = String(error.code ?? "");
    this.body = body;
  }
}

export class TrainerDied extends Error {}

const ASK_AGAIN_MS = 100;

export class ScriptedTrainer {
  readonly checkpoint: Checkpoint;
  /** Batches on which it ran its optimiser, whatever happened to them later. */
  readonly trained: string[] = [];
  epoch = 0;
  readonly #options: ScriptedTrainerOptions;
  readonly #id: string;

  constructor(options: ScriptedTrainerOptions) {
    this.#options = options;
    this.#id = options.trainer_id ?? "scripted";
    this.checkpoint = options.checkpoint ?? { version: 0, last: null, lineage: [] };
  }

  async register(over: { reset_to?: number; version?: number } = {}): Promise<Registered> {
    const { version, last } = this.checkpoint;
    const asked = { trainer_id: this.#id, kind: "scripted", protocol: "rl.batch/1", version };
    const body = { ...asked, last_acked: last, ...over };
    const registered = await this.#post("trainer/register", body, Registered);
    this.epoch = registered.epoch;
    return registered;
  }

  /** Null if there is none yet. */
  async lease(over: Readonly<Record<string, unknown>> = {}): Promise<Leased | null> {
    const want_step = this.checkpoint.version + 1;
    const asked = { trainer_id: this.#id, epoch: this.epoch, want_step, max_wait_s: 0 };
    const reply = await this.#send("POST", "trainer/lease", { ...asked, ...over });
    return reply.status === 204 ? null : Leased.parse(await reply.json());
  }

  /** Throws if any byte differs from the manifest. */
  async read({ manifest }: Leased): Promise<ReadBatch> {
    const at = `batches/${manifest.step}`;
    const objects: Uint8Array[] = [];
    for (const { sha256, bytes } of manifest.objects) {
      objects.push(await this.#bytes(`${at}/objects/${sha256}`, sha256, bytes));
    }
    const { credits } = manifest;
    const overlay = await this.#bytes(`${at}/credits`, credits.sha256, credits.bytes);
    const digest = await batchDigest(manifest);
    if (digest !== manifest.sha256) throw new Error(`the batch's digest is ${digest}`);
    const lines = new TextDecoder().decode(overlay).trimEnd().split("\n");
    return {
      objects: await Promise.all(objects.map(gunzip)),
      credits: lines.map((line) => JSON.parse(line)),
    };
  }

  heartbeat({ lease }: Leased): Promise<unknown> {
    const body = { token: lease.token, epoch: this.epoch } satisfies z.input<typeof HeartbeatRequest>;
    return this.#onLease(lease, "heartbeat", body);
  }

  async ack({ lease, manifest }: Leased, over: Readonly<Record<string, unknown>> = {}) {
    const { batch_id, sha256, step } = manifest;
    const metrics = { loss: 0, grad_norm: 0 };
    const asked = { token: lease.token, epoch: this.epoch, batch_id, sha256, metrics };
    const body = { ...asked, produced_version: step, ...over };
    return Acked.parse(await this.#onLease(lease, "ack", body));
  }

  nack({ lease }: Leased, reason: string, retryable: boolean): Promise<unknown> {
    return this.#onLease(lease, "nack", {
      ...{ token: lease.token, epoch: this.epoch },
      ...{ reason, retryable },
    });
  }

  report(
    state: "pending" | "published" | "applied" | "failed",
    over: Partial<z.input<typeof WeightVersionReport>> = {},
  ): Promise<WeightVersions> {
    const { version } = this.checkpoint;
    const body = { version, state, epoch: this.epoch, ...over };
    return this.#post("weight-versions", body, WeightVersions);
  }

  /** Trains the next batch, or the pushed one. False if there was none. */
  async step(pushed: Leased | null = null): Promise<boolean> {
    const leased = pushed ?? (await this.lease({ max_wait_s: this.#waits() }));
    if (leased === null) return false;
    const { manifest } = leased;
    const dies = (point: CrashPoint) => this.#diesAt(point, manifest.step);
    dies("after the lease");
    await this.read(leased);
    await this.#options.train?.(leased);
    this.trained.push(manifest.batch_id);
    dies("before the checkpoint");
    this.#keep(manifest);
    dies("after the checkpoint");
    const { publishesWithAck = false } = this.#options;
    await this.ack(leased, publishesWithAck ? { published: {} } : {});
    dies("before the ack is read");
    dies("after the ack");
    if (publishesWithAck) await this.#applied();
    else await this.publish();
    dies("after publishing");
    return true;
  }

  /** Trains a batch that was pushed; the offer has its epoch. */
  accept(offer: BatchOffer): Promise<boolean> {
    this.epoch = offer.data.epoch;
    return this.step(leasedBy(offer));
  }

  /** Reports that its weights are published, and that they are served. */
  async publish(): Promise<void> {
    await this.report("published");
    await this.#applied();
  }

  async #applied(): Promise<void> {
    const { replica = "scripted" } = this.#options;
    if (replica !== null) await this.report("applied", { replica });
  }

  /** Trains step after step until the run has no more. */
  async work(over: { reset_to?: number } = {}): Promise<void> {
    await this.register(over);
    if (this.checkpoint.version > 0 || over.reset_to !== undefined) await this.publish();
    try {
      for (;;) await this.step();
    } catch (error) {
      if (!(error instanceof TrainerRefused && error.status === 410)) throw error;
    }
  }

  /** A request for the run; throws TrainerRefused for a status above 299. */
  async #send(method: "GET" | "POST", path: string, body?: unknown): Promise<Response> {
    const { url, run } = this.#options;
    return await this.#ask(method, `${url}/v1/runs/${run}/${path}`, body);
  }

  async #ask(method: "GET" | "POST", url: string, body?: unknown): Promise<Response> {
    const { token, patienceMs = 0 } = this.#options;
    const send = this.#options.fetch ?? ((to: string, init: RequestInit) => fetch(to, init));
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const until = Date.now() + patienceMs;
    for (;;) {
      const reply = await send(url, init).catch((error: unknown) => {
        if (Date.now() < until) return null;
        throw error;
      });
      if (reply !== null && (reply.status < 500 || Date.now() >= until)) {
        if (reply.ok) return reply;
        throw new TrainerRefused(`${method} ${url}`, reply.status, await jsonOf(reply));
      }
      await reply?.arrayBuffer();
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  }

  async #post<Reply>(path: string, body: unknown, shape: z.ZodType<Reply>): Promise<Reply> {
    return shape.parse(await (await this.#send("POST", path, body)).json());
  }

  async #onLease(lease: LeaseView, verb: string, body: unknown): Promise<unknown> {
    const url = `${this.#options.url}/v1/leases/${lease.id}/${verb}`;
    return await (await this.#ask("POST", url, body)).json();
  }

  async #bytes(path: string, sha256: string, size: number): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(await (await this.#send("GET", path)).arrayBuffer());
    const got = await hex(bytes);
    if (got === sha256 && bytes.length === size) return bytes;
    throw new Error(`${path}: ${bytes.length} bytes with digest ${got}, not ${size} with ${sha256}`);
  }

  #keep({ step, batch_id, sha256 }: BatchManifest): void {
    this.checkpoint.version = step;
    this.checkpoint.last = { batch_id, sha256 };
    this.checkpoint.lineage.push(batch_id);
  }

  #diesAt(point: CrashPoint, step: number): void {
    const { diesAt } = this.#options;
    if (diesAt?.point === point && diesAt.step === step) throw new TrainerDied(point);
  }

  #waits(): number {
    return this.#options.patienceMs === undefined ? 0 : 5;
  }
}

/** A push in the form of a lease. */
function leasedBy({ data: { lease, manifest } }: BatchOffer): Leased {
  if (manifest === undefined) throw new Error("the offer only links its manifest");
  return { lease, manifest };
}

/** Over the raw digests of the objects, then of the credits. */
async function batchDigest({ objects, credits }: BatchManifest): Promise<string> {
  return await hex(fromHex([...objects, credits].map(({ sha256 }) => sha256).join("")));
}

async function hex(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function fromHex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

async function gunzip(bytes: Uint8Array): Promise<Uint8Array> {
  const plain = new Response(bytes.slice()).body?.pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(plain ?? null).arrayBuffer());
}

async function jsonOf(reply: Response): Promise<unknown> {
  const text = await reply.text();
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return { error: { code: "", message: text } };
    throw error;
  }
}
