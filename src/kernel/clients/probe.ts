/**
 * Probes what an endpoint supports: reads its list of models, then requests one completion of two tokens with logprobs,
 * token ids and a tool, as a stream, like every call. A server that refuses an extra with 400 or 422 has generated
 * nothing, and gets a smaller request. If its whole replies report more than its streams, calls request whole replies. If a server gives both ids and logprobs, their exactness is tested below.
 *
 * Invariants. Never throws: a failure is in `error`, as text, and the other fields show how far the probe got. The
 * whole probe has one deadline. Nothing in the result contains the key.
 */
import type { EndpointCapabilities, EngineExactness } from "../../contract/endpoint.ts";
import { LIMITS } from "../../contract/limits.ts";
import { neutralFields, type Sampling } from "../../contract/sampling.ts";
import { readReplyText } from "../../core/rollout/reply-text.ts";
import {
  completionExtras,
  differ,
  firstTokens,
  heedsPenalties,
  type LikelyTokens,
  type ListedModel,
  listedModels,
  scaleOf,
} from "../../core/training/engine-exactness.ts";
import { refusedIn, STREAMS, withoutRefused } from "./adapted-request.ts";
import { LongBodyError, parsedReply } from "./bounded-body.ts";
import { wordsOfError } from "./error-words.ts";
import { ownNetwork, type Send } from "./outgoing.ts";
import type { ReplyReservation } from "./reply-reservation.ts";
import { parsedJson, quotedWords, shortly } from "./reply-words.ts";
import { replyWithoutKey } from "./without-key.ts";

export interface Probe {
  readonly base_url: string;
  readonly api_key: string | null;
  /** How the call leaves the deployment; absent if there is no deployment, as in a test. */
  readonly send?: Send;
  /** Memory and computing time of the organisation that probes, for one reply. */
  readonly openReservation?: (() => ReplyReservation) | undefined;
  /** The model to call; null: the first one listed. */
  readonly model: string | null;
  /** The model of an earlier probe: used if it is listed, or if nothing is. */
  readonly usual: string | null;
  /** Names of what the endpoint is known to refuse in a request. */
  readonly refuses?: readonly string[] | undefined;
  /** The sampling of the training run that needs the probe; absent if there is none. */
  readonly sampling?: Sampling;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly deadline_ms?: number;
}

const DEADLINE_MS = 10_000;
const MODELS_KEPT = 100;

/** The extras of each try, most first. What a server names in a refusal is left out of all later tries. */
const LADDER = [
  { ids: true, tools: true, logprobs: true },
  { ids: true, tools: false, logprobs: true },
  { ids: false, tools: true, logprobs: true },
  { ids: false, tools: false, logprobs: false },
] as const;
type Rung = (typeof LADDER)[number];

const TOOL = {
  type: "function",
  function: {
    name: "noop",
    description: "Does nothing.",
    parameters: { type: "object", properties: {}, required: [], additionalProperties: false },
    strict: true,
  },
};

/** How far a probe got. */
interface Found {
  models: readonly ListedModel[];
  probed_model: string | null;
  supports: Pick<EndpointCapabilities, "chat" | "usage" | "logprobs" | "token_ids" | "tools">;
  refuses: readonly string[];
  exactness: EngineExactness | null;
}

const NOTHING = { chat: false, usage: false, logprobs: false, token_ids: false, tools: false };

export async function probeEndpoint(probe: Probe): Promise<EndpointCapabilities> {
  const found: Found = { models: [], probed_model: null, supports: NOTHING, refuses: [], exactness: null };
  const deadline = probe.deadline_ms ?? DEADLINE_MS;
  const signal = AbortSignal.timeout(deadline);
  try {
    await explore(probe, found, signal);
    return capabilities(probe, found, null);
  } catch (thrown) {
    if (!(thrown instanceof ProbeFailure)) throw thrown;
    const late = `no answer within ${deadline / 1000} s`;
    return capabilities(probe, found, signal.aborted ? late : thrown.message);
  }
}

async function explore(probe: Probe, found: Found, signal: AbortSignal): Promise<void> {
  const listed = await ask(probe, "/models", null, signal);
  // A server may have no list. A server that refuses the key will not answer other requests either.
  if (listed.status === 401 || listed.status === 403) throw refusalOf(listed, probe);
  found.models = listedModels(listed.body);
  found.probed_model = modelOf(probe, found.models);
  if (found.probed_model === null) {
    const messageIn = listed.status === 200 ? "lists no models" : `${listed.status} for GET /models`;
    throw new ProbeFailure(`${messageIn}: set "model" to the one to probe`);
  }
  const { one_logprob_a_token, refuses, ...supports } = await complete(probe, found.probed_model, signal);
  found.supports = supports;
  found.refuses = refuses;
  if (!supports.token_ids || !supports.logprobs) return;
  const { sampling = {} } = probe;
  const asked = { ...probe, model: found.probed_model, sampling };
  const exactness = await probeExactness(asked, signal);
  found.exactness = replyWithoutKey({ one_logprob_a_token, ...exactness }, probe.api_key);
}

function modelOf({ model, usual }: Probe, models: Found["models"]): string | null {
  if (model !== null) return model;
  const known = models.length === 0 || models.some(({ id }) => id === usual);
  return usual !== null && known ? usual : (models[0]?.id ?? null);
}

type Completed = Found["supports"] & Pick<EngineExactness, "one_logprob_a_token"> & Pick<Found, "refuses">;

async function complete(probe: Probe, model: string, signal: AbortSignal): Promise<Completed> {
  const refuses = [...(probe.refuses ?? [])];
  for (const rung of LADDER) {
    const answer = await askWithout(probe, request(model, rung), refuses, signal);
    if (isRefusal(answer) && rung !== LADDER.at(-1)) continue;
    const streamed = supportsOf(answer, rung, probe);
    if (refuses.includes(STREAMS) || !lacks(streamed, rung)) return { ...streamed, refuses };
    const { body } = withoutRefused(request(model, rung), [...refuses, STREAMS]);
    const whole = await ask(probe, "/chat/completions", body, signal);
    const supported = whole.status === 200 ? supportsOf(whole, rung, probe) : streamed;
    if (!reportsMore(supported, streamed)) return { ...streamed, refuses };
    return { ...supported, refuses: [...refuses, STREAMS] };
  }
  return { ...NOTHING, one_logprob_a_token: false, refuses };
}

/** What a reply reports beyond its text. */
const REPORTED = ["usage", "logprobs", "token_ids"] as const;

function lacks(found: Found["supports"], { ids, logprobs }: Rung): boolean {
  return !found.usage || (logprobs && !found.logprobs) || (ids && !found.token_ids);
}

function reportsMore(one: Found["supports"], other: Found["supports"]): boolean {
  return REPORTED.some((name) => one[name] && !other[name]);
}

/**
 * Repeats the request without what the server refuses by name, once for each name. A name is added to `refuses` if the
 * server answers without it.
 */
async function askWithout(
  probe: Probe,
  asked: Readonly<Record<string, unknown>>,
  refuses: string[],
  signal: AbortSignal,
): Promise<Answer> {
  const without = [...refuses];
  for (;;) {
    const { body } = withoutRefused(asked, without);
    const answer = await ask(probe, "/chat/completions", body, signal);
    if (answer.status === 200) refuses.push(...without.slice(refuses.length));
    const refused = refusedIn(body, answer.status, wordsOfError(answer.body, answer.words));
    if (refused === null || without.includes(refused)) return answer;
    without.push(refused);
  }
}

function request(model: string, { ids, tools, logprobs }: Rung): Readonly<Record<string, unknown>> {
  return {
    model,
    messages: [{ role: "user", content: "Hi" }],
    max_tokens: 2,
    ...(logprobs && { logprobs: true }),
    ...(ids && { return_token_ids: true }),
    ...(tools && { tools: [TOOL] }),
    ...{ stream: true, stream_options: { include_usage: true } },
  };
}

function supportsOf(answer: Answer, { tools }: Rung, probe: Probe): Omit<Completed, "refuses"> {
  if (answer.status !== 200) throw refusalOf(answer, probe);
  const extras = completionExtras(answer.body);
  if (extras === null) {
    throw new ProbeFailure("the answer is not a chat completion: does base_url end in /v1?");
  }
  return { chat: true, ...extras, tools };
}

function refusalOf({ status, said }: Answer, { api_key }: Probe): ProbeFailure {
  const after = said === "" ? "" : `: ${said}`;
  if (status === 401 || status === 403) {
    const why = api_key === null ? "an API key is required" : "the API key was rejected";
    return new ProbeFailure(`${status}: ${why}${after}`);
  }
  if (status === 404) return new ProbeFailure(`404 for POST /chat/completions${after}`);
  if (status >= 300 && status < 400) {
    return new ProbeFailure(`${status}: it redirects; use the address it redirects to`);
  }
  return new ProbeFailure(`${status}${after}`);
}

function capabilities(
  { api_key, now }: Probe,
  { models, probed_model, supports, refuses, exactness }: Found,
  error: string | null,
): EndpointCapabilities {
  const asked = models.find(({ id }) => id === probed_model);
  return {
    models: replyWithoutKey(models.slice(0, MODELS_KEPT), api_key).map(({ id }) => id),
    max_model_len: asked?.max_model_len ?? null,
    probed_model: replyWithoutKey(probed_model, api_key),
    ...supports,
    refuses: [...refuses],
    exactness,
    error,
    checked_at: Math.floor(now / 1000),
  };
}

/**
 * One request of a probe. It follows no redirect, so neither the key nor the request reaches an address that was not
 * checked. It reads a bounded reply.
 */
export interface Answer {
  readonly status: number;
  /** Parsed; null if it is not JSON. */
  readonly body: unknown;
  /** What the server says went wrong, short and without the key; empty if it says nothing. */
  readonly said: string;
  /** The whole text of a refusal. */
  readonly words: string;
}

/** Ends the probe, with a message for the user who reads the endpoint. */
class ProbeFailure extends Error {
  override readonly name = "ProbeFailure";
}

type Target = Pick<Probe, "base_url" | "api_key" | "send" | "openReservation">;

/** A GET without a body, a POST with one. Throws ProbeFailure if there is no answer. */
async function ask(target: Target, path: string, body: object | null, signal: AbortSignal): Promise<Answer> {
  const { send = ownNetwork } = target;
  try {
    const url = new URL(target.base_url.replace(/\/+$/, "") + path);
    const response = await send(url, {
      method: body === null ? "GET" : "POST",
      headers: {
        ...(body === null ? {} : { "content-type": "application/json" }),
        ...(target.api_key === null ? {} : { authorization: `Bearer ${target.api_key}` }),
      },
      ...(body === null ? {} : { body: JSON.stringify(body) }),
      signal,
    });
    const { openReservation } = target;
    const bounds = { bytes: LIMITS.completionBytes, whole: true, signal, openReservation };
    return await parsedReply(response, bounds, (text) => {
      const parsed = parsedJson(text, readReplyText);
      const words = response.ok ? "" : text;
      return { status: response.status, body: parsed, said: quotedWords(parsed, target.api_key), words };
    });
  } catch (thrown) {
    if (thrown instanceof LongBodyError) throw new ProbeFailure("the answer is over 4 MiB");
    const reason = shortly(thrown instanceof Error ? thrown.message : String(thrown), target.api_key);
    // This is all that the runtime reports for a name that does not resolve.
    const shown = reason.startsWith("internal error") ? "the host is unknown or unreachable" : reason;
    throw new ProbeFailure(`not reachable: ${shown}`);
  }
}

// Tests an engine's logprobs by requesting one token at a time: whether temperature and penalties affect them, and
// whether a request without sampling fields is sampled neutrally.
//
// The calls ask for the likeliest tokens at one position, after the same prompt. If logprobs are of the distribution
// that is sampled from, halving the temperature doubles every difference between two logprobs; otherwise it changes
// none. A penalty far from 1 moves the tokens of the prompt: one below 1 raises those with a logit above 0, one above 1
// lowers those with a logit below 0. A result is null if it cannot be determined: a reply has too few tokens, all are
// equally likely, or no token of the prompt is listed.

/** The endpoint and model to call, and the sampling that decides which training fields are sent. */
export interface Asked extends Target {
  readonly model: string;
  /** The run's sampling; a null in it removes a field. */
  readonly sampling: Sampling;
}

/** As many as vLLM lists by default. */
const LISTED = 20;
/** vLLM accepts any value above 0; it divides a logit above 0 by it and multiplies one below 0. */
const LIFTING = 0.01;
const SINKING = 100;
const HALF = 0.5;
/** The prompt's own words and digits are the likeliest to follow, so a penalty on them is visible. */
const PROMPT = "Go on: one, two, one, two, one,\n1\n2\n1\n2\n1";
/**
 * Its tokens. Digits on separate lines are single tokens with any tokenizer; the words are with tokenizers that keep
 * words whole.
 */
const IN_PROMPT: ReadonlySet<string> = new Set(["1", "2", "\n", " one", " two", ","]);
const SALT = "rollcall-probe";

async function probeExactness(
  asked: Asked,
  signal: AbortSignal,
): Promise<Omit<EngineExactness, "one_logprob_a_token">> {
  const neutral = neutralFields(asked.sampling, SALT);
  const post = (fields: object) => ask(asked, "/chat/completions", { ...requestOf(asked.model), ...fields }, signal);
  const [warm, cool, lifted, sunk, silent] = await Promise.all([
    post({ ...neutral, temperature: 1 }),
    post({ ...neutral, temperature: HALF }),
    post({ ...neutral, temperature: 1, repetition_penalty: LIFTING }),
    post({ ...neutral, temperature: 1, repetition_penalty: SINKING }),
    post({}),
  ]);
  const first = tokensOf(warm);
  const logprobs_mode = scaleOf(first, tokensOf(cool));
  // Raw logprobs do not show what a penalty does, and a penalty that the run removes does not matter.
  const shown = logprobs_mode === "processed";
  const apart = differ(first, tokensOf(silent));
  return {
    logprobs_mode,
    penalties:
      shown && "repetition_penalty" in neutral
        ? heedsPenalties(first, [tokensOf(lifted), tokensOf(sunk)], IN_PROMPT)
        : null,
    neutral_defaults: shown && apart !== null ? !apart : null,
    refused: isRefusal(warm) ? await askWithoutList(asked, neutral, signal) : null,
  };
}

/** The server may only refuse long lists of logprobs, so the fields are sent without the list. */
async function askWithoutList(asked: Asked, neutral: object, signal: AbortSignal): Promise<string | null> {
  const { top_logprobs: _, ...request } = requestOf(asked.model);
  const answer = await ask(asked, "/chat/completions", { ...request, ...neutral }, signal);
  return isRefusal(answer) ? answer.said || `${answer.status}` : null;
}

function requestOf(model: string) {
  return {
    model,
    messages: [{ role: "user", content: PROMPT }],
    ...{ max_tokens: 1, logprobs: true, top_logprobs: LISTED },
  };
}

function isRefusal({ status }: Answer): boolean {
  return status === 400 || status === 422;
}

function tokensOf({ status, body }: Answer): LikelyTokens {
  return status === 200 ? firstTokens(body) : new Map();
}

/** The probe did not get far enough to know what the endpoint supports. */
export function isSilent({ chat, exactness, error }: EndpointCapabilities): boolean {
  return error !== null && (!chat || exactness === null);
}
