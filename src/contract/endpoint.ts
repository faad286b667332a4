/**
 * Endpoints and secrets on the wire. Keys and values are written and never read back: a reply has at most the last four
 * characters of one.
 */
import * as z from "zod";
import { LIMITS } from "./limits.ts";
import {
  Count,
  EXAMPLE,
  listOf,
  MaybeFlag,
  MaybeText,
  NonEmpty,
  named,
  namedInput,
  Positive,
  Seconds,
} from "./primitives.ts";
import { ShownText, WebAddress } from "./shown-text.ts";

export const BaseUrl = WebAddress.regex(/^[^@?#]*$/, {
  error: "must not contain credentials, a query or a fragment: readers of the run can see it",
}).describe("up to and including /v1");

export const EndpointKey = z
  .string()
  .max(4096)
  .regex(/^[\x21-\x7e]+$/, { error: "must be visible ASCII characters: it is sent in a header" });

const Micros = Count.describe("micro-dollars per million tokens");
export const Prices = z.strictObject({
  input_per_mtok_micros: Micros.meta({ example: 150_000 }),
  output_per_mtok_micros: Micros.meta({ example: 600_000 }),
});

/** The name of a request field that an endpoint may refuse. */
export const RefusedName = z
  .string()
  .regex(/^(streams|whole_replies|stream_options|tools\.strict|messages\.[a-z][a-z0-9_.-]{0,63})$/i, {
    error: "must be streams, stream_options, tools.strict or messages.MEMBER",
  });
const Refuses = z
  .array(RefusedName)
  .max(LIMITS.refusedNames)
  .describe(
    "what calls omit because the server rejects it: `tools.strict`, `messages.MEMBER` (a member that it sent itself, such as `messages.reasoning`), `streams` (it only replies whole), `stream_options`. Set here, or detected by a probe or a call",
  )
  .meta({ example: ["tools.strict"] });

const SilenceLimit = Positive.max(LIMITS.silenceLimitS)
  .nullable()
  .describe(
    "seconds without a byte from the server after which a call is lost; null = the deployment's limit: 100 on Cloudflare, which ends a silent call after about 125 s, and 600 on one machine",
  )
  .meta({ example: 100 });

/** An endpoint defined in the request of a run. The key is sealed before anything is stored and never read back. */
export const InlineEndpoint = namedInput("InlineEndpoint", {
  base_url: BaseUrl.meta({ example: "https://gpu.example/v1" }),
  api_key: EndpointKey.optional().meta({ example: "sk-ab12cd34" }),
  prices: Prices.optional().describe("prices of its tokens, by which max_cost_micros is counted").meta({ example: {} }),
  refuses: Refuses.optional(),
  silence_limit_s: SilenceLimit.optional(),
});

export const EndpointOrName = z.union([NonEmpty, InlineEndpoint]);

/** The model's name at the endpoint. */
export const ModelName = ShownText.min(1).max(500);

export const ResourceName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,62}$/i, {
    error: "must be 1 to 63 letters, digits, dots, dashes or underscores, starting with a letter or digit",
  })
  .refine((name) => !/^(ep|ds|sec|fl|rp|tr|whe)_/.test(name), { error: "must not look like an id" });

export const EndpointRequest = namedInput("EndpointRequest", {
  name: ResourceName.meta({ example: "qwen" }),
  base_url: BaseUrl.meta({ example: "https://gpu.example/v1" }),
  api_key: EndpointKey.optional().meta({ example: "sk-ab12cd34ef56" }),
  max_concurrent: Positive.max(LIMITS.maxConcurrent)
    .nullable()
    .default(null)
    .describe("concurrent rollouts of all runs on this endpoint; null = each run's own limit")
    .meta({ example: 256 }),
  rpm: Positive.nullable().default(null).describe("requests a minute of all runs on it; null = no limit"),
  prices: Prices.nullable().default(null).meta({ example: {} }),
  refuses: Refuses.default([]),
  silence_limit_s: SilenceLimit.default(null),
  probe: z.boolean().default(true).describe("make one short call to see what the server supports; false skips it"),
  model: ModelName.optional().describe("the model the probe asks; default: the first the server lists"),
});
export type EndpointRequest = z.output<typeof EndpointRequest>;
export type EndpointRequestInput = z.input<typeof EndpointRequest>;

/** Only the given fields change. `api_key: null` removes the key. */
export const EndpointPatch = z
  .strictObject({
    name: ResourceName,
    base_url: BaseUrl,
    api_key: EndpointKey.nullable(),
    max_concurrent: EndpointRequest.shape.max_concurrent.unwrap(),
    rpm: EndpointRequest.shape.rpm.unwrap(),
    prices: EndpointRequest.shape.prices.unwrap(),
    refuses: Refuses,
    silence_limit_s: SilenceLimit,
  })
  .partial()
  .meta({ id: "EndpointPatch" });
export type EndpointPatch = z.output<typeof EndpointPatch>;

/** What a probe proved about the engine's logprobs and sampling. */
const EngineExactness = named("EngineExactness", {
  one_logprob_a_token: z.boolean().meta({ example: true }),
  logprobs_mode: z
    .enum(["processed", "raw"])
    .nullable()
    .describe("whether temperature and penalties are in the logprobs; null = unknown")
    .meta({ example: "processed" }),
  penalties: MaybeFlag.describe("repetition_penalty of a request is applied; null = unknown").meta({
    example: true,
  }),
  neutral_defaults: MaybeFlag.describe(
    "a request without sampling options is sampled without penalties and cut-offs",
  ).meta({ example: true }),
  refused: MaybeText.describe("the server's error if it refused the fields that training sends"),
});
export type EngineExactness = z.infer<typeof EngineExactness>;

/** What one probe call showed about the endpoint. */
export const EndpointCapabilities = named("EndpointCapabilities", {
  models: z
    .array(z.string())
    .describe("models of GET /models, at most 100")
    .meta({ example: ["qwen3-4b"] }),
  max_model_len: z
    .int()
    .positive()
    .nullable()
    .describe("in tokens, if the server reports it (vLLM does)")
    .meta({ example: 32_768 }),
  probed_model: MaybeText.meta({ example: "qwen3-4b" }),
  chat: z.boolean().describe("the call returned a chat completion").meta({ example: true }),
  usage: z.boolean().meta({ example: true }),
  logprobs: z.boolean().meta({ example: true }),
  token_ids: z.boolean().describe("return_token_ids is honoured: training needs it").meta({ example: true }),
  tools: z.boolean().describe("a request with tools was accepted").meta({ example: true }),
  refuses: Refuses.optional().describe("what the server rejected, so that the probe omitted it").meta({ example: [] }),
  exactness: EngineExactness.nullable().describe("null without token ids and logprobs").meta({ example: {} }),
  error: MaybeText.describe("the error, if the probe failed"),
  checked_at: Seconds,
});
export type EndpointCapabilities = z.infer<typeof EndpointCapabilities>;

export const EndpointView = named("Endpoint", {
  object: z.literal("endpoint"),
  id: z.string().meta({ example: EXAMPLE.endpoint }),
  name: z.string().meta({ example: "qwen" }),
  base_url: z.string().meta({ example: "https://gpu.example/v1" }),
  api_key_last4: MaybeText.meta({ example: "ef56" }),
  max_concurrent: z.int().nullable().meta({ example: 256 }),
  rpm: z.int().nullable(),
  prices: Prices.nullable().meta({ example: {} }),
  refuses: Refuses,
  silence_limit_s: SilenceLimit,
  capabilities: EndpointCapabilities.nullable().describe("null if it was never probed").meta({ example: {} }),
  created_at: Seconds,
  updated_at: Seconds,
});
export type EndpointView = z.infer<typeof EndpointView>;
export const EndpointList = listOf(EndpointView, "EndpointList", EXAMPLE.endpoint);

export const SecretName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,62}$/, {
  error: "must be 1 to 63 letters, digits or underscores, not starting with a digit",
});
export const SecretRequest = namedInput("SecretRequest", {
  name: SecretName,
  value: NonEmpty.max(LIMITS.secretCharacters),
});
export type SecretRequest = z.output<typeof SecretRequest>;
export const SecretPatch = namedInput("SecretPatch", { value: SecretRequest.shape.value });

/** A secret. Its value is written and never read back. */
export const SecretView = named("Secret", {
  object: z.literal("secret"),
  id: z.string().meta({ example: EXAMPLE.secret }),
  name: z.string().meta({ example: "SEARCH_KEY" }),
  created_at: Seconds,
  updated_at: Seconds,
});
export type SecretView = z.infer<typeof SecretView>;
export const SecretList = listOf(SecretView, "SecretList", EXAMPLE.secret);

/** The reply to DELETE. */
export const Deleted = named("Deleted", { object: z.string(), id: z.string(), deleted: z.literal(true) });
export type Deleted = z.infer<typeof Deleted>;
