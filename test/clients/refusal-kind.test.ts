import { expect, test } from "vitest";
import { refusalKind } from "../../src/clients/refusal-kind.ts";

const kindOf = (status: number, error: unknown) => refusalKind(status, error, JSON.stringify(error));

test.each<[server: string, status: number, error: unknown]>([
  ["OpenAI", 401, { message: "Incorrect API key provided", code: "invalid_api_key" }],
  ["any", 401, null],
  [
    "Gemini",
    400,
    { code: 400, message: "API key not valid. Please pass a valid API key.", status: "INVALID_ARGUMENT" },
  ],
  ["Gemini", 400, { code: 400, message: "API Key not found.", details: [{ reason: "API_KEY_INVALID" }] }],
  ["xAI", 400, { code: "Client specified an invalid argument", error: "Incorrect API key provided: xa***" }],
])("%s: %i %j refuses the key", (_server, status, error) => {
  expect(kindOf(status, error)).toBe("key");
});

test.each<[server: string, error: unknown]>([
  [
    "OpenRouter",
    { code: 403, message: "the input was flagged", metadata: { reasons: ["violence"], flagged_input: "…" } },
  ],
  ["OpenRouter", { code: 403, message: "Forbidden", metadata: { reasons: [], flagged_input: "x" } }],
  ["xAI", { code: "Content violates usage guidelines. Team: t. Failed check: SAFETY_CHECK_TYPE_BIO", error: "…" }],
  ["Azure", { code: "content_filter", innererror: { code: "ResponsibleAIPolicyViolation" } }],
  ["DashScope", { code: "data_inspection_failed", message: "Input data may contain inappropriate content." }],
  ["Bedrock", { message: "The guardrail blocked the request" }],
  ["Together", { message: "Your prompt was rejected as a result of our safety system" }],
  [
    "Moonshot",
    { message: "The request was rejected because it was considered high risk: content policy", type: "content_filter" },
  ],
])("%s: a 403 %j refuses this prompt", (_server, error) => {
  expect(kindOf(403, error)).toBe("prompt");
});

test.each([
  ["Cloudflare", "403 <!DOCTYPE html><html><title>Attention Required! | Cloudflare</title>"],
  ["a firewall", "  <HTML><HEAD><TITLE>403 Forbidden</TITLE>"],
])("%s: a page with a 403 refuses this prompt", (_server, words) => {
  expect(refusalKind(403, undefined, words)).toBe("prompt");
});

test.each<[server: string, error: unknown]>([
  ["OpenAI", { message: "Country, region, or territory not supported", code: "unsupported_country_region_territory" }],
  ["Anthropic", { type: "permission_error", message: "Your API key does not have permission to use this resource." }],
  ["Google", { code: 403, message: "Permission denied on resource project x.", status: "PERMISSION_DENIED" }],
  [
    "Bedrock",
    { message: "User is not authorized to perform: bedrock:InvokeModel because no identity-based policy allows it" },
  ],
  ["Hugging Face", { message: "You are not allowed to access this gated repository" }],
  ["Mistral", { message: "Forbidden" }],
  ["none", null],
])("%s: a 403 %j may be the key's fault", (_server, error) => {
  expect(kindOf(403, error)).toBe("maybe_key");
});

test.each([400, 402, 404, 422, 429, 500])("%i refuses neither", (status) => {
  expect(kindOf(status, { message: "this prompt was flagged by moderation" })).toBeNull();
});
