/**
 * What more than one schema of the wire is made of, and numbers as a query, a path or a header writes them. One number has
 * one way to be written: what JavaScript would read as a number as well (`0x10`, ` 10`, `+5`, for a whole number also `1e2`)
 * is refused, since its sender meant something else.
 */
import * as z from "zod";

export const Count = z.int().nonnegative();
export const CountsByName = z.record(z.string(), Count);
export const Seconds = z.int().describe("seconds since the epoch");
export const Positive = z.int().min(1);
/** Of a training run, from 1. */
export const Step = Positive;
/** Of the policy's weights, from 0. */
export const Version = Count;
export const Share = z.number().min(0).max(1);
export const MaybeNumber = z.number().nullable();
export const Interval = z.tuple([z.number(), z.number()]).nullable();
/** An object whose members are not ours to name. */
export const AnyObject = z.record(z.string(), z.unknown());

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

/** The envelope every list of the API comes in, as OpenAI's do: the cursor of the next page is `last_id`. */
export function listOf<Item extends z.ZodType>(item: Item, id: string) {
  return z
    .object({
      object: z.literal("list"),
      data: z.array(item),
      first_id: z.string().nullable(),
      last_id: z.string().nullable(),
      has_more: z.boolean(),
    })
    .meta({ id });
}
