/**
 * Schemas of lists that come from outside. A schema that looks at every item costs microseconds and, where each is
 * wrong, a note each: the millions of items that fit into one reply are counted before they are looked at, and lists of
 * numbers are looked at by hand.
 */
import * as z from "zod";

const MOST_ID = 2 ** 31 - 1;

/** At most so many items, each of which `schema` then reads. */
export function listOf<Item extends z.ZodType>(schema: Item, most: number) {
  const few = z.custom<unknown[]>((value) => Array.isArray(value) && value.length <= most, {
    error: `is not a list of at most ${most}`,
  });
  return few.pipe(z.array(schema));
}

/** Of tokens: they are kept in 32 bits, where any other number would become another token's. */
export const Ids = z.custom<readonly number[]>((value) => isListOf(value, isTokenId), {
  error: "is not a list of ids",
});

export const Numbers = z.custom<readonly number[]>((value) => isListOf(value, Number.isFinite), {
  error: "is not a list of numbers",
});

/** Entries as vLLM and OpenAI send them for sampled tokens. */
export const Logprobs = z.custom<readonly { readonly logprob: number }[]>((value) => isListOf(value, hasLogprob), {
  error: "is not a list of logprobs",
});

/** Whether a JSON value holds more than `most` values, itself included; no more of it is looked at than that. */
export function holdsMore(value: unknown, most: number): boolean {
  const open: unknown[] = [value];
  for (let count = 1; open.length > 0; count += 1) {
    const next = open.pop();
    if (count + open.length > most) return true;
    if (typeof next !== "object" || next === null) continue;
    for (const name in next) {
      open.push(Reflect.get(next, name));
      if (count + open.length > most) return true;
    }
  }
  return false;
}

function isListOf(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isItem);
}

function isTokenId(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MOST_ID;
}

function hasLogprob(entry: unknown): boolean {
  const isEntry = typeof entry === "object" && entry !== null && "logprob" in entry;
  return isEntry && Number.isFinite(entry.logprob);
}
