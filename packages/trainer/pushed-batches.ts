/**
 * Batches that the platform offers: a server of one route, which takes signed offers.
 *
 * Invariants. An offer is accepted when its batch is the one that is waited for, and refused as busy or out of step
 * otherwise; the same offer again is accepted again and trains nothing twice. Nothing is believed before its signature
 * was checked.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { BatchOffer, type Leased } from "../../src/contract/trainer-wire.ts";
import type { TrainerClient } from "../../src/sdk/trainer-client.ts";
import type { Batches, Registration } from "./batches.ts";
import { isSigned } from "./offer-signature.ts";

const MAX_BODY_BYTES = 1 << 20;
/** A step takes about as long. */
const BUSY_S = 1;

export interface PushOptions {
  readonly port: number;
  /** Shown when the run was created: `whsec_…`. */
  readonly secret: string;
  readonly client: Pick<TrainerClient, "manifest">;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

interface Awaited {
  readonly who: Registration;
  readonly step: number;
  readonly take: (leased: Leased) => void;
}

interface Answer {
  readonly status: number;
  readonly body?: object;
}

/** Listens at once. */
export async function pushedBatches(options: PushOptions): Promise<Batches & { close(): void }> {
  const inbox = new Inbox(options);
  const server = createServer((request, response) => {
    inbox.answer(request).then(
      (answer) => send(response, answer),
      (error: unknown) => send(response, { status: 500, body: { message: String(error) } }),
    );
  });
  await listening(server, options.port);
  return {
    next: (who, step, stop) => inbox.next(who, step, stop),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

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
      const aborted = () => {
        this.#awaited = null;
        reject(stop.reason);
      };
      stop.addEventListener("abort", aborted, { once: true });
      const take = (leased: Leased) => {
        stop.removeEventListener("abort", aborted);
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

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve());
  });
}
