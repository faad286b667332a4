/**
 * A typed client of the HTTP API, on `fetch` alone: it runs in Node, in browsers and in Workers.
 *
 * Invariants. Every POST carries an Idempotency-Key, so sending it again is safe. Only the event stream reconnects by
 * itself (the protocol is made for it); every other failure is the caller's to judge.
 */
import type { ErrorCode } from "../core/api-error.ts";
import type {
  EnvironmentView,
  EventName,
  Outcome,
  ResultRow,
  RolloutView,
  RunRequestInput,
  RunStatus,
  RunView,
} from "../core/run.ts";
import { isTerminalEvent } from "../core/run.ts";
import { jsonLines, serverSentEvents } from "./streams.ts";

export interface ClientOptions {
  /** Without /v1. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly fetch?: typeof fetch;
}

export interface Page<T> {
  readonly object: "list";
  readonly data: readonly T[];
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
}

export interface RunEvent {
  readonly id: number;
  readonly event: EventName;
  /** `RolloutFinished` for `rollout.finished`. */
  readonly data: unknown;
}

/** The API answered with an error. */
export class ApiRequestError extends Error {
  override readonly name = "ApiRequestError";
  readonly status: number;
  readonly code: ErrorCode | "unreadable";
  readonly param: string | null;
  readonly type: string;

  constructor(
    status: number,
    error: { code: ErrorCode | "unreadable"; message: string; param: string | null; type: string },
  ) {
    super(error.message);
    this.status = status;
    this.code = error.code;
    this.param = error.param;
    this.type = error.type;
  }
}

/** Where a followed run stands between two connections. */
interface EventStream {
  /** Id of the last event seen. */
  last: number | undefined;
  /** How long the server wants us to wait before we come back. */
  retryMs: number;
  ended: boolean;
}

const FIRST_RETRY_MS = 1000;
/** The server's way to say that the run has ended and every event of it was read. */
const NOTHING_MORE = 204;
/** The stream gives up after this many connections in a row that brought nothing. */
const FRUITLESS_CONNECTIONS = 30;

export class RollcallClient {
  readonly #base: string;
  readonly #key: string;
  readonly #fetch: typeof fetch;

  constructor(options: ClientOptions) {
    this.#base = `${options.baseUrl.replace(/\/+$/, "")}/v1`;
    this.#key = options.apiKey;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  createRun(request: RunRequestInput, options?: { idempotencyKey?: string }): Promise<RunView> {
    return this.#post("/runs", request, options?.idempotencyKey);
  }

  getRun(runId: string): Promise<RunView> {
    return this.#json(`/runs/${encodeURIComponent(runId)}`);
  }

  cancelRun(runId: string): Promise<RunView> {
    return this.#post(`/runs/${encodeURIComponent(runId)}/cancel`, {});
  }

  /** Newest first unless `order` says otherwise. */
  listRuns(
    query: { status?: RunStatus; environment?: string; after?: string; limit?: number } = {},
  ): Promise<Page<RunView>> {
    const pairs = Object.entries(query).map(([name, value]) => [name, String(value)]);
    return this.#json(`/runs?${new URLSearchParams(Object.fromEntries(pairs))}`);
  }

  getRollout(rolloutId: string): Promise<RolloutView> {
    return this.#json(`/rollouts/${encodeURIComponent(rolloutId)}`);
  }

  async environments(): Promise<readonly EnvironmentView[]> {
    const page: Page<EnvironmentView> = await this.#json("/environments");
    return page.data;
  }

  environment(id: string): Promise<EnvironmentView> {
    return this.#json(`/environments/${encodeURIComponent(id)}`);
  }

  /** Every row of a run so far, page after page. */
  async *results(runId: string, query: { outcome?: Outcome } = {}): AsyncGenerator<ResultRow> {
    const search = new URLSearchParams(query);
    let url: string | null = `${this.#base}/runs/${encodeURIComponent(runId)}/results?${search}`;
    while (url !== null) {
      const reply: Response = await this.#send(url, {});
      for await (const row of jsonLines(reply)) yield row as ResultRow;
      url = nextLink(reply, url);
    }
  }

  /**
   * A run's events from `after` on (default: all), until the one that ends the run. A stream that breaks off or ends is
   * opened again behind the last event seen; an error status ends the iteration with ApiRequestError.
   */
  async *events(
    runId: string,
    options: { after?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<RunEvent> {
    const stream: EventStream = { last: options.after, retryMs: FIRST_RETRY_MS, ended: false };
    const url = `${this.#base}/runs/${encodeURIComponent(runId)}/events`;
    for (let fruitless = 0; fruitless < FRUITLESS_CONNECTIONS; fruitless += 1) {
      for await (const event of this.#connection(url, stream, options.signal)) {
        fruitless = 0;
        yield event;
      }
      if (stream.ended) return;
      await pause(stream.retryMs, options.signal);
    }
    throw new TypeError(`the event stream of ${runId} stays silent`);
  }

  /** The events of one connection, which may break off; `stream` says how far it came. */
  async *#connection(
    url: string,
    stream: EventStream,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<RunEvent> {
    try {
      const reply = await this.#openStream(url, stream.last, signal);
      stream.ended = reply.status === NOTHING_MORE;
      for await (const event of serverSentEvents(reply)) {
        stream.retryMs = event.retryMs ?? stream.retryMs;
        if (event.data === "") continue;
        stream.last = event.id ?? stream.last;
        const name = event.name as EventName;
        stream.ended = isTerminalEvent(name);
        yield { id: stream.last ?? 0, event: name, data: JSON.parse(event.data) };
        if (stream.ended) return;
      }
    } catch (error) {
      if (signal?.aborted || !isBrokenConnection(error)) throw error;
    }
  }

  #openStream(url: string, last: number | undefined, signal: AbortSignal | undefined) {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (last !== undefined) headers["last-event-id"] = String(last);
    return this.#send(url, { headers, ...(signal && { signal }) });
  }

  async #json<T>(path: string): Promise<T> {
    const reply = await this.#send(this.#base + path, {});
    return (await reply.json()) as T;
  }

  async #post<T>(path: string, body: unknown, idempotencyKey?: string): Promise<T> {
    const reply = await this.#send(this.#base + path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "idempotency-key": idempotencyKey ?? crypto.randomUUID(),
      },
      body: JSON.stringify(body),
    });
    return (await reply.json()) as T;
  }

  /** A reply of status 2xx, or ApiRequestError. A connection that fails throws what `fetch` throws (a TypeError). */
  async #send(url: string, init: RequestInit & { headers?: Record<string, string> }) {
    const headers = { authorization: `Bearer ${this.#key}`, ...init.headers };
    const reply = await this.#fetch(url, { ...init, headers });
    if (!reply.ok) throw await requestError(reply);
    return reply;
  }
}

async function requestError(reply: Response): Promise<ApiRequestError> {
  const text = await reply.text();
  const unreadable = {
    code: "unreadable" as const,
    message: `status ${reply.status}: ${text.slice(0, 200)}`,
    param: null,
    type: "api_error",
  };
  try {
    const body: { error?: ConstructorParameters<typeof ApiRequestError>[1] } | null =
      JSON.parse(text);
    return new ApiRequestError(reply.status, body?.error ?? unreadable);
  } catch (error) {
    if (error instanceof SyntaxError) return new ApiRequestError(reply.status, unreadable);
    throw error;
  }
}

function nextLink(reply: Response, base: string): string | null {
  const link = /<([^>]+)>\s*;[^,]*rel="?next"?/.exec(reply.headers.get("link") ?? "")?.[1];
  return link === undefined ? null : new URL(link, base).href;
}

/** fetch and a body cut short throw TypeErrors; a platform that restarts answers 5xx for a moment. */
function isBrokenConnection(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof ApiRequestError && error.status >= 500);
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
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
