/** A request's sampling fields, with vLLM's defaults where they are absent, checked against the model's context. */
import type { GenerationRequest } from "./generation.ts";
import { ToolGrammar } from "./hermes.ts";
import { type ChatRequest, type CompletionRequest, RequestError, type ServingOptions } from "./request-schemas.ts";

type FromPlan = Omit<GenerationRequest, "prompt" | "maxTokens" | "topLogprobs" | "signal" | "onToken">;

/** What all choices of a request are sampled by; the seed is the first one's. */
export interface SamplingPlan extends FromPlan {
  readonly choices: number;
  /** Null: the rest of the context. */
  readonly maxTokens: number | null;
  readonly stops: readonly string[];
  /** The text that ended a choice stays in it. */
  readonly keepStop: boolean;
  /** Alternatives beside the sampled token; null = no logprobs in the answer. */
  readonly topLogprobs: number | null;
}

/** vLLM's default for a plain completion; OpenAI's too. */
const COMPLETION_TOKENS = 16;

export function chatPlan(request: ChatRequest, serving: ServingOptions): SamplingPlan {
  const { logprobs, top_logprobs: top } = request;
  if (top && !logprobs) {
    throw new RequestError(400, "top_logprobs: set logprobs to true as well", "top_logprobs");
  }
  return planOf(request, serving, {
    maxTokens: request.max_completion_tokens ?? request.max_tokens ?? null,
    topLogprobs: logprobs ? (top ?? 0) : null,
    grammar: grammarOf(request, serving),
  });
}

export function completionPlan(request: CompletionRequest, serving: ServingOptions): SamplingPlan {
  return planOf(request, serving, {
    maxTokens: request.max_tokens ?? COMPLETION_TOKENS,
    topLogprobs: request.logprobs ?? null,
    grammar: null,
  });
}

/** As in vLLM one strict tool is enough, and then all that are offered are held to. */
function grammarOf({ tools, tool_choice }: ChatRequest, { tool_strict_level }: ServingOptions): ToolGrammar | null {
  if (tool_strict_level === "off" || tool_choice === "none") return null;
  const offered = (tools ?? []).flatMap(({ function: one }) => one ?? []);
  const strict = tool_strict_level === "parameter" || offered.some((one) => one.strict === true);
  return strict && offered.length > 0 ? new ToolGrammar(offered) : null;
}

type Fields = Omit<CompletionRequest, "prompt" | "logprobs">;

function planOf(
  fields: Fields,
  { generation_config: defaults, logprobs_mode }: ServingOptions,
  limits: Pick<SamplingPlan, "maxTokens" | "topLogprobs" | "grammar">,
): SamplingPlan {
  const minTokens = fields.min_tokens ?? 0;
  if (limits.maxTokens !== null && minTokens > limits.maxTokens) {
    const bound = `min_tokens: ${minTokens} is more than max_tokens, ${limits.maxTokens}`;
    throw new RequestError(400, bound, "min_tokens");
  }
  if (fields.stream_options && !fields.stream) {
    throw new RequestError(400, "stream_options: only with stream: true", "stream_options");
  }
  return {
    ...limits,
    ...distributionOf(fields, defaults),
    choices: fields.n ?? 1,
    seed: fields.seed ?? null,
    cacheSalt: fields.cache_salt ?? null,
    rawLogprobs: logprobs_mode === "raw_logprobs",
    minTokens,
    ignoreEos: fields.ignore_eos ?? false,
    stops: typeof fields.stop === "string" ? [fields.stop] : (fields.stop ?? []),
    stopTokenIds: fields.stop_token_ids ?? [],
    keepStop: fields.include_stop_str_in_output ?? false,
  };
}

/** What a token is drawn from: what the request says, else what the server is set to, else what changes nothing. */
function distributionOf(fields: Fields, defaults: ServingOptions["generation_config"]) {
  return {
    temperature: fields.temperature ?? defaults.temperature ?? 1,
    topP: fields.top_p ?? defaults.top_p ?? 1,
    topK: fields.top_k ?? defaults.top_k ?? -1,
    minP: fields.min_p ?? defaults.min_p ?? 0,
    penalties: {
      repetition: fields.repetition_penalty ?? defaults.repetition_penalty ?? 1,
      presence: fields.presence_penalty ?? defaults.presence_penalty ?? 0,
      frequency: fields.frequency_penalty ?? defaults.frequency_penalty ?? 0,
    },
  };
}

/** How many tokens may be sampled after this prompt. Throws vLLM's 400, in its words, when they do not fit. */
export function roomFor(plan: SamplingPlan, promptTokens: number, contextLength: number): number {
  const room = plan.maxTokens ?? Math.max(1, contextLength - promptTokens);
  if (promptTokens + room <= contextLength) return room;
  // Clients match these words to tell truncation from a mistake.
  throw new RequestError(
    400,
    `This model's maximum context length is ${contextLength} tokens. However, you requested ` +
      `${promptTokens + room} tokens (${promptTokens} in the messages, ${room} in the completion). ` +
      "Please reduce the length of the messages or completion.",
    "input_tokens",
  );
}
