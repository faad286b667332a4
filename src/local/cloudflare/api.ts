/** Calls Cloudflare's API with the account's own credentials: those of wrangler, by token or by login. */
import * as z from "zod";
import { callWrangler } from "../wrangler.ts";

const API = "https://api.cloudflare.com/client/v4";
const ANSWERS_WITHIN_MS = 60_000;
/** Pages of a list. An account has at most 10,000 queues, the longest list that is read. */
const MOST_PAGES = 200;
const NOT_FOUND = 404;

const Envelope = z.object({
  success: z.boolean(),
  errors: z.array(z.object({ code: z.number(), message: z.string() })).default([]),
  result: z.unknown(),
  result_info: z
    .object({ total_pages: z.number(), total_count: z.number(), per_page: z.number().positive() })
    .partial()
    .nullish(),
});
type Envelope = z.infer<typeof Envelope>;

const GraphqlReply = z.object({
  data: z.unknown(),
  errors: z.array(z.object({ message: z.string() })).nullish(),
});

/** Cloudflare refused a request, or did not answer: then `status` is 0. `code`: its own number of the error, or 0. */
export class CloudflareFailed extends Error {
  override readonly name = "CloudflareFailed";
  readonly status: number;
  readonly code: number;

  constructor(message: string, { status, code, cause }: { status: number; code: number; cause?: unknown }) {
    super(message, { cause });
    this.status = status;
    this.code = code;
  }
}

function refusal(call: string, status: number, errors: Envelope["errors"]): CloudflareFailed {
  const why = errors.map(({ code, message }) => `${message} (${code})`).join("; ") || "no reason given";
  const message = `Cloudflare refused ${call} with ${status}: ${why}`;
  return new CloudflareFailed(message, { status, code: errors[0]?.code ?? 0 });
}

type Environment = Readonly<Record<string, string | undefined>>;

const Login = z.union([
  z.object({ type: z.enum(["api_token", "oauth"]), token: z.string() }),
  z.object({ type: z.literal("api_key"), key: z.string(), email: z.string() }),
]);

/** CLOUDFLARE_API_TOKEN, else what `wrangler login` stored. Throws an error that says how to log in. */
async function credentialsOf(environment: Environment, signal: AbortSignal): Promise<Record<string, string>> {
  const { CLOUDFLARE_API_TOKEN: token } = environment;
  if (token) return { authorization: `Bearer ${token}` };
  const said = await callWrangler(["auth", "token", "--json"], { folder: process.cwd(), signal }).catch((thrown) => {
    signal.throwIfAborted();
    throw new Error("not signed in to Cloudflare: run npx wrangler login, or set CLOUDFLARE_API_TOKEN", {
      cause: thrown,
    });
  });
  const login = Login.parse(JSON.parse(said));
  return login.type === "api_key"
    ? { "x-auth-key": login.key, "x-auth-email": login.email }
    : { authorization: `Bearer ${login.token}` };
}

export interface ApiRequest {
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

export class CloudflareApi {
  readonly #base: string;
  readonly #credentials: Readonly<Record<string, string>>;
  readonly #signal: AbortSignal;

  private constructor(base: string, credentials: Readonly<Record<string, string>>, signal: AbortSignal) {
    this.#base = base;
    this.#credentials = credentials;
    this.#signal = signal;
  }

  /** Like wrangler it calls CLOUDFLARE_API_BASE_URL, if that is set. Every call ends with the signal. */
  static async open(environment: Environment, signal: AbortSignal): Promise<CloudflareApi> {
    const base = environment["CLOUDFLARE_API_BASE_URL"] || API;
    return new CloudflareApi(base, await credentialsOf(environment, signal), signal);
  }

  /** The result, parsed. `call` is method and path: "GET /accounts". Throws CloudflareFailed. */
  async ask<Schema extends z.ZodType>(
    call: string,
    schema: Schema,
    request: ApiRequest = {},
  ): Promise<z.output<Schema>> {
    const { result } = await this.#send(call, request);
    return schema.parse(result);
  }

  /** The same, or null for something that does not exist. */
  async find<Schema extends z.ZodType>(
    call: string,
    schema: Schema,
    request: ApiRequest = {},
  ): Promise<z.output<Schema> | null> {
    try {
      return await this.ask(call, schema, request);
    } catch (thrown) {
      if (thrown instanceof CloudflareFailed && thrown.status === NOT_FOUND) return null;
      throw thrown;
    }
  }

  /** Every item of a list, over all of its pages. */
  async list<Schema extends z.ZodType>(
    path: string,
    item: Schema,
    query: Readonly<Record<string, string>> = {},
  ): Promise<z.output<Schema>[]> {
    const items: z.output<Schema>[] = [];
    for (let page = 1; page <= MOST_PAGES; page += 1) {
      const { result, result_info } = await this.#send(`GET ${path}`, { query: { ...query, page: String(page) } });
      items.push(...z.array(item).parse(result ?? []));
      if (page >= pagesOf(result_info ?? {})) break;
    }
    return items;
  }

  /** The `data` of a query to the GraphQL API. Throws CloudflareFailed. */
  async graphql(query: string, variables: object): Promise<unknown> {
    const { status, text } = await this.#exchange("POST /graphql", { body: { query, variables } });
    const read = GraphqlReply.safeParse(parsed(text));
    const errors = read.success ? (read.data.errors ?? []) : [];
    if (read.success && errors.length === 0) return read.data.data;
    throw refusal(
      "POST /graphql",
      status,
      errors.map(({ message }) => ({ code: 0, message })),
    );
  }

  async #send(call: string, request: ApiRequest): Promise<Envelope> {
    const { status, text } = await this.#exchange(call, request);
    const read = Envelope.safeParse(parsed(text));
    if (read.success && read.data.success) return read.data;
    throw refusal(call, status, read.success ? read.data.errors : []);
  }

  #exchange(call: string, { query = {}, body, headers = {} }: ApiRequest) {
    const [method = "", path = ""] = call.split(" ");
    const search = new URLSearchParams(query).toString();
    const url = `${this.#base}${path}${search === "" ? "" : `?${search}`}`;
    const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(ANSWERS_WITHIN_MS)]);
    const content = body === undefined ? {} : { "content-type": "application/json" };
    const init = { method, headers: { ...this.#credentials, ...content, ...headers }, signal };
    const asked = () => exchange(url, body === undefined ? init : { ...init, body: JSON.stringify(body) });
    // While this program builds, Cloudflare may close the connection that the next request uses.
    return method === "GET" ? asked().catch(unlessClosed(asked)) : asked();
  }
}

/** Some lists state the number of their items instead of that of their pages. */
function pagesOf({ total_pages, total_count = 0, per_page = 1 }: NonNullable<Envelope["result_info"]>): number {
  return total_pages ?? Math.ceil(total_count / per_page);
}

/** Repeats a request whose connection was closed. */
function unlessClosed<T>(again: () => Promise<T>): (thrown: unknown) => Promise<T> {
  return (thrown) => {
    if (thrown instanceof CloudflareFailed && thrown.cause instanceof TypeError) return again();
    throw thrown;
  };
}

async function exchange(url: string, init: RequestInit): Promise<{ readonly status: number; readonly text: string }> {
  try {
    const reply = await fetch(url, init);
    return { status: reply.status, text: await reply.text() };
  } catch (cause) {
    // No connection, or no answer in time. An abort by the caller is thrown as it is.
    const silent = cause instanceof TypeError || (cause instanceof DOMException && cause.name === "TimeoutError");
    if (!silent) throw cause;
    const why = cause.cause instanceof Error ? cause.cause.message : cause.message;
    throw new CloudflareFailed(`${new URL(url).origin} does not answer: ${why}`, { status: 0, code: 0, cause });
  }
}

/** The JSON value; undefined for any other text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
