/** Numbers in texts: `1,234.5`, `-3`, `2e5`, `$18`. */
import { MalformedReferenceError } from "./scorer.ts";

const NUMBER = /(?:(?<![\w)])[-−+])?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?/g;

/** The last number of a text; null when it holds none. A minus after a digit or a letter is no sign. */
export function lastNumber(text: string): number | null {
  let last: string | undefined;
  // One at a time: a reply may be nothing but numbers.
  for (const [number] of text.matchAll(NUMBER)) last = number;
  const value = last === undefined ? Number.NaN : asNumber(last);
  return Number.isFinite(value) ? value : null;
}

/** The number that a reference is. */
export function referenceNumber(reference: string): number {
  const value = asNumber(reference.trim().replace(/^\$/, ""));
  if (reference.trim() !== "" && Number.isFinite(value)) return value;
  throw new MalformedReferenceError(`${JSON.stringify(reference.slice(0, 40))} is no number`);
}

function asNumber(text: string): number {
  return Number(text.replaceAll(",", "").replace("−", "-"));
}
