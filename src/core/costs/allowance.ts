/**
 * What a run with `max_cost_micros` may still spend: upper bounds of calls, the budgets they are paid from, and how
 * much of the cap the run has granted. Pure. All amounts are whole micro-dollars; tokens are rounded up call by call,
 * so no sum is below the actual use.
 *
 * Invariants. Σ spent + Σ granted ≤ cap after every function here, as long as no call costs more than its bound. A call
 * is only sent if its bound fits into its budget. A call of unknown cost counts with its bound.
 */

/** The prices that count against the cap: the endpoint owner's and the platform's together. */
export interface CostPrices {
  /** Micro-dollars for a million tokens. */
  readonly input: number;
  readonly output: number;
  /** Micro-dollars per answered call. */
  readonly call: number;
}

/** The maximal size of a call, in tokens. */
export interface CallSize {
  readonly prompt_tokens: number;
  /** Maximal tokens of the answer; null if there is no limit. */
  readonly most_tokens: number | null;
}

/** The bound of a call without a limit: no budget covers it. */
const NO_BOUND = Number.MAX_SAFE_INTEGER;
const MILLION = 1_000_000n;

interface Tokens {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}

export function callCost({ input, output, call }: CostPrices, { prompt_tokens, completion_tokens }: Tokens): number {
  const product = BigInt(prompt_tokens) * BigInt(input) + BigInt(completion_tokens) * BigInt(output);
  return Number((product + MILLION - 1n) / MILLION) + call;
}

export function callBound(prices: CostPrices, { prompt_tokens, most_tokens }: CallSize): number {
  if (most_tokens === null) return NO_BOUND;
  return Math.min(NO_BOUND, callCost(prices, { prompt_tokens, completion_tokens: most_tokens }));
}

/** Calls of unknown cost. `micros`: the sum of their bounds. */
export interface LostCalls {
  readonly calls: number;
  readonly micros: number;
}
export const NO_CALLS: LostCalls = { calls: 0, micros: 0 };

/** The budget of one rollout, or of one scoring group while its judges are asked. */
export interface Purse {
  /** The total that the run has granted so far. It grows, and is only reduced down to what is spent. */
  readonly ceiling: number;
  /** The cost of finished calls, and the bounds of lost ones. */
  readonly spent: number;
  /** The reserved bounds of open calls, and the number of those calls. */
  readonly held: number;
  readonly open: number;
  readonly lost: LostCalls;
}

export function newPurse(ceiling: number, spent = 0): Purse {
  return { ceiling, spent, held: 0, open: 0, lost: NO_CALLS };
}

/** Whether the budget covers another call. */
export function covers({ ceiling, spent, held }: Purse, bound: number): boolean {
  return spent + held + bound <= ceiling;
}

/** Reserves the bound of a call: to be stored before the call is sent. */
export function holdCall(purse: Purse, bound: number): Purse {
  return { ...purse, held: purse.held + bound, open: purse.open + 1 };
}

/** A call has finished and cost `cost`: 0 if it was refused. */
export function settleCall(purse: Purse, bound: number, cost: number): Purse {
  return { ...purse, spent: purse.spent + cost, held: purse.held - bound, open: purse.open - 1 };
}

/** The outcome of a call is unknown. */
export function loseCall(purse: Purse, bound: number): Purse {
  const lost = withCalls(purse.lost, { calls: 1, micros: bound });
  return { ...settleCall(purse, bound, bound), lost };
}

/** The same for all open calls: their process ended, or nothing waits for them any longer. */
export function loseOpen(purse: Purse): Purse {
  const { held, open, lost } = purse;
  if (open === 0) return purse;
  const all = withCalls(lost, { calls: open, micros: held });
  return { ...purse, spent: purse.spent + held, held: 0, open: 0, lost: all };
}

/** One request for a grant asks for so many turns, if the run has enough left. */
export const TURNS_PER_ASK = 4;
/** Typical bytes of a token: the estimate by which prompts grow from turn to turn. */
const BYTES_PER_TOKEN = 4;

/** A rollout's request to its run: `need` for the next call, `wish` for some more. */
export interface Wanted {
  readonly need: number;
  readonly wish: number;
}

export function wantedFor(prices: CostPrices, size: CallSize): Wanted {
  const need = callBound(prices, size);
  const { most_tokens } = size;
  if (most_tokens === null) return { need, wish: need };
  let wish = 0;
  for (let turn = 0; turn < TURNS_PER_ASK; turn += 1) {
    const prompt_tokens = size.prompt_tokens + turn * most_tokens * BYTES_PER_TOKEN;
    wish += callBound(prices, { prompt_tokens, most_tokens });
  }
  return { need, wish: Math.min(NO_BOUND, wish) };
}

/** The accounting of a run's cap. */
export interface CapBook {
  /** The cost of everything that has ended; lost calls count with their bounds. */
  readonly spent: number;
  /** Grants to running rollouts and to scoring groups whose judges are asked, including what they have spent. */
  readonly out: number;
  /** The part of `spent` that is reserved for lost calls. */
  readonly lost: LostCalls;
  /** The reservations for lost calls that were released: they no longer count. */
  readonly released: LostCalls;
}
export const NEW_CAP: CapBook = { spent: 0, out: 0, lost: NO_CALLS, released: NO_CALLS };

/**
 * What may still be granted. Below 0 if calls cost more than their bounds, or if released calls cost something after
 * all.
 */
export function capRoom(cap: number, { spent, out }: CapBook): number {
  return cap - spent - out;
}

/** Grants `by` more; a negative number returns it. */
export function letOut(book: CapBook, by: number): CapBook {
  return { ...book, out: book.out + by };
}

/** What a rollout or a scoring group used of a run's cap. */
export interface Spending {
  /** In micro-dollars, lost calls at their bounds; 0 in a run without a cap. */
  readonly micros: number;
  readonly lost: LostCalls;
}

/** A grant has ended: the spent part stays spent, the rest is available again. */
export function closeAllowance(book: CapBook, ceiling: number, { micros, lost }: Spending): CapBook {
  return { ...book, spent: book.spent + micros, out: book.out - ceiling, lost: withCalls(book.lost, lost) };
}

/** Releases the reservations for lost calls, except those of grants that are still open. */
export function releaseHolds(book: CapBook): CapBook {
  const { spent, lost, released } = book;
  return { ...book, spent: spent - lost.micros, lost: NO_CALLS, released: withCalls(released, lost) };
}

/** The reservation for a rollout or scoring group that has not reported its spending. */
export interface LostHold extends LostCalls {
  readonly released: boolean;
}

/**
 * A late report of spending replaces the reservation. If the reservation was released, the spending is added, even if
 * it is more than what is left, but without the bounds of its own lost calls, which were released with the reservation.
 */
export function replaceHold(book: CapBook, hold: LostHold, { micros, lost }: Spending): CapBook {
  if (hold.released) return { ...book, spent: book.spent + micros - lost.micros };
  const others = { calls: book.lost.calls - hold.calls, micros: book.lost.micros - hold.micros };
  return { ...book, spent: book.spent - hold.micros + micros, lost: withCalls(others, lost) };
}

export function withCalls(some: LostCalls, more: LostCalls): LostCalls {
  return { calls: some.calls + more.calls, micros: some.micros + more.micros };
}

export interface CeilingAsk extends Wanted {
  /** What the requester has spent so far, including lost calls. It has no open call. */
  readonly spent: number;
}

/**
 * The new total grant of a requester. If its next call does not fit, it returns what it has not spent, and waits:
 * others may be able to finish with that. `sharers`: the rest is divided by so many; beyond its next call none gets
 * more than its part.
 */
export function ceilingFor(
  room: number,
  before: number,
  { spent, need, wish }: CeilingAsk,
  sharers: number,
): { readonly ceiling: number; readonly granted: boolean } {
  if (room >= 0 && spent + need <= before) return { ceiling: before, granted: true };
  const most = room + before - spent;
  if (need > most) return { ceiling: spent, granted: false };
  const share = Math.floor(most / Math.max(1, sharers));
  return { ceiling: spent + Math.min(wish, Math.max(need, share)), granted: true };
}
