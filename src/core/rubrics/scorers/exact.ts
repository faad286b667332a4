/** 1 when output and reference are the same text. */
import * as z from "zod";
import { plainText, TEXT_OPTIONS } from "./plain-text.ts";
import { scorer } from "./scorer.ts";

export const exact = scorer(
  z.strictObject(TEXT_OPTIONS),
  (options) => (output, reference) =>
    plainText(output, options) === plainText(reference, options) ? 1 : 0,
);
