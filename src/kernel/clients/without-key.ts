/**
 * Removes an API key from texts and replies. Some endpoints repeat the key they were sent, in refusals or in replies;
 * their texts are stored and shown, so the key must not be in them.
 *
 * Invariants. A key is removed in its plain form, in the forms of JSON and URLs, and in base64. Servers that check no
 * key still get one ("EMPTY", "sk-no-key-required"), which may appear in ordinary text. So a key that is a plain word,
 * a number, or made of such words is not secret, and replies keep it.
 */
import { formsOf, SHORTEST, withoutForms } from "../../core/redact.ts";

const MARK = "[key]";
/** This many first characters identify a key: a text may have been cut in the middle of a key. */
const BEGIN = 8;
/** A word or a number this short occurs in ordinary text. */
const PLAIN = /^([a-z]{1,19}|\d{1,19})$/i;
/** ASCII characters in an escaped form that JSON does not require. */
const ESCAPED = /\\(u00[2-7]|\/)/;
/** The words that keys without meaning are made of. */
const FILLERS =
  /^(|a|any|anything|api|apikey|auth|bearer|default|demo|dummy|empty|example|fake|foo|bar|here|ignored|key|lm|local|my|na|needed|no|nokey|none|not|null|ollama|placeholder|required|sk|studio|test|todo|token|unused|used|vllm|x+|your)$/;

/** The parsed reply without the key. This is what is stored of the answer of a model, a judge or a probe. */
export function replyWithoutKey<T>(reply: T, api_key: string | null): T {
  return api_key === null || !isSecret(api_key) ? reply : withoutForms(reply, writtenForms(api_key), MARK);
}

/**
 * Whether the text of a reply may contain the key. Searching a whole parsed reply takes many times as long as parsing
 * it, so it is done only if this is true. If JSON may write the key in several ways, the result is true.
 */
export function mayHoldKey(textOf: () => string, api_key: string | null): boolean {
  if (api_key === null || !isSecret(api_key)) return false;
  const text = textOf();
  if (/["\\]/.test(api_key) || ESCAPED.test(text)) return true;
  return writtenForms(api_key).some((form) => text.includes(form));
}

/**
 * An error text without the key, or without the beginning of it that a cut left. A plain word is removed only as a
 * word.
 */
export function withoutKey(text: string, api_key: string | null): string {
  if (api_key === null || api_key === "") return text;
  if (isSecret(api_key)) {
    const forms = writtenForms(api_key);
    return forms.reduce(withoutBegin, withoutForms(text, forms, MARK));
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

/** The base64 forms of a key at each of its three offsets, without the characters that depend on its neighbours. */
function inBase64(key: string): string[] {
  const cores = [0, 1, 2].map((before) => {
    const text = btoa(" ".repeat(before) + key);
    return text.slice(Math.ceil((before * 4) / 3), Math.floor(((before + key.length) * 4) / 3));
  });
  return cores.flatMap((core) => [core, core.replaceAll("+", "-").replaceAll("/", "_")]);
}

/** `form`: one of the written forms of the key. */
function withoutBegin(text: string, form: string): string {
  const [first = "", ...pieces] = text.split(form.slice(0, BEGIN));
  const rest = form.slice(BEGIN);
  if (form.length <= BEGIN) return text;
  return [first, ...pieces.map((piece) => MARK + piece.slice(sharedLength(piece, rest)))].join("");
}

function sharedLength(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}
