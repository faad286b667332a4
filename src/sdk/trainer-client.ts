/**
 * A trainer's side of a training run, on `fetch` alone: what docs/training.md tells, typed.
 *
 * Invariants. Every call may be made twice, so one that was lost on the way is made again (transport.ts). A refusal is
 * an ApiRequestError: `code` says what it is (`epoch_fenced`, `step_mismatch`, `lease_lost`, `wrong_lease_token`,
 * `wrong_batch`, `version_ahead`, `conflict`, and `run_finished` once nothing is left to train), `details` what to go on with.
 */
import type { FormatQuery } from "../contract/batch-format.ts";
import { BATCH_SHA256_HEADER, CUT_ROWS_HEADER } from "../contract/batch-headers.ts";
import type {
  Acked,
  AckRequestInput,
  BatchManifest,
  HeartbeatRequestInput,
  Leased,
  LeaseRequestInput,
  NackRequestInput,
  Registered,
  RegisterRequestInput,
  WeightVersionReportInput,
  WeightVersions,
} from "../contract/trainer-wire.ts";
import { BatchOffer } from "../contract/trainer-wire.ts";
import type { CallOptions } from "./options.ts";
import { ApiRequestError, readJson, unreadableReply } from "./request-error.ts";
import { type ClientOptions, posted, Requests } from "./requests.ts";

export { ApiRequestError, BatchOffer };

export interface TrainerClientOptions extends ClientOptions {
  readonly runId: string;
}

/** A lease, or why there is none yet. */
export type LeaseAnswer =
  | { readonly leased: Leased }
  | {
      readonly leased: null;
      readonly state: "waiting_for_rollouts" | "paused" | "draining";
      /** How long to stay away, where the request itself does not wait. */
      readonly retryAfterMs: number;
    };

export interface BatchInFormat {
  readonly body: ReadableStream<Uint8Array>;
  /** Of the batch's manifest. */
  readonly sha256: string;
  /** Rows that `seq_len` cut; null for a format that cuts none. */
  readonly cut_rows: number | null;
}

/** Beyond what a lease itself waits. */
const PATIENCE_MS = 20_000;
const LEASE_WAIT_S = 30;
/** JSON whose value no number holds. */
const TOO_LARGE = "1e999";

export class TrainerClient {
  readonly #requests: Requests;
  readonly #run: string;

  constructor({ runId, ...options }: TrainerClientOptions) {
    this.#requests = new Requests(options);
    this.#run = `/runs/${encodeURIComponent(runId)}`;
  }

  /** Takes over: whoever registered before is fenced off. */
  register(request: RegisterRequestInput, options: CallOptions = {}): Promise<Registered> {
    return this.#requests.post(`${this.#run}/trainer/register`, request, options);
  }

  /** The next batch; waits for it up to `max_wait_s` (30). */
  lease(request: LeaseRequestInput, options: CallOptions = {}): Promise<LeaseAnswer> {
    const timeoutMs = (request.max_wait_s ?? LEASE_WAIT_S) * 1000 + PATIENCE_MS;
    const call = { ...posted(request), timeoutMs, ...options };
    return this.#requests.read(`${this.#run}/trainer/lease`, call, leaseAnswer);
  }

  /** Keeps a lease. `lease_lost`: it has ended. */
  heartbeat(
    leaseId: string,
    request: HeartbeatRequestInput,
    options: CallOptions = {},
  ): Promise<{ expires_at: number }> {
    return this.#requests.post(`${this.#lease(leaseId)}/heartbeat`, request, options);
  }

  /**
   * Said again under the same lease, it is answered the same. A metric that is NaN or infinite is null to the platform, and
   * `not_finite` of the reply names it.
   */
  ack(leaseId: string, request: AckRequestInput, options: CallOptions = {}): Promise<Acked> {
    const call = { ...posted(request), body: ackText(request), ...options };
    return this.#requests.json(`${this.#lease(leaseId)}/ack`, call);
  }

  nack(leaseId: string, request: NackRequestInput, options: CallOptions = {}): Promise<{ state: "ready" | "dead" }> {
    return this.#requests.post(`${this.#lease(leaseId)}/nack`, request, options);
  }

  /**
   * What the batch of a step is made of, leased or not. Waits up to `maxWaitS` (0) for one that is not there yet:
   * `not_found`, or `batch_void` where the run went back and has not cut it anew.
   */
  manifest(
    step: number,
    { maxWaitS = 0, ...options }: CallOptions & { readonly maxWaitS?: number } = {},
  ): Promise<BatchManifest> {
    const call = { timeoutMs: maxWaitS * 1000 + PATIENCE_MS, ...options };
    return this.#requests.json(`${this.#batch(step)}?max_wait_s=${maxWaitS}`, call);
  }

  /** One object, gzipped. Without `format` these are the bytes its digest is of. */
  object(
    step: number,
    sha256: string,
    { format, ...options }: CallOptions & { readonly format?: "msgpack" | "jsonl" } = {},
  ): Promise<Uint8Array<ArrayBuffer>> {
    const query = format === undefined ? "" : `?format=${format}`;
    const url = `${this.#batch(step)}/objects/${sha256}${query}`;
    return this.#requests.read(url, options, bytesOf);
  }

  /**
   * Every object of a batch, gzipped, in the manifest's order: in one request, or one by one where they are too many for
   * that. Throws BatchDigestError where the bytes are not those the manifest names.
   */
  async objects(manifest: BatchManifest, options: CallOptions = {}): Promise<Uint8Array<ArrayBuffer>[]> {
    const { step, objects } = manifest;
    try {
      // Read to its end here: what breaks off is asked for again.
      return await splitObjects(manifest, await this.#requests.read(`${this.#batch(step)}/stream`, options, bytesOf));
    } catch (error) {
      if (!(error instanceof ApiRequestError && error.code === "too_large")) throw error;
    }
    const parts: Uint8Array<ArrayBuffer>[] = [];
    for (const { sha256 } of objects) {
      const part = await this.object(step, sha256, options);
      await checkDigest(part, sha256);
      parts.push(part);
    }
    return parts;
  }

  /** Lines of rl.credit/1, one for each row, in the order of the manifest. */
  credits(step: number, options: CallOptions = {}): Promise<string> {
    return this.#requests.read(`${this.#batch(step)}/credits`, options, (reply) => reply.text());
  }

  /** All objects of a batch one after another: one gzip stream. */
  stream(step: number, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return this.#requests.read(`${this.#batch(step)}/stream`, options, async (reply) => {
      if (reply.body === null) throw unreadableReply(reply, "");
      return reply.body;
    });
  }

  /**
   * A batch in a trainer's own format: lines of JSON, or msgpack for `prime-rl`. Whoever has a lease holds `sha256` against
   * its manifest's.
   */
  batchAs(
    step: number,
    query: FormatQuery,
    { maxWaitS = 0, ...options }: CallOptions & { readonly maxWaitS?: number } = {},
  ): Promise<BatchInFormat> {
    const asked = Object.entries({ ...query, max_wait_s: maxWaitS }).flatMap(([name, value]) => {
      return value === undefined ? [] : [[name, String(value)]];
    });
    const url = `${this.#batch(step)}?${new URLSearchParams(asked)}`;
    const call = { timeoutMs: maxWaitS * 1000 + PATIENCE_MS, ...options };
    return this.#requests.read(url, call, async (reply) => {
      if (reply.body === null) throw unreadableReply(reply, "");
      const cut = reply.headers.get(CUT_ROWS_HEADER);
      const sha256 = reply.headers.get(BATCH_SHA256_HEADER) ?? "";
      return { body: reply.body, sha256, cut_rows: cut === null ? null : Number(cut) };
    });
  }

  /** `published` or `applied` before the batch of that version is acknowledged is `version_ahead`. */
  reportVersion(report: WeightVersionReportInput, options: CallOptions = {}): Promise<WeightVersions> {
    return this.#requests.post(`${this.#run}/weight-versions`, report, options);
  }

  weightVersions(options: CallOptions = {}): Promise<WeightVersions> {
    return this.#requests.json(`${this.#run}/weight-versions`, options);
  }

  #batch(step: number): string {
    return `${this.#run}/batches/${step}`;
  }

  #lease(leaseId: string): string {
    return `/leases/${encodeURIComponent(leaseId)}`;
  }
}

/** `JSON.stringify` would make null of a metric that is no finite number: sent so that it is known to be none. */
function ackText({ metrics = {}, ...request }: AckRequestInput): string {
  const values = Object.entries(metrics).map(([name, value]) => {
    const isOdd = typeof value === "number" && !Number.isFinite(value);
    return `${JSON.stringify(name)}:${isOdd ? TOO_LARGE : JSON.stringify(value)}`;
  });
  return `${JSON.stringify(request).slice(0, -1)},"metrics":{${values.join(",")}}}`;
}

async function bytesOf(reply: Response): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await reply.arrayBuffer());
}

async function leaseAnswer(reply: Response): Promise<LeaseAnswer> {
  if (reply.status !== 204) return { leased: await readJson<Leased>(reply) };
  const state = reply.headers.get("x-queue-state");
  const retryAfterMs = Number(reply.headers.get("retry-after") ?? 1) * 1000;
  if (state === "paused" || state === "draining") return { leased: null, state, retryAfterMs };
  return { leased: null, state: "waiting_for_rollouts", retryAfterMs };
}

/** Bytes that are not those the manifest names. */
export class BatchDigestError extends Error {
  override readonly name = "BatchDigestError";
}

/** `joined`: every object, one after another, in the manifest's order. Throws BatchDigestError. */
export async function splitObjects(
  { objects }: Pick<BatchManifest, "objects">,
  joined: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>[]> {
  const size = objects.reduce((sum, { bytes }) => sum + bytes, 0);
  if (joined.byteLength !== size) {
    throw new BatchDigestError(`expected ${size} bytes of objects, but received ${joined.byteLength}`);
  }
  let from = 0;
  const parts = objects.map(({ bytes }) => {
    from += bytes;
    return joined.subarray(from - bytes, from);
  });
  await Promise.all(parts.map((part, at) => checkDigest(part, objects[at]?.sha256 ?? "")));
  return parts;
}

/** Throws BatchDigestError. */
export async function checkDigest(bytes: Uint8Array<ArrayBuffer>, sha256: string): Promise<void> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found !== sha256) {
    throw new BatchDigestError(`the digest of an object is ${found}, not ${sha256}`);
  }
}
