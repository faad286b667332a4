/** What isolates ask of those who count requests, and what they are told. */
export interface RequestsAsk {
  /** Requests a minute. */
  readonly limit: number;
  /** How many are asked for. */
  readonly want: number;
  /** Of the block before: requests that were not made (negative: that were made beyond it). */
  readonly unused: number;
}

export interface RequestsGrant {
  readonly granted: number;
  /** What is left to be granted now. */
  readonly remaining: number;
  /** Milliseconds until one more may be granted; 0 if it may be now. */
  readonly retryMs: number;
  /** Milliseconds until the whole limit is there again. */
  readonly resetMs: number;
}
