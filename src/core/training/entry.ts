/** What a trainer imports from `rollcall/training`: batches and their samples as bytes, and the digests that name them. */

export { batchDigest, CreditLine, creditText, manifestOf, parseCredits } from "./batch.ts";
export {
  decodeRows,
  encodeRows,
  formatOf,
  SampleDecodeError,
  type SampleEncoding,
  SampleRow,
} from "./sample-row.ts";
