/** The examples of endpoints and secrets on the OpenAPI page. */
import type { EndpointRequestInput, EndpointView, SecretView } from "../../contract/endpoint.ts";

const AT = 1_792_000_000;

export const ENDPOINT_REQUEST: EndpointRequestInput = {
  name: "qwen",
  base_url: "https://gpu.example/v1",
  api_key: "sk-ab12cd34ef56",
  max_concurrent: 256,
  prices: { input_per_mtok_micros: 150_000, output_per_mtok_micros: 600_000 },
};

export const ENDPOINT: EndpointView = {
  object: "endpoint",
  id: "ep_01ks2h9q4e7mxw3f0tbn8vc5zb5r2j6wqd",
  name: "qwen",
  base_url: "https://gpu.example/v1",
  api_key_last4: "ef56",
  max_concurrent: 256,
  rpm: null,
  prices: { input_per_mtok_micros: 150_000, output_per_mtok_micros: 600_000 },
  capabilities: {
    models: ["qwen3-4b"],
    max_model_len: 32_768,
    probed_model: "qwen3-4b",
    chat: true,
    usage: true,
    logprobs: true,
    token_ids: true,
    tools: true,
    exactness: {
      one_logprob_a_token: true,
      logprobs_mode: "processed",
      penalties: true,
      neutral_defaults: true,
      refused: null,
    },
    error: null,
    checked_at: AT,
  },
  created_at: AT,
  updated_at: AT,
};

export const SECRET: SecretView = {
  object: "secret",
  id: "sec_01ks2h9q4e7mxw3f0tbn8vc5zc6t3k7xre",
  name: "SEARCH_KEY",
  created_at: AT,
  updated_at: AT,
};
