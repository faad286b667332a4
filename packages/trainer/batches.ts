/**
 * Provides a trainer's batches: it requests leases, which works from behind any firewall, or it receives offers.
 *
 * Invariants: one batch at a time, in step order. If there is no batch, it waits for as long as necessary.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { Leased, LeaseView } from "rollcall/contract";
import { BatchOffer, type TrainerClient } from "rollcall/sdk/trainer";

/** The identity of a registered trainer. */
export interface Registration {
  readonly trainer_id: string;
  readonly epoch: number;
}

export interface Batches {
  /** Rejects with the platform's error, and with the signal's reason when that is aborted. */
  next(who: Registration, step: number, stop: AbortSignal): Promise<Leased>;
}

const LONGEST_POLL_S = 30;

export function leaseBatches(client: Pick<TrainerClient, "lease">): Batches {
  return {
    next: async (who, want_step, stop) => {
      for (;;) {
        const request = { ...who, want_step, max_wait_s: LONGEST_POLL_S };
        const answer = await client.lease(request, { signal: stop });
        if (answer.leased !== null) return answer.leased;
        await wait(answer.retryAfterMs, undefined, { signal: stop });
      }
    },
  };
}

const SHORTEST_BEAT_MS = 1000;
const LONGEST_BEAT_MS = 60_000;

/**
 * Keeps a lease alive while its batch is trained: sends three heartbeats in the remaining time, and one every minute.
 * `now` is epoch milliseconds.
 *
 * A failed heartbeat is ignored: the acknowledgement shows whether the lease was still valid. None is sent after `end`.
 */
export function holdLease(
  client: Pick<TrainerClient, "heartbeat">,
  lease: LeaseView,
  epoch: number,
  now: number,
  log: (line: string) => void,
): { end(): void } {
  const third = (lease.expires_at * 1000 - now) / 3;
  const ended = new AbortController();
  const beat = () => {
    const request = { token: lease.token, epoch };
    client.heartbeat(lease.id, request, { signal: ended.signal }).catch((error: unknown) => {
      if (!ended.signal.aborted) log(`no heartbeat: ${String(error)}`);
    });
  };
  const timer = setInterval(beat, Math.min(LONGEST_BEAT_MS, Math.max(SHORTEST_BEAT_MS, third)));
  return {
    end: () => {
      clearInterval(timer);
      ended.abort();
    },
  };
}

const MAX_BODY_BYTES = 1 << 20;
/** A step takes about as long. */
const BUSY_S = 1;

export interface PushOptions {
  /** 0 for any free port. */
  readonly port: number;
  /** Shown when the run was created: `whsec_…`. */
  readonly secret: string;
  readonly client: Pick<TrainerClient, "manifest">;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** The step that the trainer waits for. */
interface Awaited {
  readonly who: Registration;
  readonly step: number;
  readonly take: (leased: Leased) => void;
}

interface Answer {
  readonly status: number;
  readonly body?: object;
}

/** A server with one route, which receives signed offers. Resolves with its port when it listens. */
export async function receiveBatches(options: PushOptions): Promise<Batches & { port: number; close(): void }> {
  const inbox = new Inbox(options);
  const server = createServer((request, response) => {
    inbox.answer(request).then(
      (answer) => send(response, answer),
      (error: unknown) => send(response, { status: 500, body: { message: String(error) } }),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    next: (who, step, stop) => inbox.next(who, step, stop),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/**
 * Receives the offers of a run.
 *
 * Invariants: an offer is accepted if its batch is the one that is waited for; otherwise it is refused as busy or out
 * of step. A repeated offer is accepted again, and its batch is not trained twice. Nothing in an offer is used before
 * its signature is checked.
 */
class Inbox {
  readonly #options: PushOptions;
  #awaited: Awaited | null = null;
  #accepted: string | null = null;

  constructor(options: PushOptions) {
    this.#options = options;
  }

  next(who: Registration, step: number, stop: AbortSignal): Promise<Leased> {
    stop.throwIfAborted();
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#awaited = null;
        reject(stop.reason);
      };
      stop.addEventListener("abort", abort, { once: true });
      const take = (leased: Leased) => {
        stop.removeEventListener("abort", abort);
        resolve(leased);
      };
      this.#awaited = { who, step, take };
    });
  }

  async answer(request: IncomingMessage): Promise<Answer> {
    const body = await readAll(request);
    if (body === null) return { status: 413, body: { code: "too_large" } };
    const { secret, now } = this.#options;
    if (!isSigned(secret, request.headers, body, now())) {
      return { status: 401, body: { code: "invalid_signature" } };
    }
    const offer = BatchOffer.safeParse(JSON.parse(body.toString()));
    if (!offer.success) return { status: 400, body: { code: "invalid_request" } };
    return this.#take(offer.data.data, String(request.headers["webhook-id"]));
  }

  async #take(offer: BatchOffer["data"], id: string): Promise<Answer> {
    if (id === this.#accepted) return { status: 202 };
    const awaited = this.#awaited;
    if (awaited === null) return { status: 429 };
    if (offer.epoch < awaited.who.epoch) return { status: 409, body: { code: "epoch_fenced" } };
    if (offer.step !== awaited.step) {
      return { status: 409, body: { code: "step_mismatch", next_step: awaited.step } };
    }
    const manifest = offer.manifest ?? (await this.#options.client.manifest(offer.step));
    if (this.#awaited !== awaited) return { status: 429 };
    this.#awaited = null;
    this.#accepted = id;
    awaited.take({ lease: offer.lease, manifest });
    return { status: 202 };
  }
}

async function readAll(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function send(response: ServerResponse, { status, body }: Answer): void {
  if (status === 429) response.setHeader("retry-after", String(BUSY_S));
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(body ?? {}));
}

const SECRET_PREFIX = "whsec_";
const TOLERANCE_S = 300;

/**
 * Whether an offer comes from the platform, by Standard Webhooks 1.0.0 (standardwebhooks.com). The signature covers the
 * received bytes, not the parsed body; a replayed old request is refused because of its time. `now`: epoch
 * milliseconds.
 */
function isSigned(secret: string, headers: IncomingHttpHeaders, body: Buffer, now: number): boolean {
  const [id, timestamp, signatures = ""] = ["id", "timestamp", "signature"].map((name) => {
    const value = headers[`webhook-${name}`];
    return typeof value === "string" ? value : "";
  });
  if (!(Math.abs(now / 1000 - Number(timestamp)) <= TOLERANCE_S)) return false;
  const key = secret.startsWith(SECRET_PREFIX)
    ? Buffer.from(secret.slice(SECRET_PREFIX.length), "base64")
    : Buffer.from(secret, "utf8");
  const hmac = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body);
  const expected = Buffer.from(`v1,${hmac.digest("base64")}`);
  return signatures.split(" ").some((signature) => {
    const given = Buffer.from(signature);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
