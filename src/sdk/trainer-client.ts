/**
 * The client of a training run's trainer, on `fetch` alone: the typed protocol of docs/training.md.
 *
 * Invariants. Every call may be repeated, so a call whose reply was lost is sent again (transport.ts). A refusal is an
 * ApiRequestError with a `code` (`epoch_fenced`, `step_mismatch`, `lease_lost`, `wrong_lease_token`, `wrong_batch`,
 * `version_ahead`, `conflict`, and `run_finished` once nothing is left to train) and `details` for the next action.
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
      /** The wait before the next request, if the request itself does not wait. */
      readonly retryAfterMs: number;
    };

export interface BatchInFormat {
  readonly body: ReadableStream<Uint8Array>;
  /** The digest of the batch's manifest. */
  readonly sha256: string;
  /** Number of rows that were cut to `seq_len`; null for a format that cuts none. */
  readonly cut_rows: number | null;
}

/** Time in addition to the lease's own wait. */
const PATIENCE_MS = 20_000;
const LEASE_WAIT_S = 30;
/** A JSON number that is too large for a double. */
const TOO_LARGE = "1e999";

export class TrainerClient {
  readonly #requests: Requests;
  readonly #run: string;

  constructor({ runId, ...options }: TrainerClientOptions) {
    this.#requests = new Requests(options);
    this.#run = `/runs/${encodeURIComponent(runId)}`;
  }

  /** Takes over the run: a trainer that registered earlier is fenced off. */
  register(request: RegisterRequestInput, options: CallOptions = {}): Promise<Registered> {
    return this.#requests.post(`${this.#run}/trainer/register`, request, options);
  }

  /** The next batch; waits for it up to `max_wait_s` (30). */
  lease(request: LeaseRequestInput, options: CallOptions = {}): Promise<LeaseAnswer> {
    const timeoutMs = (request.max_wait_s ?? LEASE_WAIT_S) * 1000 + PATIENCE_MS;
    const call = { ...posted(request), timeoutMs, ...options };
    return this.#requests.read(`${this.#run}/trainer/lease`, call, leaseAnswer);
  }

  /** Renews a lease. It has ended if the error is `lease_lost`. */
  heartbeat(
    leaseId: string,
    request: HeartbeatRequestInput,
    options: CallOptions = {},
  ): Promise<{ expires_at: number }> {
    return this.#requests.post(`${this.#lease(leaseId)}/heartbeat`, request, options);
  }

  /**
   * Acknowledges a batch. A repetition under the same lease gets the same reply. A metric that is NaN or infinite is
   * stored as null, and listed in the reply's `not_finite`.
   */
  ack(leaseId: string, request: AckRequestInput, options: CallOptions = {}): Promise<Acked> {
    const call = { ...posted(request), body: ackText(request), ...options };
    return this.#requests.json(`${this.#lease(leaseId)}/ack`, call);
  }

  nack(leaseId: string, request: NackRequestInput, options: CallOptions = {}): Promise<{ state: "ready" | "dead" }> {
    return this.#requests.post(`${this.#lease(leaseId)}/nack`, request, options);
  }

  /**
   * The manifest of a step's batch, leased or not. Waits up to `maxWaitS` (0) if it does not exist yet; then throws
   * `not_found`, or `batch_void` if the run was rewound and the batch is not made again yet.
   */
  manifest(
    step: number,
    { maxWaitS = 0, ...options }: CallOptions & { readonly maxWaitS?: number } = {},
  ): Promise<BatchManifest> {
    const call = { timeoutMs: maxWaitS * 1000 + PATIENCE_MS, ...options };
    return this.#requests.json(`${this.#batch(step)}?max_wait_s=${maxWaitS}`, call);
  }

  /** One object, gzipped. Without `format` these are the bytes of its digest. */
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
   * Every object of a batch, gzipped, in the manifest's order: in one request, or one by one if they are too many for
   * that. Throws BatchDigestError if the bytes do not match the manifest.
   */
  async objects(manifest: BatchManifest, options: CallOptions = {}): Promise<Uint8Array<ArrayBuffer>[]> {
    const { step, objects } = manifest;
    try {
      // Read to its end here, so that an interrupted reply is requested again.
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

  /** Lines of rl.credit/1, one per row, in the order of the manifest. */
  credits(step: number, options: CallOptions = {}): Promise<string> {
    return this.#requests.read(`${this.#batch(step)}/credits`, options, (reply) => reply.text());
  }

  /** All objects of a batch concatenated: one gzip stream. */
  stream(step: number, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return this.#requests.read(`${this.#batch(step)}/stream`, options, async (reply) => {
      if (reply.body === null) throw unreadableReply(reply, "");
      return reply.body;
    });
  }

  /**
   * A batch in a trainer's own format: lines of JSON, or msgpack for `prime-rl`. A trainer with a lease compares
   * `sha256` with the `sha256` of its manifest.
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

  /** Throws `version_ahead` if a version is `published` or `applied` before its batch is acknowledged. */
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

/** `JSON.stringify` would write a metric that is not finite as null; it is sent as a too large number. */
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

/** The bytes do not match the manifest's digest. */
export class BatchDigestError extends Error {
  override readonly name = "BatchDigestError";
}

/** `joined`: all objects concatenated, in the manifest's order. Throws BatchDigestError. */
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
