/**
 * When an object that plays rollouts renews its block of places at its fleet, and how long the block is valid. Pure;
 * times are milliseconds. The more objects have a block, the less often each renews it, so that a fleet's object gets
 * about `RENEWALS_PER_S` requests a second. While the fleet is not full, calls that wait for a place make further ones.
 */

const RENEWALS_PER_S = 300;
const LEAST_MS = 100;
const MOST_MS = 5000;
const FRESH_LEAST_MS = 1000;
/** With the next report, a place without a call is given back after this time, or sooner if the fleet is full. */
const IDLE_MS = 1000;
const IDLE_IN_FULL_MS = 100;
/** While the fleet is full, a place that an object has had for this long is given back, so that others get it. */
const KEPT_IN_FULL_MS = 60_000;
/** A call at a free place is declared before the fleet takes the place back. */
const DECLARED_MS = MOST_MS / 2;
/** A request that failed is repeated after this time. */
const REPEAT_MS = 1000;

/** The least time between two reports of an object. `holders`: the objects that have a block. */
export function renewalMs(holders: number): number {
  return Math.min(MOST_MS, Math.max(LEAST_MS, Math.round((1000 * holders) / RENEWALS_PER_S)));
}

/**
 * How long calls may begin at free places without another request. While an object has many calls, it renews its block
 * earlier anyway; if it has few, each gets the newest weights.
 */
export function freshMs(every_ms: number): number {
  return Math.max(FRESH_LEAST_MS, 1.5 * every_ms);
}

/** How long places without a call count. It is longer than two renewals take. */
export function validMs(every_ms: number): number {
  return 2 * every_ms + MOST_MS;
}

/** What an object has to report to its fleet. */
export interface BlockNews {
  /** When the last request was sent. */
  readonly sentAt: number;
  readonly every_ms: number;
  /** The last request failed. */
  readonly failed: boolean;
  /** A call failed, or its reply contradicts its weights. */
  readonly urgent: boolean;
  /** The first call that waits for a place; null: none. */
  readonly wantedAt: number | null;
  /** The first end that was not reported. */
  readonly endedAt: number | null;
  /** A rollout that is over waits for the numbers of its calls' ends. */
  readonly awaited: boolean;
  /** Since when the place that has been free the longest has been free. */
  readonly idleSince: number | null;
  /** A call began at a place that the fleet counts as free, or it is unknown what the fleet counts. */
  readonly undeclared: boolean;
  /** Calls waited because the fleet was full. */
  readonly full: boolean;
}

/** When the next request is due; null: there is nothing to report. */
export function renewAt(news: BlockNews): number | null {
  const { sentAt, failed, every_ms } = news;
  const paced = sentAt + (failed ? Math.max(REPEAT_MS, every_ms) : every_ms);
  const times: number[] = [];
  // In a full fleet most calls get no place: if each were asked for at once, its object would have too many requests.
  if (news.wantedAt !== null) times.push(news.full ? Math.max(paced, news.wantedAt) : news.wantedAt + every_ms / 20);
  if (news.urgent) times.push(failed ? paced : sentAt);
  if (news.undeclared) times.push(paced + DECLARED_MS);
  if (news.awaited) times.push(paced);
  // The next call of the rollout usually takes the place first.
  if (news.endedAt !== null) times.push(Math.max(paced, news.endedAt + every_ms / 2));
  if (news.idleSince !== null) times.push(Math.max(paced, news.idleSince + idleMs(news.full)));
  return times.length === 0 ? null : Math.min(...times);
}

export function idleMs(full: boolean): number {
  return full ? IDLE_IN_FULL_MS : IDLE_MS;
}

/** How long an object may use a place for one call after another. */
export function keptMs(full: boolean): number {
  return full ? KEPT_IN_FULL_MS : Number.POSITIVE_INFINITY;
}
