/**
 * Some endpoints repeat the key they were sent, in refusals or in replies; what they say is stored and shown, and the
 * key must be in neither.
 *
 * Invariants. A key is taken out of a reply as it is, as JSON and URLs write it, and out of base64. Servers that check
 * no key are given one all the same ("EMPTY", "sk-no-key-required"), which anybody may write: a key that is a plain
 * word, a number, or made of such words is none, and replies keep it.
 */
import { formsOf, SHORTEST, withoutForms } from "../../core/redact.ts";

const MARK = "[key]";
/** So many characters of a key's begin are as good as a name for it: a text may have been cut right through a key. */
const BEGIN = 8;
/** A word or a number as short as this occurs by itself. */
const PLAIN = /^([a-z]{1,19}|\d{1,19})$/i;
/** ASCII as JSON need not write it. */
const ESCAPED = /\\(u00[2-7]|\/)/;
/** What keys that mean nothing are made of. */
const FILLERS =
  /^(|a|any|anything|api|apikey|auth|bearer|default|demo|dummy|empty|example|fake|foo|bar|here|ignored|key|lm|local|my|na|needed|no|nokey|none|not|null|ollama|placeholder|required|sk|studio|test|todo|token|unused|used|vllm|x+|your)$/;

/** The reply, parsed, without the key: it is what is stored of a model's, a judge's or a probe's answer. */
export function replyWithoutKey<T>(reply: T, api_key: string | null): T {
  return api_key === null || !isSecret(api_key) ? reply : withoutForms(reply, writtenForms(api_key), MARK);
}

/**
 * Whether a reply, as its text, may hold the key: to look through all of one that is parsed takes many times as long as
 * to parse it. What JSON may write in more than one way is looked through.
 */
export function mayHoldKey(textOf: () => string, api_key: string | null): boolean {
  if (api_key === null || !isSecret(api_key)) return false;
  const text = textOf();
  if (/["\\]/.test(api_key) || ESCAPED.test(text)) return true;
  return writtenForms(api_key).some((form) => text.includes(form));
}

/** What is said of a failure, without the key, or the begin of it that a cut has left; a plain word only by itself. */
export function withoutKey(text: string, api_key: string | null): string {
  if (api_key === null || api_key === "") return text;
  if (isSecret(api_key)) {
    return withoutBegin(withoutForms(text, writtenForms(api_key), MARK), api_key);
  }
  const literal = api_key.replaceAll(/\W/g, "\\$&");
  return text.replaceAll(new RegExp(`(?<![\\w-])${literal}(?![\\w-])`, "g"), MARK);
}

function isSecret(key: string): boolean {
  if (key.length < SHORTEST || PLAIN.test(key)) return false;
  const words = key.toLowerCase().split(/[^a-z\d]+/);
  return words.some((word) => !FILLERS.test(word));
}

function writtenForms(key: string): string[] {
  const plain = [...formsOf(key), encodeURIComponent(key), key.replaceAll("/", "\\/")];
  return [...new Set([...plain, ...inBase64(key)])];
}

/** What base64 makes of a key, wherever in the encoded text it begins: what its neighbours have no part in. */
function inBase64(key: string): string[] {
  const cores = [0, 1, 2].map((before) => {
    const text = btoa(" ".repeat(before) + key);
    return text.slice(Math.ceil((before * 4) / 3), Math.floor(((before + key.length) * 4) / 3));
  });
  return cores.flatMap((core) => [core, core.replaceAll("+", "-").replaceAll("/", "_")]);
}

function withoutBegin(text: string, key: string): string {
  const [first = "", ...pieces] = text.split(key.slice(0, BEGIN));
  const rest = key.slice(BEGIN);
  if (key.length <= BEGIN) return text;
  return [first, ...pieces.map((piece) => MARK + piece.slice(sharedLength(piece, rest)))].join("");
}

function sharedLength(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}
