/** GET /metrics, in Prometheus' text format, under vLLM's names: https://docs.vllm.ai/en/latest/usage/metrics */

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

const VERSION_HEADER = "x-weight-version";

const MAX_VERSION_CHARACTERS = 200;

interface Metric {
  readonly name: string;
  readonly kind: "gauge" | "counter";
  readonly help: string;
  readonly value: number;
}

export const metrics: Handler = ({ engine, model }) => {
  const stats = engine.stats();
  const all: Metric[] = [
    gauge("vllm:num_requests_running", "Requests being sampled.", stats.running),
    gauge("vllm:num_requests_waiting", "Requests waiting for a place.", stats.waiting),
    gauge("vllm:kv_cache_usage_perc", "Share of the KV cache in use; 1 is full.", stats.kvUsage),
    counter("vllm:prompt_tokens_total", "Prompt tokens taken in.", stats.promptTokens),
    counter("vllm:generation_tokens_total", "Tokens sampled.", stats.generationTokens),
    counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up.", stats.promptTokens),
    counter("vllm:prefix_cache_hits_total", "Prompt tokens found.", stats.cachedTokens),
    counter("vllm:request_success_total", "Requests ended.", stats.requests),
  ];
  const labels = `{model_name="${escapeLabel(model)}",engine="0"}`;
  const version = `{weight_version="${escapeLabel(engine.weightVersion)}"}`;
  const lines = all.flatMap(({ name, kind, help, value }) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${kind}`,
    `${name}${labels} ${value}`,
  ]);
  const info = [
    "# HELP rollcall:weight_info Which weights sample.",
    "# TYPE rollcall:weight_info gauge",
    `rollcall:weight_info${version} 1`,
  ];
  const text = `${[...lines, ...info].join("\n")}\n`;
  return { kind: "text", type: "text/plain; version=0.0.4; charset=utf-8", text };
};

export const load: Handler = ({ engine }) => {
  const { running, waiting } = engine.stats();
  return { kind: "json", body: { server_load: running + waiting } };
};

function gauge(name: string, help: string, value: number): Metric {
  return { name, kind: "gauge", help, value };
}

function counter(name: string, help: string, value: number): Metric {
  return { name, kind: "counter", help, value };
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

/** POST /tokenize and /detokenize: what the model sees of a text or a conversation, and back. */
export const tokenize: Handler = (context, { json }) => {
  const body = json();
  const chat = typeof body === "object" && body !== null && "messages" in body;
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

/**
 * GET /weight_info, POST /update_weights and /reset_prefix_cache: which weights sample, new ones for them, and nothing left of the old.
 *
 * Ours, not vLLM's: vLLM moves weights over NCCL between its own processes, and this server takes them as the body of
 * the request: little-endian 32-bit floats in the model's order. The header `x-weight-version` names them; a page in a
 * browser cannot send it to another site without being let, so no page can replace the weights.
 */
export const weightInfo: Handler = ({ engine }) => ({
  kind: "json",
  body: { weight_version: engine.weightVersion, sha256: engine.weightsDigest },
});

export const resetPrefixCache: Handler = ({ engine }) => {
  engine.resetPrefixCache();
  return { kind: "text", type: "text/plain", text: "" };
};

/** Answers when the new weights have been taken over: whatever is asked after that is sampled by them. */
export const updateWeights: Handler = async ({ engine }, { headers, bytes }) => {
  const version = headers[VERSION_HEADER];
  if (typeof version !== "string" || version === "" || version.length > MAX_VERSION_CHARACTERS) {
    throw new RequestError(
      400,
      `the header ${VERSION_HEADER} must name the weights, in 1 to ${MAX_VERSION_CHARACTERS} characters`,
      VERSION_HEADER,
    );
  }
  try {
    await engine.updateWeights(weightsFromBytes(bytes), version);
  } catch (error) {
    // What does not fit the model is the sender's mistake, and the words say what would.
    if (error instanceof RangeError) throw new RequestError(400, error.message);
    throw error;
  }
  const sha256 = engine.weightsDigest;
  return { kind: "json", body: { message: "Weights updated", weight_version: version, sha256 } };
};
