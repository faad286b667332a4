/**
 * Takes secrets out of what environment code hands back: state, messages, errors. An environment may use a secret, but
 * what is stored, shown and logged must not hold it, whatever a service it called repeated to it.
 */

import { CUT } from "../contract/shown-text.ts";

/** Shorter ones are left: they would be found in texts that have nothing to do with them. */
export const SHORTEST = 6;
/** What a cut that says so left of a secret is found in such texts, too. */
const SHORTEST_BEGINNING = 4;

const MARK = "[secret]";
/** A shorter text was not cut anywhere. */
const CUT_FROM = 200;

/** Gives the JSON with "[secret]" wherever a text holds one of the secrets, and the value itself when it holds none. */
export function redact<T>(value: T, secrets: readonly string[]): T {
  const found = secrets.filter((secret) => secret.length >= SHORTEST);
  if (found.length === 0) return value;
  const forms = found.flatMap((secret) => [...formsOf(secret), ...quotedBegins(secret)]);
  return mapTexts(withoutForms(value, forms, MARK), (text) => withoutCut(text, found)) as T;
}

/** What a parser of JSON quotes of a text that begins with the secret: V8 says `"sk-1234567"... is not valid JSON`. */
function quotedBegins(secret: string): string[] {
  const lengths = Array.from({ length: 8 }, (_, more) => SHORTEST + more);
  return lengths.map((length) => `${secret.slice(0, length)}"...`);
}

/** A secret as it is, and as it stands inside a JSON text: a tool's result is one. */
export function formsOf(secret: string): readonly string[] {
  const written = JSON.stringify(secret).slice(1, -1);
  return written === secret ? [secret] : [written, secret];
}

/** Gives the JSON with `mark` in place of each of these texts, in texts and in names. What holds none is not copied. */
export function withoutForms<T>(value: T, forms: readonly string[], mark: string): T {
  // The longest first: one that is part of another would leave the rest of it.
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

/** A text is cut before secrets are taken out of it: where the cut went through one, its beginning goes as well. */
function withoutCut(text: string, secrets: readonly string[]): string {
  const [end = "", ...before] = text.split(CUT).toReversed();
  // Whoever cuts by himself leaves no mark.
  const last = text.length < CUT_FROM ? end : withoutBeginning(end, secrets, SHORTEST);
  const pieces = before.map((piece) => withoutBeginning(piece, secrets, SHORTEST_BEGINNING));
  return [last, ...pieces].toReversed().join(CUT);
}

function withoutBeginning(text: string, secrets: readonly string[], least: number): string {
  const most = Math.max(...secrets.map((secret) => endsWithBeginning(text, secret)));
  return most < least ? text : `${text.slice(0, text.length - most)}${MARK}`;
}

/** How much of the beginning of the secret the text ends with. */
function endsWithBeginning(text: string, secret: string): number {
  let length = secret.length - 1;
  while (length > 0 && !text.endsWith(secret.slice(0, length))) length -= 1;
  return length;
}
