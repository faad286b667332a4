/** The formats of trainers in which a batch can be read, and what a request says of them (docs/training-data.md). */
import * as z from "zod";
import { wholeNumber } from "./primitives.ts";

export const BatchFormat = z.enum(["neutral", "prime-rl", "trl", "trl-rollout", "tinker", "slime", "verl", "skyrl"]);
export type BatchFormat = z.infer<typeof BatchFormat>;

/** Tokens of one packed sequence at most. */
const LONGEST_PACK = 1_048_576;
const MOST_RANKS = 4096;

/** Beside `format`; all but it are of prime-rl's packing. */
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
  /** Whose share of the packed sequences it is, from 0 (0). */
  readonly rank?: number | undefined;
  /** Tokens of a packed sequence are a multiple of it (1). */
  readonly pad_to_multiple_of?: number | undefined;
}

/** What a batch is asked for as. */
export type FormatQuery =
  | { readonly format: Exclude<BatchFormat, "prime-rl"> }
  | ({ readonly format: "prime-rl" } & PackingQuery);
