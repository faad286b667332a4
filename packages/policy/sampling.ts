/** Reads a request's sampling fields, with vLLM's defaults, and checks them against the model's context. */
import type { GenerationRequest } from "./generation.ts";
import { ToolGrammar } from "./hermes.ts";
import { type ChatRequest, type CompletionRequest, RequestError, type ServingOptions } from "./request-schemas.ts";

type FromPlan = Omit<GenerationRequest, "prompt" | "maxTokens" | "topLogprobs" | "signal" | "onToken">;

/** The sampling settings of all choices of a request; the seed is that of the first choice. */
export interface SamplingPlan extends FromPlan {
  readonly choices: number;
  /** Null for the rest of the context. */
  readonly maxTokens: number | null;
  readonly stops: readonly string[];
  /** The stop string stays in the text. */
  readonly keepStop: boolean;
  /** Alternatives to report for each sampled token; null for no logprobs in the answer. */
  readonly topLogprobs: number | null;
}

/** The default of vLLM and of OpenAI for a plain completion. */
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

/** As in vLLM, one strict tool is enough to hold the calls of all offered tools to the grammar. */
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

/** The settings of the distribution: from the request, else from the server's settings, else neutral ones. */
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

/**
 * The most tokens that may be sampled after this prompt. Throws vLLM's 400, with vLLM's message, if they do not fit.
 */
export function roomFor(plan: SamplingPlan, promptTokens: number, contextLength: number): number {
  const room = plan.maxTokens ?? Math.max(1, contextLength - promptTokens);
  if (promptTokens + room <= contextLength) return room;
  // Clients recognise an overlong prompt by this message.
  throw new RequestError(
    400,
    `This model's maximum context length is ${contextLength} tokens. However, you requested ` +
      `${promptTokens + room} tokens (${promptTokens} in the messages, ${room} in the completion). ` +
      "Please reduce the length of the messages or completion.",
    "input_tokens",
  );
}
