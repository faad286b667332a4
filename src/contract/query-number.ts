/**
 * Numbers as a query, a path or a header writes them. One number has one way to be written: what JavaScript would read as
 * a number as well (`0x10`, ` 10`, `+5`, for a whole number also `1e2`) is refused, since its sender meant something else.
 */
import * as z from "zod";

const WHOLE = /^(0|[1-9]\d*)$/;
/** As JSON has it. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i;

export function wholeNumber(least: number, most?: number) {
  const number = z.int({ error: "must be a whole number, in digits" }).min(least);
  return z.preprocess((text) => read(text, WHOLE), most === undefined ? number : number.max(most));
}

export const PlainNumber = z.preprocess((text) => read(text, NUMBER), z.number({ error: "must be a number" }));

function read(text: unknown, form: RegExp): unknown {
  return typeof text === "string" && form.test(text) ? Number(text) : text;
}
