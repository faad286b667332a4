/** What a server says went wrong, in whichever shape it says so: short, and without the key it was sent. */
import { withoutKey } from "./without-key.ts";

const LONGEST_SAID = 200;

/** Null for what is no JSON. */
export function parsedJson(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return null;
    throw thrown;
  }
}

/** OpenAI's `error.message`, vLLM's and FastAPI's `message` and `detail`, a validation's `detail[0].msg`; else empty. */
export function saidIn(body: unknown, api_key: string | null): string {
  const [error, detail] = [member(body, "error"), member(body, "detail")];
  const invalid = Array.isArray(detail) ? member(detail[0], "msg") : undefined;
  const candidates = [member(error, "message"), error, member(body, "message"), detail, invalid];
  const message = candidates.find((candidate) => typeof candidate === "string");
  return typeof message === "string" ? shortly(message, api_key) : "";
}

/** The key goes before the cut: a cut through it would leave a part. */
export function shortly(text: string, api_key: string | null): string {
  return withoutKey(text, api_key).slice(0, LONGEST_SAID);
}

/** A member of what may be anything. */
export function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
