/**
 * The model call: one file, the `openai` SDK behind it.
 *
 * Invariants. The SDK retries nothing (`maxRetries: 0`) and keeps no deadline; ours is the AbortSignal, for the body as
 * well. It gets every reply read within bounds (`bounded-body.ts`). A call has one of the outcomes of `CallOutcome`,
 * and never throws. A reply the engine broke off (`abort`) is none: half a reply must not be played on with or scored.
 * Nothing of what comes back holds the key. Token ids, logprobs and the version label that vLLM sends are kept verbatim
 * when present. Sources: OpenAI's chat-completion objects; vLLM's protocol for the extra fields.
 */
import OpenAI from "openai";
import { AuthenticationError, InvalidModelResponseError, ModelError, type RolloutError } from "../contract/errors.ts";
import type { Message, Messages, ToolDefinition } from "../contract/messages.ts";
import type { Sampling } from "../contract/sampling.ts";
import type { ModelResponse } from "../contract/trajectory.ts";
import { readChatCompletion } from "../core/rollout/chat-completion.ts";
import { cutResponse } from "../core/rollout/tokens.ts";
import { type Embeddings, readEmbeddings } from "../core/rubrics/embeddings.ts";
import { fetchReply } from "./bounded-body.ts";
import { mayHoldKey, replyWithoutKey, withoutKey } from "./without-key.ts";

/** Where a call goes, and what every call has. */
export interface Destination {
  readonly base_url: string;
  readonly api_key: string | null;
  /** The same for every re-send of this call. */
  readonly idempotency_key: string;
  readonly signal: AbortSignal;
}

export interface ModelCall extends Destination {
  readonly model: string;
  readonly messages: Messages;
  readonly tools: readonly ToolDefinition[];
  readonly sampling: Sampling;
  /** Tokens of prompt and answer that are kept, where the environment says so. */
  readonly max_seq_len?: number;
}

export type CallOutcome<Response = ModelResponse> =
  | { readonly kind: "answered"; readonly response: Response }
  /** The prompt does not fit the model's context: truncation, not a failure. */
  | { readonly kind: "prompt_too_long" }
  | { readonly kind: "aborted" }
  | {
      readonly kind: "failed";
      readonly error: RolloutError;
      readonly retryable: boolean;
      readonly retry_after_ms: number | null;
      /** The reply's status; absent where no reply came, or one of 200 could not be used. */
      readonly status?: number;
    };

/** What a 400 says when the context overflows, lower-cased (vLLM's and other engines' phrases, by verifiers' list). */
const OVERFLOW_PHRASES = [
  "context length",
  "maximum model length",
  "'max_tokens' or 'max_completion_tokens' is too large",
  "exceeded model",
  "exceed the configured limit",
  "exceeds the configured limit",
  "prompt_too_long",
  "prompt is too long",
];

const clients = new Map<string, OpenAI>();
/** Beyond this many endpoints in one isolate the oldest client goes; a client is only settings. */
const CLIENTS_KEPT = 64;

export async function callModel(call: ModelCall): Promise<CallOutcome> {
  const started = Date.now();
  return await postCall(call, "/chat/completions", requestBody(call), (body) => {
    const response = readChatCompletion(body, Date.now() - started);
    if (response.finish_reason === "abort") {
      throw new InvalidModelResponseError("the engine broke the reply off (finish_reason: abort)");
    }
    return cutResponse(response, call.max_seq_len ?? null);
  });
}

/** Never throws: what `read` throws, of a reply that is none, is an outcome as well. */
async function postCall<Response>(
  where: Destination,
  path: string,
  body: Readonly<Record<string, unknown>>,
  read: (body: unknown) => Response,
): Promise<CallOutcome<Response>> {
  try {
    const sent = clientFor(where.base_url).post(path, {
      body,
      headers: {
        "idempotency-key": where.idempotency_key,
        ...(where.api_key === null ? {} : { authorization: `Bearer ${where.api_key}` }),
      },
      signal: where.signal,
    });
    // Its own parser quotes a body that is no JSON.
    const reply = await replyJson(await sent.asResponse(), where.api_key);
    return { kind: "answered", response: read(reply) };
  } catch (thrown) {
    return classify(thrown, where);
  }
}

/** One client per endpoint; it is only settings, and holds no key: that goes with each call. */
function clientFor(base_url: string): OpenAI {
  const known = clients.get(base_url);
  if (known !== undefined) return known;
  // The SDK insists on a key; endpoints without one ignore what they are sent.
  const client = new OpenAI({
    baseURL: base_url,
    apiKey: "none",
    maxRetries: 0,
    fetch: fetchReply,
    // The address was checked when it was given; where it leads was not.
    fetchOptions: { redirect: "manual" },
  });
  const oldest = clients.keys().next();
  if (clients.size >= CLIENTS_KEPT && !oldest.done) clients.delete(oldest.value);
  clients.set(base_url, client);
  return client;
}

function requestBody(call: ModelCall): Record<string, unknown> {
  const { extra_body, ...asked } = call.sampling;
  const sampling = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== null));
  return {
    model: call.model,
    messages: call.messages.map(wireMessage),
    ...(call.tools.length > 0 ? { tools: call.tools } : {}),
    ...sampling,
    ...extra_body,
  };
}

/** `text` is ours (a bare string); endpoints know it as `user`. And they refuse a list without any part. */
function wireMessage(message: Message): Message {
  const role = message.role === "text" ? "user" : message.role;
  const empty = Array.isArray(message.content) && message.content.length === 0;
  const { thinking_blocks: _kept, ...sent } = message;
  return { ...sent, role, ...(empty && { content: "" }) };
}

/** The SDK wraps whatever its fetch throws. */
function unwrap(thrown: unknown): unknown {
  if (!(thrown instanceof OpenAI.APIConnectionError)) return thrown;
  return thrown.cause instanceof ModelError ? thrown.cause : thrown;
}

function classify(raw: unknown, { signal, api_key }: Destination): CallOutcome<never> {
  if (signal.aborted) return { kind: "aborted" };
  const thrown = unwrap(raw);
  if (thrown instanceof InvalidModelResponseError) return failure(thrown, true, null);
  const message = withoutKey(thrown instanceof Error ? thrown.message : String(thrown), api_key);
  const error = new ModelError(message);
  // The connection, or a body that broke off.
  if (!(thrown instanceof OpenAI.APIError)) return failure(error, true, null);
  const { status } = thrown;
  if (status === undefined) return failure(error, true, null);
  if (status === 401 || status === 403) {
    return failure(new AuthenticationError(message), false, null);
  }
  if (status === 400 && overflows(thrown)) return { kind: "prompt_too_long" };
  if (status >= 300 && status < 400) {
    const moved = `${status}: the endpoint leads elsewhere; give the address it leads to`;
    return failure(new ModelError(moved), false, null);
  }
  const retryable = status === 408 || status === 409 || status === 429 || status >= 500;
  return { ...failure(error, retryable, retryAfter(thrown.headers)), status };
}

function failure(
  error: RolloutError,
  retryable: boolean,
  retry_after_ms: number | null,
): Extract<CallOutcome, { kind: "failed" }> {
  return { kind: "failed", error, retryable, retry_after_ms };
}

function overflows(error: { message: string; error?: unknown; param?: unknown }): boolean {
  // vLLM's mark where the words differ.
  if (error.param === "input_tokens") return true;
  const text = `${error.message} ${JSON.stringify(error.error ?? null)}`.toLowerCase();
  return OVERFLOW_PHRASES.some((phrase) => text.includes(phrase));
}

/** Milliseconds, from either form of `Retry-After`: seconds, or a date. */
function retryAfter(headers: Headers | undefined): number | null {
  const asked = headers?.get("retry-after") ?? null;
  if (asked === null || asked.trim() === "") return null;
  const seconds = Number(asked);
  const ms = Number.isNaN(seconds) ? Date.parse(asked) - Date.now() : seconds * 1000;
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

// The body of a reply as JSON. What a parser says of a text that is none quotes a piece of it, and the piece may be of
// a key that the server repeats: what is said here are facts about the reply, never its words.

/** Parsed, and without the key it was asked with. Throws `InvalidModelResponseError` for what is no JSON. */
async function replyJson(response: Response, api_key: string | null): Promise<unknown> {
  const text = await response.text();
  try {
    const reply: unknown = JSON.parse(text);
    return mayHoldKey(text, api_key) ? replyWithoutKey(reply, api_key) : reply;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) {
      const type = /^[\w.+/-]{1,80}/.exec(response.headers.get("content-type") ?? "")?.[0];
      const as = withoutKey(type ?? "of no content type", api_key);
      throw new InvalidModelResponseError(
        `the reply is no JSON: status ${response.status}, ${as}, ${text.length} characters`,
      );
    }
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new InvalidModelResponseError("the reply is nested too deep to be read");
  }
}

/** The call of an embedding model: the conditions and the outcomes of a model call, with a body of its own. */
export interface EmbeddingCall extends Destination {
  readonly model: string;
  readonly texts: readonly string[];
  /** Sent with it, such as `dimensions`; null for nothing. */
  readonly extra_body: Sampling["extra_body"];
}

export async function callEmbeddings(call: EmbeddingCall): Promise<CallOutcome<Embeddings>> {
  const { model, texts, extra_body } = call;
  // Engines differ in what they send unasked: numbers, or bytes in base64.
  const body = { model, input: texts, encoding_format: "float", ...extra_body };
  return await postCall(call, "/embeddings", body, (reply) => readEmbeddings(reply, texts.length));
}
