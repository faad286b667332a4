/** 1 when the reference stands somewhere in the output. An empty reference stands in every text, so it cannot be used. */
import * as z from "zod";
import { plainText, TEXT_OPTIONS, type TextOptions } from "./plain-text.ts";
import { MalformedReferenceError, scorer } from "./scorer.ts";

export const includes = scorer(
  z.strictObject(TEXT_OPTIONS),
  (options) => (output, reference) =>
    plainText(output, options).includes(needle(reference, options)) ? 1 : 0,
);

/** 1 when the output begins with the reference. */
export const startsWith = scorer(
  z.strictObject(TEXT_OPTIONS),
  (options) => (output, reference) =>
    plainText(output, options).startsWith(needle(reference, options)) ? 1 : 0,
);

function needle(reference: string, options: TextOptions): string {
  const plain = plainText(reference, options);
  if (plain === "") throw new MalformedReferenceError("it is empty");
  return plain;
}
