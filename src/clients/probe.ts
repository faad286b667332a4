/**
 * What an endpoint supports, found out by asking it once: its list of models, then one completion of two tokens that asks
 * for logprobs, token ids and a tool. A server that refuses an extra with 400 or 422 has generated nothing and is asked
 * again with less. One that gives both ids and logprobs is asked how exact they are (`probe-exactness.ts`).
 *
 * Invariants. Never throws: what went wrong is `error`, in words, and the rest says how far it got. All of it has one
 * deadline. Nothing of what comes back holds the key.
 */
import type { EndpointCapabilities, EngineExactness } from "../contract/endpoint.ts";
import type { Sampling } from "../contract/sampling.ts";
import { completionExtras, type ListedModel, listedModels } from "../core/probe-replies.ts";
import { probeExactness } from "./probe-exactness.ts";
import { type Answer, ask, ProbeFailure } from "./probe-request.ts";
import { replyWithoutKey } from "./without-key.ts";

export interface Probe {
  readonly base_url: string;
  readonly api_key: string | null;
  /** The model to ask; null: the first that is listed. */
  readonly model: string | null;
  /** Asked where it is listed, or nothing is: the one an earlier probe asked. */
  readonly usual: string | null;
  /** Of the training run it is asked for; absent: of none. */
  readonly sampling?: Sampling;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly deadline_ms?: number;
}

const DEADLINE_MS = 10_000;
const MODELS_KEPT = 100;

/** What is asked beyond a plain completion, most first. */
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
    parameters: { type: "object", properties: {} },
  },
};

/** How far a probe got. */
interface Found {
  models: readonly ListedModel[];
  probed_model: string | null;
  supports: Pick<EndpointCapabilities, "chat" | "usage" | "logprobs" | "token_ids" | "tools">;
  exactness: EngineExactness | null;
}

const NOTHING = { chat: false, usage: false, logprobs: false, token_ids: false, tools: false };

export async function probeEndpoint(probe: Probe): Promise<EndpointCapabilities> {
  const found: Found = { models: [], probed_model: null, supports: NOTHING, exactness: null };
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
  if (listed.status === 401 || listed.status === 403) throw refused(listed, probe);
  found.models = listedModels(listed.body);
  found.probed_model = modelOf(probe, found.models);
  if (found.probed_model === null) {
    const said = listed.status === 200 ? "lists no models" : `${listed.status} for GET /models`;
    throw new ProbeFailure(`${said}: name one in "model" to have it asked`);
  }
  const { one_logprob_a_token, ...supports } = await complete(probe, found.probed_model, signal);
  found.supports = supports;
  if (!supports.token_ids || !supports.logprobs) return;
  const { base_url, api_key, sampling = {} } = probe;
  const asked = { base_url, api_key, model: found.probed_model, sampling };
  const exactness = await probeExactness(asked, signal);
  found.exactness = replyWithoutKey({ one_logprob_a_token, ...exactness }, api_key);
}

function modelOf({ model, usual }: Probe, models: Found["models"]): string | null {
  if (model !== null) return model;
  const known = models.length === 0 || models.some(({ id }) => id === usual);
  return usual !== null && known ? usual : (models[0]?.id ?? null);
}

type Completed = Found["supports"] & Pick<EngineExactness, "one_logprob_a_token">;

async function complete(probe: Probe, model: string, signal: AbortSignal): Promise<Completed> {
  for (const rung of LADDER) {
    const answer = await ask(probe, "/chat/completions", request(model, rung), signal);
    const tooMuch = answer.status === 400 || answer.status === 422;
    if (!tooMuch || rung === LADDER.at(-1)) return supportsOf(answer, rung, probe);
  }
  return { ...NOTHING, one_logprob_a_token: false };
}

function request(model: string, { ids, tools, logprobs }: Rung): object {
  return {
    model,
    messages: [{ role: "user", content: "Hi" }],
    max_tokens: 2,
    ...(logprobs && { logprobs: true }),
    ...(ids && { return_token_ids: true }),
    ...(tools && { tools: [TOOL] }),
  };
}

function supportsOf(answer: Answer, { tools }: Rung, probe: Probe): Completed {
  if (answer.status !== 200) throw refused(answer, probe);
  const extras = completionExtras(answer.body);
  if (extras === null) {
    throw new ProbeFailure("answers, but with no chat completion: does base_url end in /v1?");
  }
  return { chat: true, ...extras, tools };
}

function refused({ status, said }: Answer, { api_key }: Probe): ProbeFailure {
  const after = said === "" ? "" : `: ${said}`;
  if (status === 401 || status === 403) {
    const why = api_key === null ? "a key is needed" : "the key was refused";
    return new ProbeFailure(`${status}: ${why}${after}`);
  }
  if (status === 404) return new ProbeFailure(`404 for POST /chat/completions${after}`);
  if (status >= 300 && status < 400) {
    return new ProbeFailure(`${status}: leads elsewhere; give the address it leads to`);
  }
  return new ProbeFailure(`${status}${after}`);
}

function capabilities(
  { api_key, now }: Probe,
  { models, probed_model, supports, exactness }: Found,
  error: string | null,
): EndpointCapabilities {
  const asked = models.find(({ id }) => id === probed_model);
  return {
    models: replyWithoutKey(models.slice(0, MODELS_KEPT), api_key).map(({ id }) => id),
    max_model_len: asked?.max_model_len ?? null,
    probed_model: replyWithoutKey(probed_model, api_key),
    ...supports,
    exactness,
    error,
    checked_at: Math.floor(now / 1000),
  };
}
