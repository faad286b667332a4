/** Model servers that `rollcall endpoint add` knows by name. docs/endpoints.md has the limits of each, with sources. */

interface EndpointPreset {
  /** Up to and including the version. */
  readonly base_url: string;
  /** The environment variable that usually has its key. */
  readonly key: string;
  /** False: a server on this machine, which usually has no key. */
  readonly needsKey: boolean;
  /** What its calls must omit from the start; the platform learns the rest from its refusals. */
  readonly refuses?: readonly string[];
}

const hosted = (base_url: string, key: string, refuses?: readonly string[]): EndpointPreset => ({
  ...{ base_url, key, needsKey: true },
  ...(refuses !== undefined && { refuses }),
});
const local = (port: number, key: string): EndpointPreset => ({
  ...{ base_url: `http://127.0.0.1:${port}/v1`, key, needsKey: false },
});

export const ENDPOINT_PRESETS: Readonly<Record<string, EndpointPreset>> = {
  openai: hosted("https://api.openai.com/v1", "OPENAI_API_KEY"),
  openrouter: hosted("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
  anthropic: hosted("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
  gemini: hosted("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
  groq: hosted("https://api.groq.com/openai/v1", "GROQ_API_KEY", ["messages.reasoning_content"]),
  deepseek: hosted("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
  mistral: hosted("https://api.mistral.ai/v1", "MISTRAL_API_KEY", ["stream_options"]),
  xai: hosted("https://api.x.ai/v1", "XAI_API_KEY"),
  together: hosted("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
  fireworks: hosted("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
  cohere: hosted("https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY"),
  dashscope: hosted("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
  moonshot: hosted("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
  zhipu: hosted("https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
  minimax: hosted("https://api.minimax.io/v1", "MINIMAX_API_KEY"),
  cerebras: hosted("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
  nvidia: hosted("https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
  vllm: local(8000, "VLLM_API_KEY"),
  sglang: local(30_000, "SGLANG_API_KEY"),
  "llama.cpp": local(8080, "LLAMA_API_KEY"),
  ollama: local(11_434, "OLLAMA_API_KEY"),
  lmstudio: local(1234, "LM_API_TOKEN"),
};
