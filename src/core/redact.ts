/**
 * Takes secrets out of what environment code hands back: state, messages, errors. An environment may use a secret, but
 * what is stored, shown and logged must not hold it, whatever a service it called repeated to it.
 */

import { CUT } from "./short-text.ts";

/** Shorter ones are left: they would be found in texts that have nothing to do with them. */
const SHORTEST = 6;
/** What a cut left of a secret is found in such texts, too. */
const SHORTEST_BEGINNING = 4;

/** The same JSON with "[secret]" wherever a text holds one of the secrets. The value itself when there are none. */
export function redact<T>(value: T, secrets: readonly string[]): T {
  const found = secrets.filter((secret) => secret.length >= SHORTEST).flatMap(formsOf);
  // The longest first: one that is part of another would leave the rest of it.
  found.sort((one, other) => other.length - one.length);
  return found.length === 0 ? value : (withoutThem(value, found) as T);
}

/** A secret as it is, and as it stands inside a JSON text: a tool's result is one. */
export function formsOf(secret: string): readonly string[] {
  const written = JSON.stringify(secret).slice(1, -1);
  return written === secret ? [secret] : [written, secret];
}

function withoutThem(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === "string") {
    const whole = secrets.reduce((text, secret) => text.replaceAll(secret, "[secret]"), value);
    return whole.includes(CUT) ? withoutCut(whole, secrets) : whole;
  }
  if (Array.isArray(value)) return value.map((item) => withoutThem(item, secrets));
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([name, inner]) => [
    withoutThem(name, secrets),
    withoutThem(inner, secrets),
  ]);
  return Object.fromEntries(members);
}

/** A text is cut before secrets are taken out of it: where the cut went through one, its beginning goes as well. */
function withoutCut(text: string, secrets: readonly string[]): string {
  return text
    .split(CUT)
    .map((before, at, all) => (at === all.length - 1 ? before : withoutBeginning(before, secrets)))
    .join(CUT);
}

function withoutBeginning(text: string, secrets: readonly string[]): string {
  const lengths = secrets.map((secret) => endsWithBeginning(text, secret));
  const most = Math.max(...lengths);
  return most < SHORTEST_BEGINNING ? text : `${text.slice(0, text.length - most)}[secret]`;
}

/** How much of the beginning of the secret the text ends with. */
function endsWithBeginning(text: string, secret: string): number {
  let length = secret.length - 1;
  while (length > 0 && !text.endsWith(secret.slice(0, length))) length -= 1;
  return length;
}
