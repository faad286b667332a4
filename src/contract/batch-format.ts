/** The trainers' formats in which a batch can be read, and the query that selects one (docs/training-data.md). */
import * as z from "zod";
import { wholeNumber } from "./primitives.ts";

export const BatchFormat = z.enum(["neutral", "prime-rl", "trl", "trl-rollout", "tinker", "slime", "verl", "skyrl"]);
export type BatchFormat = z.infer<typeof BatchFormat>;

/** Maximum of tokens of one packed sequence. */
const LONGEST_PACK = 1_048_576;
const MOST_RANKS = 4096;

/** The query of a batch in a format. All fields but `format` are for prime-rl's packing. */
export const FORMAT_QUERY = {
  format: BatchFormat.optional().describe(
    "a trainer's own format: rows with advantages or rewards, instead of the manifest",
  ),
  seq_len: wholeNumber(2, LONGEST_PACK)
    .optional()
    .describe("tokens of one packed sequence; `prime-rl` needs it")
    .meta({ example: 32_768 }),
  ranks: wholeNumber(1, MOST_RANKS).optional().describe("data ranks of the trainer; 1 if absent").meta({ example: 4 }),
  rank: wholeNumber(0, MOST_RANKS - 1)
    .optional()
    .describe("the rank to read for, from 0; 0 if absent")
    .meta({ example: 0 }),
  pad_to_multiple_of: wholeNumber(1, 4096)
    .optional()
    .describe("packed sequences are padded to a multiple of it; 1 if absent")
    .meta({ example: 8 }),
} as const;

export interface PackingQuery {
  /** Tokens of one packed sequence; a longer row is cut. */
  readonly seq_len: number;
  /** Data ranks of the trainer (1). */
  readonly ranks?: number | undefined;
  /** The data rank, from 0, whose packed sequences are returned (0). */
  readonly rank?: number | undefined;
  /** The length of a packed sequence in tokens is padded to a multiple of this (1). */
  readonly pad_to_multiple_of?: number | undefined;
}

/** A parsed format query. */
export type FormatQuery =
  | { readonly format: Exclude<BatchFormat, "prime-rl"> }
  | ({ readonly format: "prime-rl" } & PackingQuery);
