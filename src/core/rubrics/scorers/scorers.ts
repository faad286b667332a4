/** The ready scorers by the names that data has for them. docs/scoring.md lists what each computes. */
import type * as z from "zod";
import { bleu, gleu } from "./bleu.ts";
import { choice } from "./choice.ts";
import { exact } from "./exact.ts";
import { f1 } from "./f1.ts";
import { includes, startsWith } from "./includes.ts";
import { jsonDiff } from "./json-diff.ts";
import { jsonSchema } from "./json-schema.ts";
import { levenshtein } from "./levenshtein.ts";
import { listContains } from "./list-contains.ts";
import { math } from "./math.ts";
import { meteor } from "./meteor.ts";
import { numeric, numericDiff } from "./numeric.ts";
import { oneOf } from "./one-of.ts";
import { regex } from "./regex.ts";
import { rouge } from "./rouge.ts";
import type { Scorer } from "./scorer.ts";

export const SCORER_NAMES = [
  "exact",
  "includes",
  "starts_with",
  "one_of",
  "regex",
  "numeric",
  "numeric_diff",
  "f1",
  "levenshtein",
  "rouge",
  "bleu",
  "gleu",
  "meteor",
  "json_schema",
  "json_diff",
  "list_contains",
  "choice",
  "math",
] as const;
type ScorerName = (typeof SCORER_NAMES)[number];

export const scorers = {
  exact,
  includes,
  starts_with: startsWith,
  one_of: oneOf,
  regex,
  numeric,
  numeric_diff: numericDiff,
  f1,
  levenshtein,
  rouge,
  bleu,
  gleu,
  meteor,
  json_schema: jsonSchema,
  json_diff: jsonDiff,
  list_contains: listContains,
  choice,
  math,
} satisfies Readonly<Record<ScorerName, Scorer<z.ZodObject>>>;
