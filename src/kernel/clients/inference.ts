/**
 * Calls of models and of embedding models: requests as the `openai` SDK makes them, and its errors.
 *
 * Invariants. Nothing is retried here. A completion is requested as a stream, so that a proxy on the way sees bytes while
 * the model computes; the reply is the same as a whole one. The time of a call is bounded by its AbortSignal, including
 * its body, and so is the time without a byte. The reply is read within bounds (bounded-body.ts). A call ends with one of the outcomes of `CallOutcome`, and never
 * throws. A reply that broke off is a failure: half a reply must not be used or scored. Nothing in the result contains
 * the key. Token ids, logprobs and the version label that vLLM sends are kept unchanged. Sources: OpenAI's
 * chat-completion objects; vLLM's protocol for the extra fields.
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
import { LIMITS } from "../../contract/limits.ts";
import type { Messages, ToolDefinition, Usage } from "../../contract/messages.ts";
import { isFixedField, type Sampling } from "../../contract/sampling.ts";
import type { ModelResponse } from "../../contract/trajectory.ts";
import { readChatCompletion, usageIn } from "../../core/rollout/chat-completion.ts";
import { errorIn } from "../../core/rollout/reply-error.ts";
import { ReplyReader } from "../../core/rollout/reply-text.ts";
import { cutResponse } from "../../core/rollout/tokens.ts";
import { wireMessage } from "../../core/rollout/wire-message.ts";
import { type Embeddings, readEmbeddings } from "../../core/rubrics/embeddings.ts";
import { type PromptLogprobs, readPromptLogprobs } from "../../core/training/reference.ts";
import { isRefusedBesides, refusedIn, STREAMS, withoutRefused } from "./adapted-request.ts";
import { refusalText, SilentServerError, takeCompletion, unlessSilent } from "./bounded-body.ts";
import { isContextFull } from "./context-full.ts";
import { AddressRefused, type Connection, ownNetwork, type Send, UNLIMITED } from "./outgoing.ts";
import {
  bodyOf,
  failureInside,
  hasPolicyCode,
  isRefusedPrompt,
  messageOf,
  refusalOf,
  retryAfter,
  textOf,
  wordsOfRefusal,
} from "./refusal.ts";
import { refusalKind } from "./refusal-kind.ts";
import type { ReplyReservation } from "./reply-reservation.ts";
import { beginningOf } from "./reply-words.ts";
import { type PromptIds, requestOfIds, withSentIds } from "./token-completion.ts";
import { mayHoldKey, replyWithoutKey, withoutKey } from "./without-key.ts";

/** Where a call goes, and the fields that every call has. */
export interface Destination {
  readonly base_url: string;
  readonly api_key: string | null;
  /** The same for every repeat of this call. */
  readonly idempotency_key: string;
  readonly signal: AbortSignal;
  /** How the call leaves the deployment; absent if there is no deployment, as in a test. */
  readonly send?: Send;
  /** Absent: the call does not share connections with others. */
  readonly connection?: Connection;
  /** Called for each reply. Absent: replies never wait for memory. */
  readonly openReservation?: () => ReplyReservation;
  /** Names of what the endpoint is known to refuse in a request (adapted-request.ts): it is left out. */
  readonly refuses?: readonly string[];
  /** Milliseconds without a byte after which the call is lost; absent: only `signal` ends it. */
  readonly silence_ms?: number;
}

export interface ModelCall extends Destination {
  readonly model: string;
  readonly messages: Messages;
  readonly tools: readonly ToolDefinition[];
  readonly sampling: Sampling;
  /** Maximum tokens of prompt and answer that are kept, if the environment sets it. */
  readonly max_seq_len?: number;
  /** The prompt as token ids, sent instead of the messages. */
  readonly token_prompt?: PromptIds;
}

export type CallOutcome<Response = ModelResponse> =
  /** `whole`: the reply was not streamed, or its headers came late, so the call held its connection most of its time. */
  | { readonly kind: "answered"; readonly response: Response; readonly whole?: true }
  /** The prompt does not fit the model's context: a truncation, not a failure. */
  | { readonly kind: "prompt_too_long" }
  | { readonly kind: "aborted" }
  | {
      readonly kind: "failed";
      readonly error: RolloutError;
      readonly retryable: boolean;
      readonly retry_after_ms: number | null;
      /** The reply's status; absent if no reply came, or if one of status 200 could not be used. */
      readonly status?: number;
      /** The call was sent, and it is unknown whether the endpoint processed it: tokens may have been sampled. */
      readonly lost?: boolean;
      /** The server, or a proxy before it, did not answer in time. */
      readonly late?: boolean;
      /** Usage of an unusable reply, as its endpoint reported it. */
      readonly usage?: Usage;
      /** A sampled reply came that did not report its usage. */
      readonly unmetered?: boolean;
      /** What the endpoint refuses in the request: a call without it may be answered. */
      readonly refuses?: string;
      /** It refuses that only beside another part of this request: other requests may have it. */
      readonly besides?: boolean;
      /** The request was sent without something that the endpoint is known to refuse. */
      readonly changed?: boolean;
    };

/** Statuses of proxies that gave up waiting for the engine: it may have done its work. */
const GAVE_UP_WAITING = [408, 499, 502, 504, 520, 521, 522, 523, 524];

/** Of these, the statuses of proxies whose time for a reply was over; 524 is Cloudflare's. */
const TIMED_OUT = [504, 524];

/** A stream whose headers take longer held its connection for long, as a whole reply does. */
const LATE_HEADERS_MS = 5000;
const USER_AGENT = `OpenAI/JS ${VERSION}`;
/** Sent if there is no key: servers that need none ignore it. */
const NO_KEY = "none";

export async function callModel(call: ModelCall): Promise<CallOutcome> {
  const started = Date.now();
  const { token_prompt } = call;
  const chat = requestBody(call);
  const [path, request] = token_prompt === undefined ? ["/chat/completions", chat] : requestOfIds(chat, token_prompt);
  const asked = { ...request, stream: true, stream_options: { include_usage: true } };
  return await postCall(call, path, asked, (body, streamed) => {
    const response = readChatCompletion(body, Date.now() - started, toolCallIds(call.messages));
    if (streamed) checkIds(response);
    const sent = token_prompt === undefined ? response : withSentIds(response, token_prompt.ids);
    return cutResponse(sent, call.max_seq_len ?? null);
  });
}

/** The stream left out token ids that a whole reply has, or may have left them out. */
class IncompleteStream extends InvalidModelResponseError {}

/**
 * Versions of vLLM send no chunk, and so no ids, for tokens that their tool parser holds back. A sample without them
 * would be trained on wrong tokens.
 */
function checkIds({ completion_ids: ids, usage }: ModelResponse): void {
  if (ids === null) return;
  if (usage === null) throw new IncompleteStream("the stream has token ids, and no usage that says how many there are");
  if (ids.length >= usage.completion_tokens) return;
  throw new IncompleteStream(`the stream has ${ids.length} token ids of ${usage.completion_tokens} sampled tokens`);
}

function toolCallIds(messages: Messages): ReadonlySet<string> {
  return new Set(messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id)));
}

/**
 * Never throws: if `read` rejects an invalid reply, that is an outcome too. A request that is sent with changes is a
 * different request, so it has its own idempotency key.
 */
export async function postCall<Response>(
  where: Destination,
  path: string,
  asked: Readonly<Record<string, unknown>>,
  read: (body: unknown, streamed: boolean) => Response,
): Promise<CallOutcome<Response>> {
  const { body, changes } = withoutRefused(asked, where.refuses ?? []);
  const idempotency_key = [where.idempotency_key, ...changes].join(":");
  let answer: unknown = null;
  const reservation = where.openReservation?.();
  try {
    const { reply, waited } = await post({ ...where, idempotency_key }, path, body);
    const begun = Date.now();
    if (!reply.ok) throw refusalOf(reply, await refusalText(reply, where.silence_ms));
    const { value, streamed } = await replyJson(reply, where, reservation);
    const whole = !streamed || (waited >= LATE_HEADERS_MS && waited > Date.now() - begun);
    answer = value;
    const failed = errorIn(answer);
    if (failed !== null) throw failureInside(failed, reply.headers);
    const response = read(answer, streamed);
    // Joining parts of the response may produce the key.
    const shown = withoutKeyIn(response, () => JSON.stringify(response), where.api_key);
    return { kind: "answered", response: shown, ...(whole && { whole: true }) };
  } catch (thrown) {
    const outcome = classify(thrown, where);
    if (outcome.kind !== "failed") return outcome;
    const failed = withTaken(outcome, answer);
    return { ...failed, ...adaptation(thrown, failed, { body, changes }) };
  } finally {
    reservation?.leave();
  }
}

type Failed = Extract<CallOutcome, { kind: "failed" }>;

/** Whether another form of the request may be answered. */
function adaptation(
  thrown: unknown,
  { usage, lost }: Failed,
  { body, changes }: ReturnType<typeof withoutRefused>,
): Pick<Failed, "refuses" | "besides" | "changed"> {
  if (thrown instanceof IncompleteStream) return { refuses: STREAMS };
  // If tokens were used or may have been, a repeat would cost again; a prompt that was refused would be refused again.
  const took = usage !== undefined || lost === true;
  if (!(thrown instanceof APIError) || took || isRefusedPrompt(thrown)) return {};
  const words = wordsOfRefusal(thrown);
  const refuses = refusedIn(body, thrown.status ?? 0, words);
  const besides = refuses !== null && isRefusedBesides(body, refuses, words);
  return {
    ...(refuses !== null && { refuses }),
    ...(besides && { besides }),
    ...(changes.length > 0 && { changed: true }),
  };
}

/** Adds the usage of a reply that could not be used. `answer`: null if no reply came. */
function withTaken({ lost, ...failed }: Failed, answer: unknown): Failed {
  const usage = usageIn(answer);
  if (usage !== null) return { ...failed, usage };
  // A server that fails inside a reply may have sampled a part of it.
  const unknown = lost === true || (answer !== null && (failed.status ?? 500) >= 500);
  return unknown ? { ...failed, lost: true, ...(answer !== null && { unmetered: true }) } : failed;
}

/** `waited`: milliseconds from the departure to the headers. */
async function post(
  { base_url, api_key, idempotency_key, signal, send = ownNetwork, connection = UNLIMITED, silence_ms }: Destination,
  path: string,
  body: Readonly<Record<string, unknown>>,
): Promise<{ readonly reply: Response; readonly waited: number }> {
  const url = new URL(base_url.replace(/\/+$/, "") + path);
  const headers = {
    accept: "application/json",
    "content-type": "application/json",
    "user-agent": USER_AGENT,
    authorization: `Bearer ${api_key ?? NO_KEY}`,
    "idempotency-key": idempotency_key,
  };
  const silent = new AbortController();
  const within = AbortSignal.any([signal, silent.signal]);
  let left = 0;
  // The server is silent from here on: the wait for a connection is not its fault.
  const leave = () => {
    left = Date.now();
    const reply = send(url, { method: "POST", headers, body: JSON.stringify(body), signal: within });
    return silence_ms === undefined ? reply : unlessSilent(reply, silence_ms);
  };
  try {
    const reply = await connection.request(leave, signal);
    return { reply, waited: Date.now() - left };
  } catch (thrown) {
    if (thrown instanceof SilentServerError) silent.abort();
    else if (!(thrown instanceof AddressRefused)) throw notConnected(thrown);
    throw thrown;
  }
}

/** The SDK's error: the texts of runtimes about a failed connection differ. */
function notConnected(thrown: unknown): APIError {
  const cause = thrown instanceof Error ? thrown : new Error(String(thrown));
  const late = cause.name === "AbortError" || /timed? ?out/i.test(`${cause} ${cause.cause ?? ""}`);
  return late ? new APIConnectionTimeoutError() : new APIConnectionError({ cause });
}

/** The parts of a call that its body is made from. */
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

/** The run pays for the model it names, so `extra_body` may change neither the model nor the messages. */
function withoutFixed(extra_body: Sampling["extra_body"]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(extra_body ?? {}).filter(([field]) => !isFixedField(field)));
}

function classify(thrown: unknown, { signal, api_key }: Destination): CallOutcome<never> {
  if (signal.aborted) return { kind: "aborted" };
  if (thrown instanceof InvalidModelResponseError) return { ...failure(thrown, true, null), lost: true };
  if (thrown instanceof PolicyRefusalError) return { ...failure(thrown, false, null), lost: true };
  const message = withoutKey(messageOf(thrown), api_key);
  const error = new ModelError(message);
  if (thrown instanceof SilentServerError) return { ...failure(error, true, null), lost: true, late: true };
  if (thrown instanceof AddressRefused) return failure(error, false, null);
  // The connection failed, or a body broke off.
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
  // A gateway may return a policy refusal with a status of its own.
  const retryable = mayPass && !hasPolicyCode(thrown);
  return { ...failure(error, retryable, retryAfter(thrown.headers)), status, ...ofWaiting(status) };
}

function ofWaiting(status: number): Pick<Failed, "lost" | "late"> {
  return { ...(GAVE_UP_WAITING.includes(status) && { lost: true }), ...(TIMED_OUT.includes(status) && { late: true }) };
}

function failure(error: RolloutError, retryable: boolean, retry_after_ms: number | null): Failed {
  return { kind: "failed", error, retryable, retry_after_ms };
}

// The body of a reply as JSON. A parser's message about invalid JSON quotes a part of the text, which may be part of a
// key that the server repeats. So it is never shown: the errors here quote the beginning of the reply without the key.
// A stream is not quoted: the pieces of a key may be in several events.

/** The parsed reply, without the key of the call. Throws `InvalidModelResponseError` if it is not JSON. */
async function replyJson(
  response: Response,
  { api_key, signal, silence_ms }: Destination,
  reservation?: ReplyReservation,
): Promise<{ readonly value: unknown; readonly streamed: boolean }> {
  const reader = new ReplyReader();
  let characters = 0;
  /** Characters that are parsed without a scheduling turn so far. */
  let unturned = 0;
  const turn = async () => {
    const next = reservation?.turn(unturned) ?? null;
    if (next === null) return;
    unturned = 0;
    await next;
  };
  const take = (piece: string) => {
    characters += piece.length;
    reader.take(piece);
    return reader.isDone;
  };
  const mostKept = reservation?.most ?? LIMITS.streamedCharacters;
  const grow = async (piece: string, stated: number | null) => {
    unturned += piece.length;
    const kept = reader.kept + piece.length;
    if (kept > mostKept) throw new InvalidModelResponseError("the reply needs too much memory");
    const [wanted, most] = reader.isStream ? [kept, mostKept] : [stated ?? kept, stated ?? LIMITS.completionBytes];
    await reservation?.grow(wanted, most, signal);
    // A stream is parsed while it arrives, a whole reply at its end.
    if (reader.isStream) await turn();
  };
  await takeCompletion(response, { take, grow, isStream: () => reader.isStream }, silence_ms);
  await turn();
  try {
    const reply = reader.end();
    const value = withoutKeyIn(reply, () => reader.plainText ?? JSON.stringify(reply), api_key);
    return { value, streamed: reader.isStream };
  } catch (thrown) {
    if (thrown instanceof SyntaxError) {
      const type = /^[\w.+/-]{1,80}/.exec(response.headers.get("content-type") ?? "")?.[0];
      const as = withoutKey(type ?? "without a content type", api_key);
      const facts = `status ${response.status}, ${as}, ${characters} characters`;
      const quote = beginningOf(reader.plainText ?? "", api_key);
      throw new InvalidModelResponseError(`the reply is not JSON: ${facts}${quote === "" ? "" : `: ${quote}`}`);
    }
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new InvalidModelResponseError("the reply is nested too deeply");
  }
}

function withoutKeyIn<T>(value: T, textOf: () => string, api_key: string | null): T {
  return mayHoldKey(textOf, api_key) ? replyWithoutKey(value, api_key) : value;
}

/** A call of an embedding model: conditions and outcomes of a model call, with a different body. */
export interface EmbeddingCall extends Destination {
  readonly model: string;
  readonly texts: readonly string[];
  /** Sent with it, such as `dimensions`; null for nothing. */
  readonly extra_body: Sampling["extra_body"];
}

export async function callEmbeddings(call: EmbeddingCall): Promise<CallOutcome<Embeddings>> {
  const { model, texts, extra_body } = call;
  // Engines differ in what they send by default: numbers, or bytes in base64.
  const body = { encoding_format: "float", ...withoutFixed(extra_body), model, input: texts };
  return await postCall(call, "/embeddings", body, (reply) => readEmbeddings(reply, texts.length));
}

/** A call that returns the logprobs of given tokens, as vLLM computes them for a prompt. Nothing is sampled with them. */
export interface LogprobsCall extends Destination {
  readonly model: string;
  /** At least two. */
  readonly token_ids: Int32Array;
}

export async function callPromptLogprobs({
  model,
  token_ids,
  ...where
}: LogprobsCall): Promise<CallOutcome<PromptLogprobs>> {
  const body = { model, prompt: Array.from(token_ids), max_tokens: 1, temperature: 1, prompt_logprobs: 1 };
  return await postCall(where, "/completions", body, (reply) => readPromptLogprobs(reply, token_ids, usageIn(reply)));
}
