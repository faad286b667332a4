/** 1 when the output is one of the reference's texts: a JSON list, as in `["yes", "y"]`. */
import * as z from "zod";
import { readReferenceList } from "./json-text.ts";
import { plainText, TEXT_OPTIONS } from "./plain-text.ts";
import { scorer } from "./scorer.ts";

export const oneOf = scorer(z.strictObject(TEXT_OPTIONS), (options) => (output, reference, work) => {
  const said = plainText(output, options, work);
  const texts = readReferenceList(reference);
  return texts.some((text) => plainText(asText(text), options, work) === said) ? 1 : 0;
});

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
