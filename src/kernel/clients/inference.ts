/**
 * The model call, and that of an embedding model: a request as the `openai` SDK makes it, and its errors.
 *
 * Invariants. Nothing is tried again here. The call's time is its AbortSignal, for the body as well, and its reply is
 * read within bounds (bounded-body.ts). A call has one of the outcomes of `CallOutcome`, and never throws. A reply that was
 * broken off is none: half a reply must not be played on with or scored. Nothing of what comes back holds the key. Token ids, logprobs and the version label that vLLM sends are kept verbatim when present. Sources:
 * OpenAI's chat-completion objects; vLLM's protocol for the extra fields.
 */
import { APIConnectionError, APIConnectionTimeoutError, APIError } from "openai/core/error";
import { VERSION } from "openai/version";
import {
  AuthenticationError,
  InvalidModelResponseError,
  ModelError,
  PermissionDeniedError,
  PolicyRefusalError,
  type RolloutError,
} from "../../contract/errors.ts";
import { parseExactJson } from "../../contract/exact-json.ts";
import { isRecord } from "../../contract/json.ts";
import type { Message, Messages, ToolCall, ToolDefinition, Usage } from "../../contract/messages.ts";
import { isFixedField, type Sampling } from "../../contract/sampling.ts";
import type { ModelResponse } from "../../contract/trajectory.ts";
import { REASONING, readChatCompletion, usageIn } from "../../core/rollout/chat-completion.ts";
import { errorIn } from "../../core/rollout/reply-error.ts";
import { ReplyReader } from "../../core/rollout/reply-text.ts";
import { cutResponse } from "../../core/rollout/tokens.ts";
import { type Embeddings, readEmbeddings } from "../../core/rubrics/embeddings.ts";
import { refusedIn, withoutRefused } from "./adapted-request.ts";
import { refusalText, takeCompletion } from "./bounded-body.ts";
import { isContextFull } from "./context-full.ts";
import { AddressRefused, ownNetwork, type Send } from "./outgoing.ts";
import {
  bodyOf,
  failureInside,
  hasPolicyCode,
  isRefusedPrompt,
  jsonIn,
  messageOf,
  refusalOf,
  retryAfter,
  saidBy,
  textOf,
} from "./refusal.ts";
import { refusalKind } from "./refusal-kind.ts";
import type { ReplyRoom } from "./reply-room.ts";
import { mayHoldKey, replyWithoutKey, withoutKey } from "./without-key.ts";

/** Where a call goes, and what every call has. */
export interface Destination {
  readonly base_url: string;
  readonly api_key: string | null;
  /** The same for every re-send of this call. */
  readonly idempotency_key: string;
  readonly signal: AbortSignal;
  /** The deployment's way out; absent where there is no deployment, as in a test. */
  readonly send?: Send;
  /** Called for each reply. Absent: replies never wait. */
  readonly openRoom?: () => ReplyRoom;
  /** What of a request the endpoint is known to refuse (adapted-request.ts): it is left out. */
  readonly refuses?: readonly string[];
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
      /** It left, and nobody knows what its endpoint made of it: tokens may have been sampled. */
      readonly lost?: boolean;
      /** What an unusable reply took, as its endpoint counted it. */
      readonly usage?: Usage;
      /** A reply came that was sampled and says nothing about what it took. */
      readonly unmetered?: boolean;
      /** What of the request the endpoint refuses: a call without it may be answered. */
      readonly refuses?: string;
      /** The request was sent without something that the endpoint is known to refuse. */
      readonly changed?: boolean;
    };

/** Said by whoever stands before the engine, and gave up waiting for it: it may have done its work. */
const GAVE_UP_WAITING = [408, 499, 502, 504, 520, 521, 522, 523, 524];

const USER_AGENT = `OpenAI/JS ${VERSION}`;
/** Sent where there is no key: servers that want none ignore it. */
const NO_KEY = "none";

export async function callModel(call: ModelCall): Promise<CallOutcome> {
  const started = Date.now();
  return await postCall(call, "/chat/completions", requestBody(call), (body) => {
    const response = readChatCompletion(body, Date.now() - started, toolCallIds(call.messages));
    return cutResponse(response, call.max_seq_len ?? null);
  });
}

function toolCallIds(messages: Messages): ReadonlySet<string> {
  return new Set(messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id)));
}

/**
 * Never throws: what `read` throws, of a reply that is none, is an outcome as well. A request that is not sent as it is
 * asked for is another one, with an idempotency key of its own.
 */
async function postCall<Response>(
  where: Destination,
  path: string,
  asked: Readonly<Record<string, unknown>>,
  read: (body: unknown) => Response,
): Promise<CallOutcome<Response>> {
  const { body, changes } = withoutRefused(asked, where.refuses ?? []);
  const idempotency_key = [where.idempotency_key, ...changes].join(":");
  let answer: unknown = null;
  const room = where.openRoom?.();
  try {
    const reply = await post({ ...where, idempotency_key }, path, body);
    if (!reply.ok) throw refusalOf(reply, await refusalText(reply));
    answer = await replyJson(reply, where, room);
    const failed = errorIn(answer);
    if (failed !== null) throw failureInside(failed, reply.headers);
    const response = read(answer);
    // Parts of it that were joined may make the key whole.
    return { kind: "answered", response: withoutKeyIn(response, () => JSON.stringify(response), where.api_key) };
  } catch (thrown) {
    const outcome = classify(thrown, where);
    if (outcome.kind !== "failed") return outcome;
    const failed = withTaken(outcome, answer);
    // What took tokens, or may have taken some, would be paid again, and what was refused for its words refused again.
    const took = failed.usage !== undefined || failed.lost === true;
    if (!(thrown instanceof APIError) || took || isRefusedPrompt(thrown)) return failed;
    const refuses = refusedIn(body, thrown.status ?? 0, saidBy(thrown));
    return { ...failed, ...(refuses !== null && { refuses }), ...(changes.length > 0 && { changed: true }) };
  } finally {
    room?.leave();
  }
}

type Failed = Extract<CallOutcome, { kind: "failed" }>;

/** What a reply took that could not be used. `answer`: null where none came. */
function withTaken({ lost, ...failed }: Failed, answer: unknown): Failed {
  const usage = usageIn(answer);
  if (usage !== null) return { ...failed, usage };
  // A server that fails within a reply may have sampled a part of it.
  const unknown = lost === true || (answer !== null && (failed.status ?? 500) >= 500);
  return unknown ? { ...failed, lost: true, ...(answer !== null && { unmetered: true }) } : failed;
}

async function post(
  { base_url, api_key, idempotency_key, signal, send = ownNetwork }: Destination,
  path: string,
  body: Readonly<Record<string, unknown>>,
): Promise<Response> {
  const url = new URL(base_url.replace(/\/+$/, "") + path);
  const headers = {
    accept: "application/json",
    "content-type": "application/json",
    "user-agent": USER_AGENT,
    authorization: `Bearer ${api_key ?? NO_KEY}`,
    "idempotency-key": idempotency_key,
  };
  try {
    return await send(url, { method: "POST", headers, body: JSON.stringify(body), signal });
  } catch (thrown) {
    throw thrown instanceof AddressRefused ? thrown : notConnected(thrown);
  }
}

/** In the SDK's words; what a runtime says of a connection differs from one to the next. */
function notConnected(thrown: unknown): APIError {
  const cause = thrown instanceof Error ? thrown : new Error(String(thrown));
  const late = cause.name === "AbortError" || /timed? ?out/i.test(`${cause} ${cause.cause ?? ""}`);
  return late ? new APIConnectionTimeoutError() : new APIConnectionError({ cause });
}

/** As much of a call as its body is made of. */
export type AskedOfModel = Pick<ModelCall, "model" | "messages" | "tools" | "sampling">;

export function requestBody(call: AskedOfModel): Record<string, unknown> {
  const { extra_body, ...asked } = call.sampling;
  const sampling = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== null));
  return {
    ...(call.tools.length > 0 ? { tools: call.tools } : {}),
    ...sampling,
    ...withoutFixed(extra_body),
    model: call.model,
    messages: call.messages.map(wireMessage),
  };
}

/** What is paid for is what the run names: `extra_body` changes neither the model nor what it is sent. */
function withoutFixed(extra_body: Sampling["extra_body"]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(extra_body ?? {}).filter(([field]) => !isFixedField(field)));
}

/** `text` is ours (a bare string); endpoints know it as `user`. And they refuse a list without any part. */
function wireMessage(message: Message): Record<string, unknown> {
  const role = message.role === "text" ? "user" : message.role;
  const empty = Array.isArray(message.content) && message.content.length === 0;
  const { thinking_blocks: _, provider_fields, reasoning_name, reasoning_content, tool_calls, ...sent } = message;
  const fields = fieldsIn(provider_fields);
  const thoughts = REASONING.some((name) => name in fields) ? undefined : reasoning_content;
  return {
    ...fields,
    ...sent,
    ...(thoughts !== undefined && { [reasoning_name ?? "reasoning_content"]: thoughts }),
    ...(tool_calls !== undefined && { tool_calls: tool_calls.map(wireCall) }),
    role,
    ...(empty && { content: "" }),
  };
}

/** A tool call with what its server sent beside it. */
function wireCall({ provider_fields, function: called, ...call }: ToolCall): Record<string, unknown> {
  const { function: within, ...beside } = fieldsIn(provider_fields);
  return { ...beside, ...call, function: { ...(isRecord(within) && within), ...called } };
}

/** Members as a server sent them, with the digits of their numbers. What an environment broke has none. */
function fieldsIn(text: string | undefined): Readonly<Record<string, unknown>> {
  const fields = text === undefined ? null : jsonIn(text, parseExactJson);
  return isRecord(fields) ? fields : {};
}

function classify(thrown: unknown, { signal, api_key }: Destination): CallOutcome<never> {
  if (signal.aborted) return { kind: "aborted" };
  if (thrown instanceof InvalidModelResponseError) return { ...failure(thrown, true, null), lost: true };
  if (thrown instanceof PolicyRefusalError) return { ...failure(thrown, false, null), lost: true };
  const message = withoutKey(messageOf(thrown), api_key);
  const error = new ModelError(message);
  if (thrown instanceof AddressRefused) return failure(error, false, null);
  // The connection, or a body that broke off.
  if (!(thrown instanceof APIError)) return { ...failure(error, true, null), lost: true };
  const { status } = thrown;
  if (status === undefined) return { ...failure(error, true, null), lost: true };
  const text = textOf(thrown);
  if (isContextFull({ status, body: bodyOf(thrown), text })) return { kind: "prompt_too_long" };
  const refusal = refusalKind({ status, content_type: thrown.headers?.get("content-type") ?? null, text });
  if (refusal === "key_refused") return { ...failure(new AuthenticationError(message), false, null), status };
  if (refusal === "forbidden") return { ...failure(new PermissionDeniedError(message), false, null), status };
  if (status >= 300 && status < 400) {
    const moved = `${status}: the endpoint redirects; use the address it redirects to`;
    return failure(new ModelError(moved), false, null);
  }
  const mayPass = status === 408 || status === 409 || status === 429 || status >= 500;
  // A gateway may hide a policy behind a status of its own.
  const retryable = mayPass && !hasPolicyCode(thrown);
  const lost = GAVE_UP_WAITING.includes(status) ? { lost: true } : {};
  return { ...failure(error, retryable, retryAfter(thrown.headers)), status, ...lost };
}

function failure(error: RolloutError, retryable: boolean, retry_after_ms: number | null): Failed {
  return { kind: "failed", error, retryable, retry_after_ms };
}

// The body of a reply as JSON. What a parser says of a text that is none quotes a piece of it, and the piece may be of
// a key that the server repeats: these are facts about the reply, never its words.

/** Parsed, and without the key it was asked with. Throws `InvalidModelResponseError` for what is no JSON. */
async function replyJson(response: Response, { api_key, signal }: Destination, room?: ReplyRoom): Promise<unknown> {
  const reader = new ReplyReader();
  let characters = 0;
  const take = (piece: string) => {
    characters += piece.length;
    reader.take(piece);
  };
  await takeCompletion(response, take, room && ((length, most) => room.grow(length, most, signal)));
  await room?.turn(characters);
  try {
    const reply = reader.end();
    return withoutKeyIn(reply, () => reader.plainText ?? JSON.stringify(reply), api_key);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) {
      const type = /^[\w.+/-]{1,80}/.exec(response.headers.get("content-type") ?? "")?.[0];
      const as = withoutKey(type ?? "without a content type", api_key);
      throw new InvalidModelResponseError(
        `the reply is not JSON: status ${response.status}, ${as}, ${characters} characters`,
      );
    }
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new InvalidModelResponseError("the reply is nested too deeply");
  }
}

function withoutKeyIn<T>(value: T, textOf: () => string, api_key: string | null): T {
  return mayHoldKey(textOf, api_key) ? replyWithoutKey(value, api_key) : value;
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
  const body = { encoding_format: "float", ...withoutFixed(extra_body), model, input: texts };
  return await postCall(call, "/embeddings", body, (reply) => readEmbeddings(reply, texts.length));
}
