import { expect, test } from "vitest";
import { errorIn } from "../../../src/core/rollout/reply-error.ts";

test.each<[server: string, body: unknown, status: number | null, message: string]>([
  ["OpenRouter", { error: { code: 429, message: "slow down", metadata: {} } }, 429, "slow down"],
  [
    "OpenRouter, in a stream",
    { id: "x", error: { code: "502", message: "bad gateway" }, choices: [{ delta: {}, finish_reason: "error" }] },
    502,
    "bad gateway",
  ],
  ["TGI", { error: "Input validation error", error_type: "validation" }, 400, "Input validation error"],
  ["TGI", { error: "Model is overloaded", error_type: "overloaded" }, 503, "Model is overloaded"],
  [
    "OpenAI",
    { error: { message: "no such model", type: "invalid_request_error", code: "model_not_found" } },
    404,
    "no such model",
  ],
  ["Anthropic", { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, 503, "Overloaded"],
  [
    "Gemini",
    [{ error: { code: 400, message: "API key not valid", status: "INVALID_ARGUMENT" } }],
    400,
    "API key not valid",
  ],
  ["Gemini", { error: { message: "out of quota", status: "RESOURCE_EXHAUSTED" } }, 429, "out of quota"],
  ["vLLM before 0.10", { object: "error", message: "too long", type: "BadRequestError", code: 400 }, 400, "too long"],
  ["FastAPI", { detail: "not ready" }, null, "not ready"],
  ["FastAPI", { detail: [{ loc: ["body"], msg: "field required" }] }, null, "field required"],
  ["DashScope", { code: "Throttling", message: "limit reached", request_id: "r" }, 429, "limit reached"],
  ["DashScope", { code: "InvalidApiKey", message: "Invalid API-key provided." }, 401, "Invalid API-key provided."],
  ["DashScope", { code: "Throttling.RateQuota", message: "too fast" }, 429, "too fast"],
  ["a gateway", { error: { code: "429 Too Many Requests", message: "too fast" } }, 429, "too fast"],
  ["a gateway, in a list", { choices: [], error: [{ message: "upstream failed", code: 502 }] }, 502, "upstream failed"],
  [
    "a gateway, as a flag",
    { choices: [{ delta: {} }], error: true, message: "upstream failed" },
    null,
    "upstream failed",
  ],
  [
    "vLLM, in addition to a choice",
    { object: "error", message: "boom", code: 500, choices: [{ delta: {} }] },
    500,
    "boom",
  ],
  ["MiniMax", { base_resp: { status_code: 1004, status_msg: "login fail" } }, 401, "login fail"],
  ["MiniMax", { base_resp: { status_code: 1002, status_msg: "rate limit" } }, 429, "rate limit"],
  ["MiniMax", { base_resp: { status_code: 1026, status_msg: "input new_sensitive" } }, null, "input new_sensitive"],
  ["Baidu", { error_code: 17, error_msg: "daily limit" }, null, "daily limit"],
  [
    "OpenRouter, of its provider",
    { error: { message: "Provider returned error", code: 429, metadata: { raw: "busy upstream" } } },
    429,
    "Provider returned error: busy upstream",
  ],
  ["a proxy, without choices", { error: { code: 0, message: "engine crashed" } }, null, "engine crashed"],
  ["a word that every object has", { error: { message: "x", type: "constructor" } }, null, "x"],
  [
    "Cloudflare",
    { success: false, errors: [{ code: 10_000, message: "Authentication error" }] },
    null,
    "Authentication error",
  ],
])("%s: %j is an error", (_server, body, status, message) => {
  expect(errorIn(body)).toMatchObject({ status, error: { message } });
});

test.each<[server: string, body: unknown]>([
  ["OpenAI", { choices: [{ message: { content: "4" } }], error: null }],
  ["MiniMax", { choices: [{ message: { content: "4" } }], base_resp: { status_code: 0, status_msg: "" } }],
  ["a proxy", { choices: [{ message: { content: "4" } }], error: { code: 0, message: "success" } }],
  ["a proxy", { choices: [{ message: { content: "4" } }], error: {}, message: "ok" }],
  ["a proxy", { choices: [{ message: { content: "4" } }], error: { code: 200 } }],
  ["a proxy", { choices: [{ message: { content: "4" } }], error: { code: "200", message: "OK", type: null } }],
  ["a proxy", { choices: [{ message: { content: "4" } }], error: { code: 0, message: "", request_id: "abc" } }],
  ["a proxy", { choices: [{ message: { content: "4" } }], error: "none" }],
  ["a proxy", { choices: [{ message: { content: "4" } }], error: false }],
  ["nothing", {}],
  ["a text", "4"],
])("%s: %j is not an error", (_server, body) => {
  expect(errorIn(body)).toBeNull();
});

test("error messages are cut to a maximal length", () => {
  expect(errorIn({ error: "x".repeat(1_000_000) })?.error.message.length).toBeLessThan(5000);
});
