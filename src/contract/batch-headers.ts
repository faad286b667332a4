/** Headers of a batch that is read in a trainer's own format. */

/** `sha256` of the batch's manifest, to be compared with the `sha256` in the lease. */
export const BATCH_SHA256_HEADER = "x-batch-sha256";
/** How many rows were longer than `seq_len` and were cut. */
export const CUT_ROWS_HEADER = "x-cut-rows";
