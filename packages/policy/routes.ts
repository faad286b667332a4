/** The routes that sample nothing: models, health, metrics, weights and tokenization. */
import { isRecord } from "rollcall/helpers";
import { promptOf } from "./chat-completions.ts";
import { type Handler, requireModel } from "./reply.ts";
import {
  DetokenizeRequest,
  parseRequest,
  RequestError,
  TokenizeChatRequest,
  TokenizeTextRequest,
} from "./request-schemas.ts";
import { decode, encodeText, tokenText } from "./tokenizer.ts";
import { weightsFromBytes } from "./weights.ts";

/** The version of this interface, not of vLLM: a client that expects vLLM's number would misread it. */
const VERSION = "rollcall-policy-1";
const VERSION_HEADER = "x-weight-version";
const MAX_VERSION_CHARACTERS = 200;

/** GET /health, and /ping. */
export const empty: Handler = () => ({ kind: "text", type: "text/plain", text: "" });

export const models: Handler = ({ engine, model, now }) => ({
  kind: "json",
  body: {
    object: "list",
    data: [
      {
        id: model,
        object: "model",
        created: Math.floor(now() / 1000),
        owned_by: "rollcall",
        root: model,
        parent: null,
        max_model_len: engine.contextLength,
      },
    ],
  },
});

export const version: Handler = () => ({ kind: "json", body: { version: VERSION } });

export const load: Handler = ({ engine }) => {
  const { running, waiting } = engine.stats();
  return { kind: "json", body: { server_load: running + waiting } };
};

/** GET /metrics, in Prometheus' text format, under vLLM's names: https://docs.vllm.ai/en/latest/usage/metrics */
export const metrics: Handler = ({ engine, model }) => {
  const stats = engine.stats();
  const labels = `{model_name="${escapeLabel(model)}",engine="0"}`;
  const vllm = (kind: "gauge" | "counter", name: string, help: string, value: number) => [
    `# HELP vllm:${name} ${help}`,
    `# TYPE vllm:${name} ${kind}`,
    `vllm:${name}${labels} ${value}`,
  ];
  const lines = [
    ...vllm("gauge", "num_requests_running", "Requests being sampled.", stats.running),
    ...vllm("gauge", "num_requests_waiting", "Requests waiting for a place.", stats.waiting),
    ...vllm("gauge", "kv_cache_usage_perc", "Share of the KV cache in use; 1 is full.", stats.kvUsage),
    ...vllm("counter", "prompt_tokens_total", "Prompt tokens taken in.", stats.promptTokens),
    ...vllm("counter", "generation_tokens_total", "Tokens sampled.", stats.generationTokens),
    ...vllm("counter", "prefix_cache_queries_total", "Prompt tokens looked up.", stats.promptTokens),
    ...vllm("counter", "prefix_cache_hits_total", "Prompt tokens found.", stats.cachedTokens),
    ...vllm("counter", "request_success_total", "Requests ended.", stats.requests),
    "# HELP rollcall:weight_info Which weights sample.",
    "# TYPE rollcall:weight_info gauge",
    `rollcall:weight_info{weight_version="${escapeLabel(engine.weightVersion)}"} 1`,
  ];
  return { kind: "text", type: "text/plain; version=0.0.4; charset=utf-8", text: `${lines.join("\n")}\n` };
};

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

export const tokenize: Handler = (context, { json }) => {
  const body = json();
  const chat = isRecord(body) && "messages" in body;
  const request = parseRequest(chat ? TokenizeChatRequest : TokenizeTextRequest, body);
  requireModel(context, request.model);
  const tokens = "messages" in request ? promptOf(request) : encodeText(request.prompt);
  return {
    kind: "json",
    body: {
      count: tokens.length,
      max_model_len: context.engine.contextLength,
      tokens,
      token_strs: request.return_token_strs ? tokens.map(tokenText) : null,
    },
  };
};

export const detokenize: Handler = (context, { json }) => {
  const { model, tokens } = parseRequest(DetokenizeRequest, json());
  requireModel(context, model);
  const { vocabularySize } = context.engine;
  const wrong = tokens.find((id) => id >= vocabularySize);
  if (wrong !== undefined) {
    const message = `tokens: id ${wrong} is out of the vocabulary of ${vocabularySize}`;
    throw new RequestError(400, message, "tokens");
  }
  return { kind: "json", body: { prompt: decode(tokens) } };
};

export const weightInfo: Handler = ({ engine }) => ({
  kind: "json",
  body: { weight_version: engine.weightVersion, sha256: engine.weightsDigest },
});

export const resetPrefixCache: Handler = (context, request) => {
  context.engine.resetPrefixCache();
  return empty(context, request);
};

/**
 * POST /update_weights answers when the new weights are in use: all later requests are sampled with them.
 *
 * This route is Rollcall's, not vLLM's, which moves weights over NCCL between its own processes. The body is the
 * weights in the byte format of weights.ts, and the header `x-weight-version` names them. A browser page cannot send
 * this header to another site without that site's permission, so no page can replace the weights.
 */
export const updateWeights: Handler = async ({ engine }, { headers, bytes }) => {
  const name = headers[VERSION_HEADER];
  if (typeof name !== "string" || name === "" || name.length > MAX_VERSION_CHARACTERS) {
    throw new RequestError(
      400,
      `the header ${VERSION_HEADER} must name the weights, in 1 to ${MAX_VERSION_CHARACTERS} characters`,
      VERSION_HEADER,
    );
  }
  try {
    await engine.updateWeights(weightsFromBytes(bytes), name);
  } catch (error) {
    // Weights that do not fit the model are the sender's mistake; the message says what would fit.
    if (error instanceof RangeError) throw new RequestError(400, error.message);
    throw error;
  }
  const sha256 = engine.weightsDigest;
  return { kind: "json", body: { message: "Weights updated", weight_version: name, sha256 } };
};
