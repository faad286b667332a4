/** The error message of a server, in whatever format: short, and without the key of the call. */
import { mayHoldKey, replyWithoutKey, withoutKey } from "./without-key.ts";

const LONGEST_QUOTE = 200;
/** More than a quote: white space and keys are shortened. */
const READ_FOR_QUOTE = 1000;

/** Null if the text is not JSON. */
export function parsedJson(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return null;
    throw thrown;
  }
}

/**
 * OpenAI's `error.message`, vLLM's and FastAPI's `message` and `detail`, a validation's `detail[0].msg`; else empty.
 */
export function quotedWords(body: unknown, api_key: string | null): string {
  const [error, detail] = [member(body, "error"), member(body, "detail")];
  const invalid = Array.isArray(detail) ? member(detail[0], "msg") : undefined;
  const candidates = [member(error, "message"), error, member(body, "message"), detail, invalid];
  const message = candidates.find((candidate) => typeof candidate === "string");
  return typeof message === "string" ? shortly(message, api_key) : "";
}

/** The key is removed before the text is cut: a cut through the key would leave a part of it. */
export function shortly(text: string, api_key: string | null): string {
  return withoutKey(text, api_key).slice(0, LONGEST_QUOTE);
}

/** Spaces, and characters that are not shown. */
const INVISIBLE = /[\s\p{C}]+/gu;
/** A character as HTML writes it: by its number, or by the name of a mark. */
const [NUMBERED, NAMED] = [/&#\w+;/, /&\w+;/];

/**
 * The beginning of a reply that is not JSON, on one line. Empty if it may have the key in a form that is not removed:
 * with other characters in between, or with escapes.
 */
export function beginningOf(reply: string, api_key: string | null): string {
  const clean = replyWithoutKey(reply.slice(0, READ_FOR_QUOTE), api_key);
  const mayBeEscaped = api_key !== null && (NUMBERED.test(clean) || (NAMED.test(clean) && /\W/.test(api_key)));
  if (mayBeEscaped || mayHoldKey(() => clean.replaceAll(INVISIBLE, ""), api_key)) return "";
  return shortly(clean.replaceAll(INVISIBLE, " ").trim(), api_key);
}

/** A member of a value of any type. */
export function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
