/** Refusals as servers send them, and whether one is classified as a full context. */
import { isContextFull } from "../../../src/kernel/clients/context-full.ts";

export type Row = [server: string, status: number, body: unknown];

export function readsAsFull(status: number, body: unknown): boolean {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return isContextFull({ status, body: typeof body === "string" ? null : body, text });
}

/** OpenAI's format, which most servers use. */
export function error(message: string, more: Record<string, unknown> = {}) {
  return { error: { message, type: "invalid_request_error", param: null, code: null, ...more } };
}

/** The format of vLLM and Mistral until 2025. */
export function flat(message: string, more: Record<string, unknown> = {}) {
  return { object: "error", message, type: "BadRequestError", param: null, code: 400, ...more };
}
