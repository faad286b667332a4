/**
 * What an endpoint supports, found out by asking it once: its list of models, then one completion of two tokens that
 * asks for logprobs, token ids and a tool. A server that refuses an extra with 400 or 422 has generated nothing and is
 * asked again with less. One that gives both ids and logprobs is asked how exact they are, below.
 *
 * Invariants. Never throws: what went wrong is `error`, in words, and the rest says how far it got. All of it has one
 * deadline. Nothing of what comes back holds the key.
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
import { refusedIn, withoutRefused } from "./adapted-request.ts";
import { LongBodyError, wholeText } from "./bounded-body.ts";
import { saidInError } from "./error-words.ts";
import { ownNetwork, type Send } from "./outgoing.ts";
import { parsedJson, saidIn, shortly } from "./reply-words.ts";
import { replyWithoutKey } from "./without-key.ts";

export interface Probe {
  readonly base_url: string;
  readonly api_key: string | null;
  /** The deployment's way out; absent where there is no deployment, as in a test. */
  readonly send?: Send;
  /** The model to ask; null: the first that is listed. */
  readonly model: string | null;
  /** Asked where it is listed, or nothing is: the one an earlier probe asked. */
  readonly usual: string | null;
  /** What of a request it is known to refuse. */
  readonly refuses?: readonly string[] | undefined;
  /** The sampling of the training run that asks; absent where none does. */
  readonly sampling?: Sampling;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly deadline_ms?: number;
}

const DEADLINE_MS = 10_000;
const MODELS_KEPT = 100;

/** What is asked beyond a plain completion, most first. What a server names in its refusal is left out of all of them. */
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
  // A server may do without a list; one that refuses the key will not answer anything else either.
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
    if (!isRefusal(answer) || rung === LADDER.at(-1)) return { ...supportsOf(answer, rung, probe), refuses };
  }
  return { ...NOTHING, one_logprob_a_token: false, refuses };
}

/**
 * Asks again without what the server refuses by name, once for each such thing. What it was is added to `refuses` if the
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
    const refused = refusedIn(body, answer.status, saidInError(answer.body, answer.words));
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
 * One request of a probe. It follows no redirect, so that neither the key nor the request ends up at another address
 * than the one that was checked, and reads no more than it was prepared for.
 */
export interface Answer {
  readonly status: number;
  /** Parsed; null when it is no JSON. */
  readonly body: unknown;
  /** What the server says went wrong, short and without the key; empty when it says nothing. */
  readonly said: string;
  /** All that it says of a refusal. */
  readonly words: string;
}

/** The end of a probe, in words for whoever reads the endpoint. */
class ProbeFailure extends Error {
  override readonly name = "ProbeFailure";
}

type Target = Pick<Probe, "base_url" | "api_key" | "send">;

/** A GET without a body, a POST with one. Throws ProbeFailure when no answer can be had. */
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
    const text = await wholeText(response, LIMITS.completionBytes);
    const parsed = parsedJson(text, readReplyText);
    const words = response.ok ? "" : text;
    return { status: response.status, body: parsed, said: saidIn(parsed, target.api_key), words };
  } catch (thrown) {
    if (thrown instanceof LongBodyError) throw new ProbeFailure("the answer is over 4 MiB");
    const reason = shortly(thrown instanceof Error ? thrown.message : String(thrown), target.api_key);
    // The runtime says no more than this of a name that no resolver knows.
    const told = reason.startsWith("internal error") ? "the host is unknown or unreachable" : reason;
    throw new ProbeFailure(`not reachable: ${told}`);
  }
}

// What can be proven of an engine's logprobs by asking it for one token at a time: whether temperature and penalties
// are in them, and whether a request that says nothing is sampled neutrally.
//
// The calls ask for the likeliest tokens at one place, after the same prompt. Halving the temperature doubles every
// difference between two logprobs, where they are of the distribution that is sampled from, and changes none where they
// are not. A penalty far from 1 moves the tokens of the prompt: one below lifts those with a logit above 0, one above
// sinks those with a logit below. What cannot be told, since a reply has too few tokens, all are as likely, or none of
// the prompt is listed, is null.

/** Who is asked, and what of the fields of training it is not to be sent. */
export interface Asked extends Target {
  readonly model: string;
  /** The run's sampling; a null in it takes a field back. */
  readonly sampling: Sampling;
}

/** As many as vLLM lists where nobody says otherwise. */
const LISTED = 20;
/** vLLM takes anything above 0, divides a logit above 0 by it and multiplies one below. */
const LIFTING = 0.01;
const SINKING = 100;
const HALF = 0.5;
/** Its own words and digits are the likeliest to follow: a penalty on them shows. */
const PROMPT = "Go on: one, two, one, two, one,\n1\n2\n1\n2\n1";
/**
 * Its tokens: digits on lines of their own stay what they are with any tokenizer, the words with those that leave words
 * whole.
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
  // Raw logprobs do not show what a penalty does, and one that is taken back is nobody's.
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

/** A server may only be sparing with lists: of the fields themselves it is asked alone. */
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

/** It did not come as far as saying what it supports. */
export function isSilent({ chat, exactness, error }: EndpointCapabilities): boolean {
  return error !== null && (!chat || exactness === null);
}
