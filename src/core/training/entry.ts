/** The exports of `rollcall/training` for trainers: batches and their samples as bytes, and their digests. */

export { batchDigest, CreditLine, creditText, manifestOf, parseCredits } from "./batch.ts";
export {
  decodeRows,
  encodeRows,
  formatOf,
  SampleDecodeError,
  type SampleEncoding,
  SampleRow,
} from "./sample-row.ts";
