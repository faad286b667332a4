/** Headers of a batch that is read in a trainer's own format. */

/** Of a reply in a format: `sha256` of the batch's manifest, to be held against the lease's. */
export const BATCH_SHA256_HEADER = "x-batch-sha256";
/** How many rows were longer than `seq_len` and are cut to it. */
export const CUT_ROWS_HEADER = "x-cut-rows";
