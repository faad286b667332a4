/** The built-in scorers by the names that datasets use. docs/scoring.md describes what each computes. */
import type * as z from "zod";
import { math } from "../math-rubric.ts";
import { choice } from "./choice.ts";
import { jsonDiff, jsonSchema, listContains, oneOf } from "./json.ts";
import { numeric, numericDiff } from "./numeric.ts";
import type { Scorer } from "./scorer.ts";
import { exact, includes, levenshtein, regex, startsWith } from "./text-match.ts";
import { bleu, f1, gleu, meteor, rouge } from "./text-overlap.ts";

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
