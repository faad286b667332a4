import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { ENDPOINT_PRESETS } from "../../src/cli/endpoint-presets.ts";
import { LIST_PRICES_AS_OF, listPrices } from "../../src/cli/list-prices.ts";

test.each([
  ["openai", "gpt-5-mini", [250_000, 2_000_000]],
  ["openai", "gpt-5-mini-2025-08-07", [250_000, 2_000_000]],
  ["anthropic", "claude-sonnet-4-6", [3_000_000, 15_000_000]],
  // The price of a prompt of up to 200,000 tokens.
  ["gemini", "gemini-2.5-pro", [1_250_000, 10_000_000]],
  ["groq", "llama-3.3-70b-versatile", [590_000, 790_000]],
  // Its price by day, not the discount by night.
  ["deepseek", "deepseek-chat", [270_000, 1_100_000]],
  ["mistral", "mistral-small-latest", [100_000, 300_000]],
  ["openrouter", "qwen/qwen3-32b", [100_000, 300_000]],
  ["fireworks", "accounts/fireworks/models/gpt-oss-120b", [150_000, 600_000]],
] as const)("%s sells %s at a known price", (server, model, prices) => {
  const found = listPrices(ENDPOINT_PRESETS[server]?.base_url ?? "", model);
  expect([found?.input_per_mtok_micros, found?.output_per_mtok_micros]).toEqual(prices);
});

test.each([
  [ENDPOINT_PRESETS["vllm"]?.base_url, "gpt-5-mini"],
  [ENDPOINT_PRESETS["openai"]?.base_url, "no-such-model"],
  ["https://gateway.example/api.openai.com/v1", "gpt-5-mini"],
])("%s has no price for %s", (url = "", model) => {
  expect(listPrices(url, model)).toBeNull();
});

test("the date of the prices is that of the pinned release", () => {
  expect(manifest.dependencies["@pydantic/genai-prices"]).toBe("0.1.8");
  expect(readFileSync("docs/endpoints.md", "utf8")).toContain(LIST_PRICES_AS_OF);
});
