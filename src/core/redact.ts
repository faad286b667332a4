/**
 * Removes secrets from everything that environment code returns: state, messages, errors. An environment may use a
 * secret, but stored, shown and logged data must not contain it, even if a called service repeats it.
 */

import { CUT } from "../contract/shown-text.ts";

/** Shorter secrets are not removed: they would be found in unrelated texts. */
export const SHORTEST = 6;
/** Shortest rest of a secret that is removed before the mark of a cut. */
const SHORTEST_BEGINNING = 4;

const MARK = "[secret]";
/** Texts shorter than this were not cut. */
const CUT_FROM = 200;

/** Returns the JSON with "[secret]" for every occurrence of a secret, and the value itself if it has none. */
export function redact<T>(value: T, secrets: readonly string[]): T {
  const found = secrets.filter((secret) => secret.length >= SHORTEST);
  if (found.length === 0) return value;
  const forms = found.flatMap((secret) => [...formsOf(secret), ...quotedBegins(secret)]);
  return mapTexts(withoutForms(value, forms, MARK), (text) => withoutCut(text, found)) as T;
}

/** Beginnings of a secret that a JSON parser quotes in its error: V8 writes `"sk-1234567"... is not valid JSON`. */
function quotedBegins(secret: string): string[] {
  const lengths = Array.from({ length: 8 }, (_, more) => SHORTEST + more);
  return lengths.map((length) => `${secret.slice(0, length)}"...`);
}

/** A secret as it is, and as it is escaped in JSON text: a tool's result may be JSON. */
export function formsOf(secret: string): readonly string[] {
  const written = JSON.stringify(secret).slice(1, -1);
  return written === secret ? [secret] : [written, secret];
}

/**
 * Returns the JSON with `mark` for each occurrence of these texts, in texts and in names. Parts without any are not
 * copied.
 */
export function withoutForms<T>(value: T, forms: readonly string[], mark: string): T {
  // The longest first: replacing a part of a longer one would leave the rest of it.
  const sorted = forms.toSorted((one, other) => other.length - one.length);
  const shortest = sorted.at(-1)?.length ?? 0;
  const marked = (text: string) =>
    text.length < shortest ? text : sorted.reduce((rest, form) => rest.replaceAll(form, () => mark), text);
  return mapTexts(value, marked) as T;
}

function mapTexts(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === "string") return map(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => mapTexts(item, map));
    return items.every((item, at) => item === value[at]) ? value : items;
  }
  const before = Object.entries(value);
  const after = before.map(([name, inner]): [string, unknown] => [map(name), mapTexts(inner, map)]);
  const same = after.every(([name, inner], at) => name === before[at]?.[0] && inner === before[at]?.[1]);
  return same ? value : Object.fromEntries(after);
}

/** A text is cut before secrets are removed: if the cut went through a secret, its beginning is removed as well. */
function withoutCut(text: string, secrets: readonly string[]): string {
  const [end = "", ...before] = text.split(CUT).toReversed();
  // Environment code may cut a text without leaving a mark.
  const last = text.length < CUT_FROM ? end : withoutBeginning(end, secrets, SHORTEST);
  const pieces = before.map((piece) => withoutBeginning(piece, secrets, SHORTEST_BEGINNING));
  return [last, ...pieces].toReversed().join(CUT);
}

function withoutBeginning(text: string, secrets: readonly string[], least: number): string {
  const most = Math.max(...secrets.map((secret) => endsWithBeginning(text, secret)));
  return most < least ? text : `${text.slice(0, text.length - most)}${MARK}`;
}

/** The length of the beginning of the secret with which the text ends. */
function endsWithBeginning(text: string, secret: string): number {
  let length = secret.length - 1;
  while (length > 0 && !text.endsWith(secret.slice(0, length))) length -= 1;
  return length;
}
