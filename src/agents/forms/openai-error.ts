/** The errors of OpenAI's API. */
import type { JsonObject } from "../../contract/json.ts";
import type { Refusal } from "./form.ts";

export function openaiError(refusal: Refusal): JsonObject {
  const { status } = refusal;
  const type = TYPES[status] ?? (status >= 500 ? "server_error" : "invalid_request_error");
  return { error: { ...openaiErrorFields(refusal), type } };
}

export function openaiErrorFields({ code, message, param }: Refusal) {
  return { code, message, param };
}

const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  429: "rate_limit_error",
};
