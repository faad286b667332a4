/** A request's sampling fields, with vLLM's defaults where they are absent, checked against the model's context. */

import { ToolGrammar } from "./hermes.ts";
import {
  type ChatRequest,
  type CompletionRequest,
  contextOverflow,
  RequestError,
  type ServingOptions,
} from "./request-schemas.ts";
import type { Penalties } from "./sampler.ts";

export interface SamplingPlan {
  readonly choices: number;
  /** Null: the rest of the context. */
  readonly maxTokens: number | null;
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  readonly seed: number | null;
  readonly ignoreEos: boolean;
  readonly minTokens: number;
  readonly stops: readonly string[];
  readonly stopTokenIds: readonly number[];
  readonly keepStop: boolean;
  /** Alternatives beside the sampled token; null = no logprobs in the answer. */
  readonly topLogprobs: number | null;
  readonly cacheSalt: string | null;
  readonly penalties: Penalties;
  readonly grammar: ToolGrammar | null;
  readonly rawLogprobs: boolean;
}

type Fields = Omit<CompletionRequest, "prompt" | "logprobs">;
type Limits = Pick<SamplingPlan, "maxTokens" | "topLogprobs" | "grammar">;

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

/** As in vLLM one strict tool is enough, and then all that are offered are held to. */
function grammarOf({ tools, tool_choice }: ChatRequest, { tool_strict_level }: ServingOptions): ToolGrammar | null {
  if (tool_strict_level === "off" || tool_choice === "none") return null;
  const offered = (tools ?? []).flatMap(({ function: one }) => one ?? []);
  const held = tool_strict_level === "parameter" || offered.some((one) => one.strict === true);
  return held && offered.length > 0 ? new ToolGrammar(offered) : null;
}

/** vLLM's default for a plain completion; OpenAI's too. */
const COMPLETION_TOKENS = 16;

export function completionPlan(request: CompletionRequest, serving: ServingOptions): SamplingPlan {
  return planOf(request, serving, {
    grammar: null,
    maxTokens: request.max_tokens ?? COMPLETION_TOKENS,
    topLogprobs: request.logprobs ?? null,
  });
}

function planOf(fields: Fields, serving: ServingOptions, limits: Limits): SamplingPlan {
  const minTokens = fields.min_tokens ?? 0;
  if (limits.maxTokens !== null && minTokens > limits.maxTokens) {
    const bound = `min_tokens: ${minTokens} is more than max_tokens, ${limits.maxTokens}`;
    throw new RequestError(400, bound, "min_tokens");
  }
  if (fields.stream_options && !fields.stream) {
    throw new RequestError(400, "stream_options: only with stream: true", "stream_options");
  }
  const { generation_config: defaults, logprobs_mode } = serving;
  const rawLogprobs = logprobs_mode === "raw_logprobs";
  const penalties = penaltiesOf(fields, defaults);
  return {
    ...{ ...limits, ...drawing(fields, defaults), ...ending(fields) },
    ...{ minTokens, penalties, rawLogprobs },
  };
}

type Drawing = "choices" | "temperature" | "topP" | "topK" | "minP" | "seed" | "cacheSalt";

type Defaults = ServingOptions["generation_config"];

function drawing(fields: Fields, defaults: Defaults): Pick<SamplingPlan, Drawing> {
  return {
    choices: fields.n ?? 1,
    temperature: fields.temperature ?? defaults.temperature ?? 1,
    topP: fields.top_p ?? defaults.top_p ?? 1,
    topK: fields.top_k ?? defaults.top_k ?? -1,
    minP: fields.min_p ?? defaults.min_p ?? 0,
    seed: fields.seed ?? null,
    cacheSalt: fields.cache_salt ?? null,
  };
}

function penaltiesOf(fields: Fields, defaults: Defaults): Penalties {
  return {
    repetition: fields.repetition_penalty ?? defaults.repetition_penalty ?? 1,
    presence: fields.presence_penalty ?? defaults.presence_penalty ?? 0,
    frequency: fields.frequency_penalty ?? defaults.frequency_penalty ?? 0,
  };
}

type Ending = "ignoreEos" | "stops" | "stopTokenIds" | "keepStop";

function ending(fields: Fields): Pick<SamplingPlan, Ending> {
  return {
    ignoreEos: fields.ignore_eos ?? false,
    stops: typeof fields.stop === "string" ? [fields.stop] : (fields.stop ?? []),
    stopTokenIds: fields.stop_token_ids ?? [],
    keepStop: fields.include_stop_str_in_output ?? false,
  };
}

/** How many tokens may be sampled after this prompt. Throws vLLM's 400 when they do not fit. */
export function roomFor(plan: SamplingPlan, promptTokens: number, contextLength: number): number {
  const asked = plan.maxTokens ?? Math.max(1, contextLength - promptTokens);
  if (promptTokens + asked > contextLength) {
    throw contextOverflow(contextLength, promptTokens, asked);
  }
  return asked;
}
