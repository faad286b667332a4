/**
 * What can be proven of an engine's logprobs by asking it for one token at a time: whether temperature and penalties are in them, and
 * whether a request that says nothing is sampled neutrally.
 *
 * The calls ask for the likeliest tokens at one place, after the same prompt. Halving the temperature doubles every difference between
 * two logprobs, where they are of the distribution that is sampled from, and changes none where they are not. A penalty far from 1
 * moves the tokens of the prompt: one below lifts those with a logit above 0, one above sinks those with a logit below. What cannot be told, since
 * a reply has too few tokens, all are as likely, or none of the prompt is listed, is null.
 */
import type { EngineExactness } from "../contract/endpoint.ts";
import { neutralFields, type Sampling } from "../contract/sampling.ts";
import { firstTokens, type LikelyTokens } from "../core/probe-replies.ts";
import { differ, heedsPenalties, scaleOf } from "../core/training/engine-exactness.ts";
import { type Answer, ask } from "./probe-request.ts";

/** Who is asked, and what of the fields of training it is not to be sent. */
export interface Asked {
  readonly base_url: string;
  readonly api_key: string | null;
  readonly model: string;
  /** Of the run; a null in it takes a field back. */
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
/** Its tokens: digits on lines of their own stay what they are with any tokenizer, the words with those that leave words whole. */
const IN_PROMPT: ReadonlySet<string> = new Set(["1", "2", "\n", " one", " two", ","]);
const SALT = "rollcall-probe";

export async function probeExactness(
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
    refused: isRefusal(warm) ? await refusedWithoutList(asked, neutral, signal) : null,
  };
}

/** A server may only be sparing with lists: of the fields themselves it is asked alone. */
async function refusedWithoutList(asked: Asked, neutral: object, signal: AbortSignal): Promise<string | null> {
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
