/** 1 when output and reference are the same text. */
import * as z from "zod";
import { plainText, TEXT_OPTIONS } from "./plain-text.ts";
import { scorer } from "./scorer.ts";

export const exact = scorer(
  z.strictObject(TEXT_OPTIONS),
  (options) => (output, reference, work) =>
    plainText(output, options, work) === plainText(reference, options, work) ? 1 : 0,
);
