/**
 * A typed client of the HTTP API, on `fetch` alone: it runs in Node, in browsers and in Workers.
 *
 * Invariants. One method for each route, and an iterator for each list. Every POST carries an Idempotency-Key, so a call
 * is made again by itself where that may help (transport.ts). Replies are typed by the schemas the server writes them
 * by, and not validated again: a newer server may say more than these types know.
 *
 * Every method throws ApiRequestError when the API refuses, a TypeError when the platform cannot be reached, a
 * DOMException named TimeoutError when it stays silent, and the reason of `signal` when that aborts.
 */
import type {
  Deleted,
  EndpointPatch,
  EndpointRequestInput,
  EndpointView,
  SecretView,
} from "../core/endpoint.ts";
import type {
  EnvironmentView,
  Outcome,
  ResultRow,
  RolloutView,
  RunRequestInput,
  RunStatus,
  RunView,
} from "../core/run.ts";
import type { RunEvent } from "../core/run-events.ts";
import type { DatasetRow, DatasetView } from "../core/uploaded-dataset.ts";
import { type DatasetSource, datasetBodyOf } from "./dataset-body.ts";
import { type FollowOptions, followEvents } from "./event-stream.ts";
import { ApiRequestError, unreadableReply } from "./request-error.ts";
import { type Call, Transport, type TransportOptions } from "./transport.ts";

export type { ApiError, ErrorCode } from "../core/api-error.ts";
export type { RolloutFinished } from "../core/run.ts";
export type { RunEnded, RunProgress, RunSnapshot } from "../core/run-events.ts";
export type {
  DatasetRow,
  DatasetSource,
  DatasetView,
  Deleted,
  EndpointPatch,
  EndpointRequestInput,
  EndpointView,
  EnvironmentView,
  FollowOptions,
  Outcome,
  ResultRow,
  RolloutView,
  RunEvent,
  RunRequestInput,
  RunStatus,
  RunView,
  SecretView,
};
export { ApiRequestError };

export interface ClientOptions extends TransportOptions {
  /** The platform's address, without /v1. */
  readonly baseUrl: string;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long the call may go without an answer, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number | undefined;
}

export interface PostOptions extends CallOptions {
  /** Default: a random one for each call. Give your own to make a call that survives your process. */
  readonly idempotencyKey?: string | undefined;
}

export interface Page<T> {
  readonly object: "list";
  readonly data: readonly T[];
  readonly first_id: string | null;
  /** The `after` of the next page. */
  readonly last_id: string | null;
  readonly has_more: boolean;
}

export interface ListQuery {
  /** Id of the last object of the page before. */
  readonly after?: string | undefined;
  /** Objects a page: 1 to 100, default 20. */
  readonly limit?: number | undefined;
  /** By time of creation; default `desc`. */
  readonly order?: "asc" | "desc" | undefined;
}

export interface RunQuery extends ListQuery {
  readonly kind?: RunView["kind"] | undefined;
  readonly status?: RunStatus | undefined;
  /** `id`, or `id@version`; version 1 includes 1.0.2. */
  readonly environment?: string | undefined;
  /** Pairs that must be there. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

export interface RowQuery {
  /** As the link to the page has it; default: from the start. */
  readonly after?: number | undefined;
  /** Rows read at once. */
  readonly limit?: number | undefined;
}

export interface DatasetOptions extends PostOptions {
  readonly name?: string | undefined;
  /** `id` or `id@version`: every row is checked against its row schema. */
  readonly environment?: string | undefined;
  readonly environmentArgs?: Readonly<Record<string, unknown>> | undefined;
}

export class RollcallClient {
  readonly #base: string;
  readonly #transport: Transport;

  constructor({ baseUrl, ...options }: ClientOptions) {
    this.#base = `${baseUrl.replace(/\/+$/, "")}/v1`;
    this.#transport = new Transport(options);
  }

  /** Starts a run; it goes on by itself. */
  createRun(request: RunRequestInput, options: PostOptions = {}): Promise<RunView> {
    return this.#post("/runs", request, options);
  }

  /** The run with its counts and its report so far. */
  getRun(runId: string, options: CallOptions = {}): Promise<RunView> {
    return this.#json(`/runs/${encodeURIComponent(runId)}`, options);
  }

  /** Ends a run early. An ended run stays as it is. */
  cancelRun(runId: string, options: PostOptions = {}): Promise<RunView> {
    return this.#post(`/runs/${encodeURIComponent(runId)}/cancel`, {}, options);
  }

  /** One page of runs, newest first unless `order` says otherwise. */
  listRuns(query: RunQuery = {}, options: CallOptions = {}): Promise<Page<RunView>> {
    return this.#json(`/runs${search(query)}`, options);
  }

  /** Every run, page after page. */
  runs(query: RunQuery = {}, options: CallOptions = {}): AsyncGenerator<RunView> {
    return eachOf(query, (page) => this.listRuns(page, options));
  }

  /**
   * A run's events from `after` on (default: all), until the one that ends the run. A stream that breaks off or ends is
   * opened again behind the last event seen; 30 connections in a row that bring nothing end it with a TypeError.
   */
  events(runId: string, options: FollowOptions = {}): AsyncGenerator<RunEvent> {
    const url = `${this.#base}/runs/${encodeURIComponent(runId)}/events`;
    return followEvents(this.#transport, url, options);
  }

  /** Every finished rollout of a run so far, in the order they ended, page after page. */
  results(
    runId: string,
    query: RowQuery & { readonly outcome?: Outcome | undefined } = {},
    options: CallOptions = {},
  ): AsyncGenerator<ResultRow> {
    return this.#rows(`/runs/${encodeURIComponent(runId)}/results${search(query)}`, options);
  }

  /** One rollout, read whole; before it is done, what is stored of it so far. */
  getRollout(rolloutId: string, options: CallOptions = {}): Promise<RolloutView> {
    return this.#json(`/rollouts/${encodeURIComponent(rolloutId)}`, options);
  }

  /** The environments a run may name. */
  async environments(options: CallOptions = {}): Promise<readonly EnvironmentView[]> {
    const page: Page<EnvironmentView> = await this.#json("/environments", options);
    return page.data;
  }

  /** By `id` or `id@version`. */
  environment(id: string, options: CallOptions = {}): Promise<EnvironmentView> {
    return this.#json(`/environments/${encodeURIComponent(id)}`, options);
  }

  /**
   * Uploads rows as a dataset. An upload has no timeout unless `timeoutMs` is given. A stream or an async iterable is
   * read as it is sent and never sent twice; browsers send one over HTTP/2 only, and want a Blob otherwise.
   */
  createDataset(source: DatasetSource, options: DatasetOptions = {}): Promise<DatasetView> {
    const { name, environment, environmentArgs } = options;
    const query = search({
      name,
      environment,
      environment_args: environmentArgs && JSON.stringify(environmentArgs),
    });
    const { idempotencyKey, signal, timeoutMs = null } = options;
    return this.#json(`/datasets${query}`, {
      method: "POST",
      headers: headersOf("application/jsonl", idempotencyKey),
      ...datasetBodyOf(source),
      signal,
      timeoutMs,
    });
  }

  getDataset(idOrName: string, options: CallOptions = {}): Promise<DatasetView> {
    return this.#json(`/datasets/${encodeURIComponent(idOrName)}`, options);
  }

  listDatasets(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<DatasetView>> {
    return this.#json(`/datasets${search(query)}`, options);
  }

  datasets(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<DatasetView> {
    return eachOf(query, (page) => this.listDatasets(page, options));
  }

  /** Every row of a dataset in its order, page after page. */
  datasetRows(
    idOrName: string,
    query: RowQuery = {},
    options: CallOptions = {},
  ): AsyncGenerator<DatasetRow> {
    return this.#rows(`/datasets/${encodeURIComponent(idOrName)}/rows${search(query)}`, options);
  }

  /** Refused with `conflict` while an unfinished run names it. */
  deleteDataset(idOrName: string, options: CallOptions = {}): Promise<Deleted> {
    return this.#delete(`/datasets/${encodeURIComponent(idOrName)}`, options);
  }

  /** The key is sealed and never read back. One short call tells what the server supports, unless `probe` is false. */
  createEndpoint(request: EndpointRequestInput, options: PostOptions = {}): Promise<EndpointView> {
    return this.#post("/endpoints", request, options);
  }

  getEndpoint(idOrName: string, options: CallOptions = {}): Promise<EndpointView> {
    return this.#json(`/endpoints/${encodeURIComponent(idOrName)}`, options);
  }

  listEndpoints(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<EndpointView>> {
    return this.#json(`/endpoints${search(query)}`, options);
  }

  endpoints(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<EndpointView> {
    return eachOf(query, (page) => this.listEndpoints(page, options));
  }

  /** Only what is named changes; `api_key: null` removes the key. */
  updateEndpoint(
    idOrName: string,
    patch: EndpointPatch,
    options: CallOptions = {},
  ): Promise<EndpointView> {
    return this.#patch(`/endpoints/${encodeURIComponent(idOrName)}`, patch, options);
  }

  /** Refused with `conflict` while an unfinished run uses it. */
  deleteEndpoint(idOrName: string, options: CallOptions = {}): Promise<Deleted> {
    return this.#delete(`/endpoints/${encodeURIComponent(idOrName)}`, options);
  }

  /** Looks again at what the server supports. */
  probeEndpoint(idOrName: string, options: PostOptions = {}): Promise<EndpointView> {
    return this.#post(`/endpoints/${encodeURIComponent(idOrName)}/probe`, {}, options);
  }

  /** The value is written and never read back. */
  createSecret(
    secret: { readonly name: string; readonly value: string },
    options: PostOptions = {},
  ): Promise<SecretView> {
    return this.#post("/secrets", secret, options);
  }

  getSecret(idOrName: string, options: CallOptions = {}): Promise<SecretView> {
    return this.#json(`/secrets/${encodeURIComponent(idOrName)}`, options);
  }

  listSecrets(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<SecretView>> {
    return this.#json(`/secrets${search(query)}`, options);
  }

  secrets(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<SecretView> {
    return eachOf(query, (page) => this.listSecrets(page, options));
  }

  updateSecret(
    idOrName: string,
    patch: { readonly value: string },
    options: CallOptions = {},
  ): Promise<SecretView> {
    return this.#patch(`/secrets/${encodeURIComponent(idOrName)}`, patch, options);
  }

  deleteSecret(idOrName: string, options: CallOptions = {}): Promise<Deleted> {
    return this.#delete(`/secrets/${encodeURIComponent(idOrName)}`, options);
  }

  #post<T>(path: string, body: unknown, { idempotencyKey, ...options }: PostOptions): Promise<T> {
    const headers = headersOf("application/json", idempotencyKey);
    return this.#json(path, { ...options, method: "POST", headers, body: JSON.stringify(body) });
  }

  #patch<T>(path: string, body: unknown, options: CallOptions): Promise<T> {
    const headers = { "content-type": "application/json" };
    return this.#json(path, { ...options, method: "PATCH", headers, body: JSON.stringify(body) });
  }

  /** One whose reply was lost is sent again and may then answer `not_found`. */
  #delete(path: string, options: CallOptions): Promise<Deleted> {
    return this.#json(path, { ...options, method: "DELETE" });
  }

  #json<T>(path: string, call: Call): Promise<T> {
    return this.#transport.request(this.#base + path, call, readJson<T>);
  }

  /** The rows of every page from this one on. A page is read whole before its rows are given: it can be read again. */
  async *#rows<T>(path: string, options: CallOptions): AsyncGenerator<T> {
    for (let url: string | null = this.#base + path; url !== null; ) {
      const page: RowPage<T> = await this.#transport.request(url, options, readRows<T>);
      yield* page.rows;
      url = page.next === null ? null : withSearchOf(page.next, url);
    }
  }
}

/** Text that is no JSON comes from something else that listens there. */
async function readJson<T>(reply: Response): Promise<T> {
  const text = await reply.text();
  return parsed<T>(text, reply);
}

function parsed<T>(text: string, reply: Response): T {
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw unreadableReply(reply, text);
  }
}

interface RowPage<T> {
  readonly rows: readonly T[];
  readonly next: string | null;
}

async function readRows<T>(reply: Response): Promise<RowPage<T>> {
  // Not text(): workerd warns of a content type it does not know to be text.
  const lines = new TextDecoder().decode(await reply.arrayBuffer()).split("\n");
  if (lines.pop() !== "") throw new TypeError("the page of rows was cut short");
  return {
    rows: lines.map((line) => parsed<T>(line, reply)),
    next: /<([^>]+)>\s*;[^,]*rel="?next"?/.exec(reply.headers.get("link") ?? "")?.[1] ?? null,
  };
}

/** Only the link's query counts: a platform behind a proxy may not know its own address, and the key goes to no other. */
function withSearchOf(link: string, url: string): string {
  const next = new URL(url);
  next.search = new URL(link, url).search;
  return next.href;
}

async function* eachOf<Q extends ListQuery, T>(
  query: Q,
  list: (query: Q) => Promise<Page<T>>,
): AsyncGenerator<T> {
  for (let after = query.after; ; ) {
    const page: Page<T> = await list({ ...query, after });
    yield* page.data;
    if (!page.has_more || page.last_id === null) return;
    after = page.last_id;
  }
}

function headersOf(contentType: string, idempotencyKey: string = crypto.randomUUID()) {
  return { "content-type": contentType, "idempotency-key": idempotencyKey };
}

/** `?a=1&metadata[branch]=main`; empty when nothing is asked. */
function search(query: object): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => pairsOf(name, value));
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`;
}

function pairsOf(name: string, value: unknown): [string, string][] {
  if (value === undefined) return [];
  if (typeof value !== "object" || value === null) return [[name, String(value)]];
  return Object.entries(value).map(([key, inner]) => [`${name}[${key}]`, String(inner)]);
}
