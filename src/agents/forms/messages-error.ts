/** The errors of Anthropic's API. */
import type { Refusal } from "./form.ts";

const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/** The field with which a client asks for a conversation that the server keeps. */
export const THREAD = "thread";
/** A tool runner of Anthropic's SDKs that reads this sends its whole conversation from then on. */
const NO_THREADS = { error_code: "thread_unsupported_request", unsupported: [] };

/** `code` and `param` are the platform's: Anthropic's errors do not have them. */
export function messagesError({ status, code, message, param }: Refusal) {
  const type = TYPES[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
  const details = param === THREAD ? { details: NO_THREADS } : {};
  return { type: "error", error: { type, message, code, param, ...details } } as const;
}
