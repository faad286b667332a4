/** 1 when the reference stands somewhere in the output. An empty reference stands in every text, so it cannot be used. */
import * as z from "zod";
import { grouped, type Work } from "../work.ts";
import { plainText, TEXT_OPTIONS, type TextOptions } from "./plain-text.ts";
import { MalformedReferenceError, scorer } from "./scorer.ts";

export const includes = scorer(z.strictObject(TEXT_OPTIONS), (options) => (output, reference, work) => {
  const wanted = needle(reference, options, work);
  const text = plainText(output, options, work);
  spendSearch(text, wanted, work);
  return text.includes(wanted) ? 1 : 0;
});

/** 1 when the output begins with the reference. */
export const startsWith = scorer(
  z.strictObject(TEXT_OPTIONS),
  (options) => (output, reference, work) =>
    plainText(output, options, work).startsWith(needle(reference, options, work)) ? 1 : 0,
);

/** Pairs of characters that the engine compares for each step, where it shifts by no more than a table holds. */
const PAIRS = 12_500;

function spendSearch(text: string, wanted: string, work: Work): void {
  const lengths = `${grouped(wanted.length)} characters in ${grouped(text.length)}`;
  work.spend((text.length * wanted.length) / PAIRS, `looking for ${lengths}`);
}

function needle(reference: string, options: TextOptions, work: Work): string {
  const plain = plainText(reference, options, work);
  if (plain === "") throw new MalformedReferenceError("it is empty");
  return plain;
}
