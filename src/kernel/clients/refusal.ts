/**
 * Turns a refusal into the `openai` SDK's error: from a reply whose status is an error, or from an error inside a reply
 * of status 200; and reads such errors. Pure.
 */

import { JSONRepairError, jsonrepair } from "jsonrepair";
import { APIError } from "openai/core/error";
import { ModelError, PolicyRefusalError } from "../../contract/errors.ts";
import { isRecord } from "../../contract/json.ts";
import { endingOf } from "../../core/rollout/finish-reason.ts";
import { errorWords, type ReplyError } from "../../core/rollout/reply-error.ts";
import { isContextFull } from "./context-full.ts";
import { type ErrorWords, wordsOfError } from "./error-words.ts";
import { refusalKind } from "./refusal-kind.ts";

const [OK, BAD_REQUEST, FORBIDDEN] = [200, 400, 403];

/** The error as the SDK reads it: `error` in a JSON body, or the body if it is the error itself, or the text. */
export function refusalOf({ status, headers }: Response, text: string): APIError {
  const said = jsonIn(text) ?? cutJson(text);
  if (!said) return APIError.generate(status, undefined, text, headers);
  return APIError.generate(
    status,
    { error: typeof said === "object" ? errorMember(said) : undefined },
    undefined,
    headers,
  );
}

/** Maximum length that is repaired: the time of a repair may grow with the square of the length. */
const LONGEST_REPAIRED = 16 * 1024;

/**
 * The JSON of a refusal that was cut at the read limit, repaired. Null if the text is not JSON, or has no error text.
 */
function cutJson(text: string): unknown {
  const cut = /^\s*[{[]/.test(text) ? jsonIn(text.slice(0, LONGEST_REPAIRED), parseCut) : null;
  const { words, codes } = wordsOfError(cut, "");
  return words.some((said) => said !== "") || codes.length > 0 ? cut : null;
}

/** Throws SyntaxError. */
function parseCut(text: string): unknown {
  try {
    return JSON.parse(jsonrepair(text));
  } catch (thrown) {
    throw thrown instanceof JSONRepairError ? new SyntaxError(thrown.message) : thrown;
  }
}

/**
 * OpenAI's `error`, if it has information that the other members lack. Many frameworks put the name of the status there
 * and the message elsewhere; Databricks does so with the message of another provider.
 */
function errorMember(said: object): unknown {
  const { error, ...others } = said as Readonly<Record<string, unknown>>;
  if ("external_model_message" in others) return said;
  if (isRecord(error) || Array.isArray(error)) return Object.keys(error).length > 0 ? error : said;
  return typeof error === "string" && Object.keys(others).length === 0 ? error : said;
}

/** Null if the text is not JSON, or is nested too deeply. */
function jsonIn(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError || thrown instanceof RangeError) return null;
    throw thrown;
  }
}

/**
 * An error in a reply of status 200, as if it had come with the status that it names. Without a status it counts as
 * temporary, unless a policy refused the prompt.
 */
export function failureInside({ status, error }: ReplyError, headers: Headers): Error {
  if (status !== null) return APIError.generate(status, { error }, undefined, headers);
  const full = isContextFull({ status: OK, body: { error }, text: "" });
  if (full) return APIError.generate(BAD_REQUEST, { error }, undefined, headers);
  const kind = refusalKind({ status: FORBIDDEN, content_type: null, text: jsonOf(error) });
  return kind === "prompt_refused" ? new PolicyRefusalError(error.message) : new ModelError(error.message);
}

/** The error's own text, codes and fields, without what it repeats of the request. */
export function wordsOfRefusal(refusal: APIError): ErrorWords {
  return wordsOfError(bodyOf(refusal), refusal.message);
}

/** Null if the refusal is plain text. */
export function bodyOf({ error }: APIError): { readonly error: unknown } | null {
  return error === undefined ? null : { error };
}

/** The text as received, as far as the SDK kept it. For a refusal without a body the SDK has a text of its own. */
export function textOf({ message, error }: APIError): string {
  if (error !== undefined) return jsonOf({ error });
  return message.endsWith("status code (no body)") ? "" : message;
}

/** A policy or a moderator refused the prompt, with any status: by its code, or by a text that is typical for a 403. */
export function isRefusedPrompt(refusal: APIError): boolean {
  const kind = refusalKind({ status: FORBIDDEN, content_type: null, text: textOf(refusal) });
  return hasPolicyCode(refusal) || kind === "prompt_refused";
}

export function hasPolicyCode(refusal: APIError): boolean {
  return wordsOfRefusal(refusal).codes.some((code) => endingOf(code) === "refused_by_policy");
}

/** The SDK's message, or the message of the provider behind the server if that is given too. */
export function messageOf(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const error: unknown = thrown instanceof APIError ? thrown.error : null;
  const metadata = isRecord(error) ? error["metadata"] : null;
  const { status } = Object(thrown);
  return isRecord(metadata) && typeof metadata["raw"] === "string" ? `${status} ${errorWords(error)}` : message;
}

/** Milliseconds, from either form of `Retry-After`: seconds, or a date. */
export function retryAfter(headers: Headers | undefined): number | null {
  const exact = Number(headers?.get("retry-after-ms") ?? Number.NaN);
  if (exact >= 0 && exact < Number.POSITIVE_INFINITY) return exact;
  const asked = headers?.get("retry-after") ?? null;
  if (asked === null || asked.trim() === "") return null;
  const seconds = Number(asked);
  const ms = Number.isNaN(seconds) ? Date.parse(asked) - Date.now() : seconds * 1000;
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

/** Empty if the value is nested too deeply to be written. */
function jsonOf(body: unknown): string {
  try {
    return JSON.stringify(body ?? null);
  } catch (thrown) {
    if (thrown instanceof RangeError) return "";
    throw thrown;
  }
}
