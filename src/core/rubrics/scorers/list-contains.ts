/**
 * How much of an expected list was said: entries of the two lists are paired so that the pairs are most alike together (by
 * `levenshtein`, or exactly), and the sum is divided by the length of the longer list, or of the expected one where
 * `allow_extra` says that more may be said. As autoevals' ListContains. Both are JSON lists; an output that is none scores 0.
 */
import * as z from "zod";
import type { Json } from "../../../contract/json.ts";
import { bestAssignment } from "./assignment.ts";
import { readReferenceList, readSaid } from "./json-text.ts";
import { likeness } from "./levenshtein.ts";
import { MalformedReferenceError, scorer, withinCharacters } from "./scorer.ts";

/** Entries of a list: pairing takes the cube of it. An output of more scores 0. */
const ENTRIES = 200;

export const listContains = scorer(
  z.strictObject({
    allow_extra: z.boolean().default(false),
    pairing: z.enum(["levenshtein", "exact"]).default("levenshtein"),
  }),
  ({ allow_extra, pairing }) =>
    withinCharacters((output, reference, work) => {
      const expected = readReferenceList(reference).map(asText);
      if (expected.length > ENTRIES) {
        throw new MalformedReferenceError(`it has more than ${ENTRIES} entries`);
      }
      const said = readSaid(output);
      if (!isList(said) || said.length > ENTRIES) return 0;
      const compare = pairing === "exact" ? sameText : likeness;
      const texts = said.map(asText);
      const scores = expected.map((wanted) => texts.map((text) => compare(text, wanted, work)));
      work.spend(pairingSteps(said.length, expected.length), "pairing the entries of two lists");
      const whole = allow_extra ? expected.length : Math.max(expected.length, said.length);
      return whole === 0 ? 1 : bestAssignment(scores) / whole;
    }),
);

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function asText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The square of the shorter list times the longer one, at some 25 ns. */
function pairingSteps(a: number, b: number): number {
  return (Math.min(a, b) ** 2 * Math.max(a, b)) / 2;
}

function sameText(a: string, b: string): number {
  return a === b ? 1 : 0;
}
