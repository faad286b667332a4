/** What replies of 400, 401 and 403 refuse, in the formats of real servers. The prompts and numbers are invented. */
import { expect, test } from "vitest";
import { type RefusalKind, refusalKind } from "../../../src/kernel/clients/refusal-kind.ts";

function kindOf(status: number, body: unknown, content_type = "application/json"): RefusalKind | null {
  return refusalKind({ status, content_type, text: typeof body === "string" ? body : JSON.stringify(body) });
}

const CLOUDFLARE_PAGE =
  "<!DOCTYPE html>\n<html class='no-js' lang='en-US'><head><title>Attention Required! | Cloudflare</title></head></html>";
const openRouter = {
  error: { code: 403, message: "the model demands it", metadata: { reasons: ["self-harm"], provider_name: "Some" } },
};
const grok = {
  code: "The caller does not have permission to execute the specified operation",
  error: "Content violates usage guidelines. Team: t, API key ID: k, Failed check: SAFETY_CHECK_TYPE_BIO",
};
const azure = {
  error: { code: "content_filter", message: "filtered", innererror: { code: "ResponsibleAIPolicyViolation" } },
};
const claude = {
  type: "error",
  error: { type: "permission_error", message: "This request was blocked under the Usage Policy." },
};

test.each<[server: string, body: unknown, type?: string]>([
  ["OpenRouter: reasons of a moderator", openRouter],
  ["OpenRouter: a guardrail", { error: { code: 403, message: "Request blocked: prompt injection patterns detected" } }],
  ["xAI", grok],
  ["Azure OpenAI", azure],
  ["OpenAI", { error: { message: "Your request was rejected as a result of our safety system.", type: "image" } }],
  ["Anthropic", claude],
  ["Bedrock", { message: "Blocked by guardrail gr-7 (GUARDRAIL_INTERVENED)" }],
  ["Gemini", { error: { code: 403, status: "PERMISSION_DENIED", message: "blocked: PROHIBITED_CONTENT" } }],
  ["Alibaba", { code: "DataInspectionFailed", message: "Input data may contain inappropriate content." }],
  ["Moonshot", { error: { type: "content_filter", message: "it was considered high risk" } }],
  ["DeepSeek", { error: { message: "Content Exists Risk", type: "invalid_request_error" } }],
  ["Zhipu", { error: { code: "1301", message: "系统检测到输入内容可能包含敏感内容" } }],
  ["Zhipu, escaped", String.raw`{"error":{"code":"1301","message":"\u654f\u611f\u5185\u5bb9"}}`],
  ["Cloudflare AI Gateway", { success: false, error: [{ code: 2016, message: "Prompt blocked due to security" }] }],
  ["LiteLLM", { error: { message: "Violated OpenAI moderation policy", code: "403" } }],
  ["NVIDIA", { detail: "the input is unsafe: S9" }],
  ["a gateway with its own words", { error: true, message: "refused by policy 12" }],
  ["a gateway: what it found", { error: { message: "The request was blocked because it contains illegal content." } }],
  ["a gateway: a topic", { error: { message: "Your request was rejected: dangerous content (weapons)." } }],
  ["a firewall's page", CLOUDFLARE_PAGE, "text/html; charset=UTF-8"],
  ["a page of no known type", "\n<html><body><h1>403 Forbidden</h1>nginx</body></html>", ""],
  ["a page in JSON", { error: { message: CLOUDFLARE_PAGE } }],
  ["a page without marks", "Access denied<br>", "text/html"],
  ["a part of a page, of JSON's type", "<h1>403</h1><p>Blocked</p>"],
])("a 403 that refuses one prompt: %s", (_server, body, type) => {
  expect(kindOf(403, body, type)).toBe("prompt_refused");
});

test.each<[server: string, body: unknown, type?: string]>([
  ["nothing", ""],
  ["no page, of HTML's type", "", "text/html"],
  ["JSON of HTML's type", { error: "forbidden" }, "text/html"],
  ["text", "error code: 1010", "text/plain"],
  ["XML", '<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "application/xml"],
  ["OpenAI: a region", { error: { code: "unsupported_country_region_territory", message: "not supported" } }],
  ["OpenAI: a model", { error: { code: "model_not_found", message: "Project `p` does not have access to model `m`" } }],
  ["Anthropic", { type: "error", error: { type: "permission_error", message: "no permission for this resource" } }],
  ["OpenRouter: a key's limit", { error: { code: 403, message: "Key limit exceeded (total limit)" } }],
  ["xAI: no credits", { code: "permission-denied", error: "Your team has no credits yet." }],
  [
    "Azure: a network",
    { error: { code: "AccessDenied", message: "Access denied due to Virtual Network/Firewall rules." } },
  ],
  ["Bedrock: IAM", { Message: "User: arn:aws:iam::1:user/u is not authorized: no identity-based policy allows it" }],
  ["Google: a perimeter", { error: { code: 403, message: "Request is prohibited by organization's policy." } }],
  ["Google: rights", { error: { code: 403, status: "PERMISSION_DENIED", message: "The caller has no permission" } }],
  ["Groq", { error: { message: "The model `m` is blocked at the organization level", type: "permissions_error" } }],
  ["Hugging Face", { error: "Access to this gated repo is restricted and you are not in the authorized list" }],
  ["NVIDIA", { status: 403, title: "Forbidden", detail: "Authorization failed" }],
  ["Alibaba", { error: { code: "access_denied", message: "Model access denied." } }],
  ["a suspended account", { error: { message: "Your account has been suspended for violating our usage policies" } }],
  ["a blocked address", { error: { message: "Your IP address is on our blocklist" } }],
  ["a workspace's policy", { error: { message: "Access denied by your workspace policy: model is not enabled" } }],
  [
    "LiteLLM: a key's models",
    { error: { message: "Key not allowed to access model. It can access models=['content-safety-4b']" } },
  ],
  ["OpenAI: a moderation model", { error: { message: "You have no access to omni-moderation-latest with this key" } }],
  [
    "a page about policies",
    { error: { message: "This key does not have permission. See https://a.example/acceptable-use-policy" } },
  ],
  ["Volcengine", { error: { code: "AccountOverdueError", message: "the account has an overdue balance" } }],
])("a 403 that may be about the key: %s", (_server, body, type) => {
  expect(kindOf(403, body, type)).toBe("forbidden");
});

const INVALID = "API key not valid. Please pass a valid API key.";
const gemini = {
  error: { code: 400, message: INVALID, status: "INVALID_ARGUMENT", details: [{ reason: "API_KEY_INVALID" }] },
};

test.each<[server: string, status: number, body: unknown, type?: string]>([
  ["any", 401, ""],
  ["a 401 with a page", 401, CLOUDFLARE_PAGE, "text/html"],
  ["a 401 that speaks of policy", 401, { error: "policy" }],
  ["Gemini", 400, gemini],
  ["Gemini, compatible: a list", 400, [gemini]],
  ["Gemini: an old key", 400, { error: { code: 400, message: "API key expired. Please renew the API key." } }],
  ["Gemini: no key", 400, { error: { code: 400, message: "Missing or invalid Authorization header." } }],
  ["xAI", 400, { code: "invalid argument", error: "Incorrect API key provided: ab***yz. See the console." }],
  ["a gateway", 400, { error: { message: "who are you", code: "invalid_api_key" } }],
])("a refused key: %s, %d", (_server, status, body, type) => {
  expect(kindOf(status, body, type)).toBe("key_refused");
});

test.each<[what: string, status: number, body: unknown]>([
  ["a 400 of another kind", 400, { error: { message: "temperature is too high", code: "invalid_value" } }],
  ["a 400 by a content filter", 400, azure],
  ["a 400 that repeats a prompt about keys", 400, { detail: [{ input: JSON.stringify(gemini), msg: "too long" }] }],
  ["a bill", 402, { error: { message: "Insufficient Balance" } }],
  ["a page of 502", 502, CLOUDFLARE_PAGE],
  ["a 404", 404, { error: { message: "no such model" } }],
  ["a 429 that speaks of policy", 429, { error: "rate limit policy" }],
])("neither: %s", (_what, status, body) => {
  expect(kindOf(status, body)).toBe(null);
});

test("only the beginning of a long body is read, whatever it contains", () => {
  expect(kindOf(403, `${"[".repeat(1_000_000)}`)).toBe("forbidden");
  expect(kindOf(403, `${"a content ".repeat(100_000)}`)).toBe("forbidden");
  expect(kindOf(403, `${CLOUDFLARE_PAGE}${"x".repeat(1_000_000)}`, "text/html")).toBe("prompt_refused");
});
