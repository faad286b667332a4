/**
 * The requests and settings that the policy server accepts, in vLLM's field names, and its error replies.
 *
 * Invariants: an unknown field is ignored, as in vLLM. A known field that would change the answer and is not
 * implemented is refused by name, never dropped. Null means absent, because clients send both. Defaults are vLLM's:
 * temperature 1, top_p 1, top_k off, min_p off, and 16 tokens for a plain completion.
 */
import * as z from "zod";

const ERROR_TYPES = {
  400: "BadRequestError",
  403: "PermissionDeniedError",
  404: "NotFoundError",
  405: "MethodNotAllowedError",
  413: "RequestTooLargeError",
  500: "InternalServerError",
} as const;

/** A request that is answered with an error. The message says what to change. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: keyof typeof ERROR_TYPES;
  /** The invalid field of the request. */
  readonly param: string | null;

  constructor(status: keyof typeof ERROR_TYPES, message: string, param: string | null = null) {
    super(message);
    this.status = status;
    this.param = param;
  }
}

/** An error in vLLM's format; `code` is the HTTP status. An unexpected error is a 500 with its message. */
export function errorBody(thrown: unknown) {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const { status, param } = thrown instanceof RequestError ? thrown : new RequestError(500, message);
  return { error: { message, type: ERROR_TYPES[status], param, code: status } };
}

const MAX_LOGPROBS = 20;
const MAX_CHOICES = 64;
const MAX_STOPS = 16;
const MAX_PROMPTS = 256;

const Stop = z.string().min(1, { error: "a stop string cannot be empty" });
const TokenId = z.int().nonnegative();

/** The settings of the distribution from which a token is drawn. */
const distribution = {
  temperature: z.number().min(0).max(100).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.int().min(-1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  repetition_penalty: z.number().positive().nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
};

/**
 * Settings of real engines that can give a trainer wrong data, so that tests and users can try their effect. By default
 * none of them does harm.
 */
export const ServingOptions = z.strictObject({
  /** `raw_logprobs`: from the logits before penalties, grammar and temperature. */
  logprobs_mode: z.enum(["processed_logprobs", "raw_logprobs"]).default("processed_logprobs"),
  /** The defaults for fields that a request leaves out, like a model's `generation_config.json`. */
  generation_config: z.strictObject(distribution).default({}),
  /**
   * `auto`: calls are sampled with a grammar if a tool is strict; `parameter`: always; `off`, which vLLM does not have:
   * never.
   */
  tool_strict_level: z.enum(["parameter", "auto", "off"]).default("off"),
  /** New weights leave the prefix cache unchanged, until POST /reset_prefix_cache. */
  keep_prefix_cache: z.boolean().default(false),
});
export type ServingOptions = z.output<typeof ServingOptions>;
export type ServingOptionsInput = z.input<typeof ServingOptions>;

const sampling = {
  ...distribution,
  model: z.string().nullish(),
  n: z.int().min(1).max(MAX_CHOICES).nullish(),
  seed: z.int().nullish(),
  stop: z.union([Stop, z.array(Stop).max(MAX_STOPS)]).nullish(),
  stop_token_ids: z.array(TokenId).nullish(),
  include_stop_str_in_output: z.boolean().nullish(),
  ignore_eos: z.boolean().nullish(),
  min_tokens: z.int().nonnegative().nullish(),
  max_tokens: z.int().positive().nullish(),
  return_token_ids: z.boolean().nullish(),
  return_tokens_as_token_ids: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  cache_salt: z.string().min(1).max(1024).nullish(),
  request_id: z.string().min(1).max(200).nullish(),
};

const TextPart = z.object({ type: z.literal("text"), text: z.string() });

/** Text parts are joined, as vLLM does for a template that takes strings. */
const Content = z
  .union([z.string(), z.array(TextPart)], {
    error: "must be a string or a list of text parts; this model reads text only",
  })
  .nullish()
  .transform((content) => {
    if (!Array.isArray(content)) return content ?? null;
    return content.map((part) => part.text).join("\n");
  });

const ChatMessage = z.object({
  role: z.preprocess(
    (role) => (role === "developer" ? "system" : role),
    z.enum(["system", "user", "assistant", "tool"]),
  ),
  content: Content,
  tool_calls: z
    .array(z.object({ function: z.object({ name: z.string(), arguments: z.string() }) }))
    .nullish()
    .transform((calls) => calls ?? undefined),
});

const Tool = z.object({
  name: z.string(),
  parameters: z.unknown().optional(),
  strict: z.boolean().nullish(),
});
const Tools = z.array(z.object({ type: z.literal("function"), function: Tool.nullish().catch(null) })).nullish();

const chat = {
  messages: z.array(ChatMessage).min(1),
  tools: Tools,
  add_generation_prompt: z.boolean().nullish(),
  continue_final_message: z.boolean().nullish(),
};

export const ChatRequest = z.object({
  ...sampling,
  ...chat,
  tool_choice: z.unknown().optional(),
  parallel_tool_calls: z.boolean().nullish(),
  max_completion_tokens: z.int().positive().nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(MAX_LOGPROBS).nullish(),
});
export type ChatRequest = z.infer<typeof ChatRequest>;

export const ChatTokensRequest = ChatRequest.extend({ tokens: z.array(TokenId).min(1) });

/** One text or one list of ids is one prompt; a list of texts or of lists of ids is several prompts. */
const Prompt = z.union(
  [
    z.string(),
    z.array(TokenId).min(1),
    z.array(z.string()).min(1).max(MAX_PROMPTS),
    z.array(z.array(TokenId)).min(1).max(MAX_PROMPTS),
  ],
  { error: "must be a string, a list of token ids, or a list of either" },
);

export const CompletionRequest = z.object({
  ...sampling,
  prompt: Prompt,
  logprobs: z.int().min(0).max(MAX_LOGPROBS).nullish(),
  prompt_logprobs: z.int().min(0).max(MAX_LOGPROBS).nullish(),
});
export type CompletionRequest = z.infer<typeof CompletionRequest>;

const tokenizing = { model: z.string().nullish(), return_token_strs: z.boolean().nullish() };
export const TokenizeChatRequest = z.object({ ...chat, ...tokenizing });
export const TokenizeTextRequest = z.object({ ...tokenizing, prompt: z.string() });

export const DetokenizeRequest = z.object({
  model: z.string().nullish(),
  tokens: z.array(TokenId),
});

/** Throws a `RequestError` of 400 that names the first invalid field. */
export function parseRequest<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = issue?.path.join(".") ?? "";
  const message = issue?.message ?? "the request is malformed";
  throw new RequestError(400, path === "" ? message : `${path}: ${message}`, path || null);
}

/**
 * `parseRequest` for requests that sample: also refuses fields that would change the answer and are not implemented.
 * `supported`: fields that this route has and others do not.
 */
export function parseSampled<S extends z.ZodType>(
  schema: S,
  body: unknown,
  supported: readonly string[] = [],
): z.output<S> {
  const request = parseRequest(schema, body);
  refuseUnsupported(body, supported);
  return request;
}

const isNothing = (value: unknown) =>
  value === false || value === "" || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
const is = (harmless: unknown) => (value: unknown) => value === harmless;
const isAbsent = () => false;

/** Fields that would change the answer and are not implemented, each with a test for the values that have no effect. */
const UNSUPPORTED: Readonly<Record<string, (value: unknown) => boolean>> = {
  response_format: (format) => Object(format).type === "text",
  structured_outputs: isNothing,
  guided_json: isAbsent,
  guided_regex: isAbsent,
  guided_choice: isAbsent,
  guided_grammar: isAbsent,
  length_penalty: is(1),
  logit_bias: isNothing,
  bad_words: isNothing,
  allowed_token_ids: isAbsent,
  logprob_token_ids: isAbsent,
  prompt_logprobs: isAbsent,
  truncate_prompt_tokens: isAbsent,
  skip_special_tokens: is(true),
  echo: isNothing,
  suffix: isNothing,
  best_of: is(1),
  use_beam_search: isNothing,
  priority: is(0),
  functions: isNothing,
  chat_template: isAbsent,
  audio: isAbsent,
  modalities: (asked) => Array.isArray(asked) && asked.every(is("text")),
  prompt_embeds: isAbsent,
};

function refuseUnsupported(body: unknown, supported: readonly string[]): void {
  const fields: Readonly<Record<string, unknown>> = Object(body);
  for (const [field, asksForNothing] of Object.entries(UNSUPPORTED)) {
    const value = fields[field];
    if (value === undefined || value === null || asksForNothing(value) || supported.includes(field)) continue;
    throw new RequestError(400, `${field}: this server does not support it; leave it out`, field);
  }
}
