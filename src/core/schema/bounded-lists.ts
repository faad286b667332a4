/**
 * Schemas of lists from outside. A schema that checks every item takes microseconds for each, and makes an issue for
 * each wrong one; one reply may have millions of items. So items are counted before they are checked, and lists of
 * numbers are checked without a schema.
 */
import * as z from "zod";

const MOST_ID = 2 ** 31 - 1;

/** A list of at most so many items, each parsed by `schema`. */
export function listOf<Item extends z.ZodType>(schema: Item, most: number) {
  const few = z.custom<unknown[]>((value) => Array.isArray(value) && value.length <= most, {
    error: `is not a list of at most ${most}`,
  });
  return few.pipe(z.array(schema));
}

/** Token ids: they are stored in 32 bits, where a larger number would become another token's id. */
export const Ids = z.custom<readonly number[]>((value) => isListOf(value, isTokenId), {
  error: "is not a list of ids",
});

export const Numbers = z.custom<readonly number[]>((value) => isListOf(value, Number.isFinite), {
  error: "is not a list of numbers",
});

/** Entries for sampled tokens, as vLLM and OpenAI send them. */
export const Logprobs = z.custom<readonly { readonly logprob: number }[]>((value) => isListOf(value, hasLogprob), {
  error: "is not a list of logprobs",
});

/** Whether a JSON value has more than `most` values, including itself; stops counting there. */
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
