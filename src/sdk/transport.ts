/**
 * Sends one HTTP call, and retries it if that is safe.
 *
 * Invariants. Every POST has an Idempotency-Key, and all other methods are idempotent. So a call is retried after a
 * broken connection, a timeout, 429, 502, 503, 504, and the API's error `in_progress`. Nothing else is retried: the
 * caller decides about other errors.
 */
import { ApiRequestError, requestErrorOf } from "./request-error.ts";

export interface TransportOptions {
  /** Without a key, a call has the session of a browser on the platform's own pages. */
  readonly apiKey?: string | undefined;
  /** Id or name of the project, for a key of a whole organisation. */
  readonly project?: string | undefined;
  readonly fetch?: typeof fetch | undefined;
  /** Maximal number of retries of a call; default 2. */
  readonly maxRetries?: number | undefined;
  /** Maximal wait for an answer, in milliseconds; default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Waits; rejects with the signal's reason if it aborts. Default: a timer. */
  readonly pause?: ((ms: number, signal?: AbortSignal) => Promise<void>) | undefined;
  /** Returns numbers from 0 up to 1, for the jitter of waits; default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

export interface Call {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  /** Not a stream: it may be sent several times. */
  readonly body?: Exclude<BodyInit, ReadableStream>;
  readonly signal?: AbortSignal | undefined;
  /** Null: no limit. Default: the client's. */
  readonly timeoutMs?: number | null | undefined;
}

export type Read<T> = (reply: Response) => Promise<T>;

const TIMEOUT_MS = 60_000;
const MAX_RETRIES = 2;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;
/** If a server requests a longer wait, its error is thrown: the caller decides whether to wait. */
const LONGEST_RETRY_AFTER_MS = 60_000;
const RETRYABLE = new Set([429, 502, 503, 504]);

export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /**
   * Returns what `read` makes of a reply of status 2xx, else throws ApiRequestError; a broken connection throws as in
   * `fetch`.
   */
  async request<T>(url: string, call: Call, read: Read<T>): Promise<T> {
    for (let retries = 0; ; retries += 1) {
      try {
        return await this.#attempt(url, call, read);
      } catch (error) {
        const wait = this.#waitAfter(error, retries);
        if (wait === null || call.signal?.aborted) throw error;
        await this.pause(wait, call.signal);
      }
    }
  }

  /** One attempt: a reply of status 2xx with its body unread. `patience` also limits the reading. */
  async open(url: string, call: Call, patience: Patience): Promise<Response> {
    const { method = "GET", headers, body } = call;
    const { apiKey, project, fetch: send = fetch } = this.#options;
    const reply = await send(url, {
      method,
      headers: {
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
        ...(project !== undefined && { "rollcall-project": project }),
        ...headers,
      },
      signal: patience.signal,
      ...(body !== undefined && { body }),
    });
    if (!reply.ok) throw await requestErrorOf(reply);
    return reply;
  }

  patience(call: Call): Patience {
    const { timeoutMs = this.#options.timeoutMs ?? TIMEOUT_MS, signal } = call;
    return new Patience(timeoutMs, signal);
  }

  pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return (this.#options.pause ?? pause)(ms, signal);
  }

  async #attempt<T>(url: string, call: Call, read: Read<T>): Promise<T> {
    const patience = this.patience(call);
    try {
      return await read(await this.open(url, call, patience));
    } finally {
      patience.end();
    }
  }

  /** Milliseconds until the next attempt; null if there is none. */
  #waitAfter(error: unknown, retries: number): number | null {
    const { maxRetries = MAX_RETRIES, random = Math.random } = this.#options;
    if (retries >= maxRetries || !isPassing(error)) return null;
    const asked = error instanceof ApiRequestError ? error.retryAfterMs : null;
    if (asked !== null) return asked <= LONGEST_RETRY_AFTER_MS ? asked : null;
    const backoff = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** retries);
    return backoff * (0.5 + random() / 2);
  }
}

/** Whether a retry may help. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof ApiRequestError)) return isBrokenConnection(error);
  return RETRYABLE.has(error.status) || error.code === "in_progress";
}

/** `fetch` and an incomplete body throw TypeErrors; our own timeout is a TimeoutError. */
export function isBrokenConnection(error: unknown): boolean {
  if (error instanceof TypeError) return true;
  return error instanceof DOMException && error.name === "TimeoutError";
}

/** Aborts if nothing arrives for `ms` (no limit if null), or if the caller's own signal aborts. */
export class Patience {
  readonly signal: AbortSignal;
  readonly #ms: number | null;
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ms: number | null, caller: AbortSignal | undefined) {
    this.#ms = ms;
    const own = this.#controller.signal;
    this.signal = caller === undefined ? own : AbortSignal.any([own, caller]);
    this.received();
  }

  /** Something arrived: restarts the timeout. */
  received(): void {
    this.end();
    const ms = this.#ms;
    if (ms === null) return;
    this.#timer = setTimeout(() => this.#controller.abort(timeoutError(ms)), ms);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

/** Resolves after `ms`; rejects with the signal's reason if that comes first. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

function timeoutError(ms: number): DOMException {
  return new DOMException(`the platform did not answer within ${ms} ms`, "TimeoutError");
}
