/** GET /metrics, in Prometheus' text format, under vLLM's names: https://docs.vllm.ai/en/latest/usage/metrics */
import type { Handler } from "./reply.ts";

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
