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
export interface CallBudget {
  /** The total that the run has granted so far. It grows, and is only reduced down to what is spent. */
  readonly ceiling: number;
  /** The cost of finished calls, and the bounds of lost ones. */
  readonly spent: number;
  /** The reserved bounds of open calls, and the number of those calls. */
  readonly held: number;
  readonly open: number;
  readonly lost: LostCalls;
}

export function newCallBudget(quota: number, spent = 0): CallBudget {
  return { ceiling: quota, spent, held: 0, open: 0, lost: NO_CALLS };
}

/** Whether the budget covers another call. */
export function covers({ ceiling: quota, spent, held }: CallBudget, bound: number): boolean {
  return spent + held + bound <= quota;
}

/** Reserves the bound of a call: to be stored before the call is sent. */
export function reserveCall(callBudget: CallBudget, bound: number): CallBudget {
  return { ...callBudget, held: callBudget.held + bound, open: callBudget.open + 1 };
}

/** A call has finished and cost `cost`: 0 if it was refused. */
export function settleCall(callBudget: CallBudget, bound: number, cost: number): CallBudget {
  return { ...callBudget, spent: callBudget.spent + cost, held: callBudget.held - bound, open: callBudget.open - 1 };
}

/** The outcome of a call is unknown. */
export function loseCall(callBudget: CallBudget, bound: number): CallBudget {
  const lost = withCalls(callBudget.lost, { calls: 1, micros: bound });
  return { ...settleCall(callBudget, bound, bound), lost };
}

/** The same for all open calls: their process ended, or nothing waits for them any longer. */
export function loseOpen(callBudget: CallBudget): CallBudget {
  const { held, open, lost } = callBudget;
  if (open === 0) return callBudget;
  const all = withCalls(lost, { calls: open, micros: held });
  return { ...callBudget, spent: callBudget.spent + held, held: 0, open: 0, lost: all };
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
export interface CapAccounting {
  /** The cost of everything that has ended; lost calls count with their bounds. */
  readonly spent: number;
  /** Grants to running rollouts and to scoring groups whose judges are asked, including what they have spent. */
  readonly out: number;
  /** The part of `spent` that is reserved for lost calls. */
  readonly lost: LostCalls;
  /** The reservations for lost calls that were released: they no longer count. */
  readonly released: LostCalls;
}
export const NEW_CAP: CapAccounting = { spent: 0, out: 0, lost: NO_CALLS, released: NO_CALLS };

/**
 * What may still be granted. Below 0 if calls cost more than their bounds, or if released calls cost something after
 * all.
 */
export function capRemaining(cap: number, { spent, out }: CapAccounting): number {
  return cap - spent - out;
}

/** Grants `by` more; a negative number returns it. */
export function letOut(accounting: CapAccounting, by: number): CapAccounting {
  return { ...accounting, out: accounting.out + by };
}

/** What a rollout or a scoring group used of a run's cap. */
export interface Spending {
  /** In micro-dollars, lost calls at their bounds; 0 in a run without a cap. */
  readonly micros: number;
  readonly lost: LostCalls;
}

/** A grant has ended: the spent part stays spent, the rest is available again. */
export function closeBudget(accounting: CapAccounting, quota: number, { micros, lost }: Spending): CapAccounting {
  return {
    ...accounting,
    spent: accounting.spent + micros,
    out: accounting.out - quota,
    lost: withCalls(accounting.lost, lost),
  };
}

/** Releases the reservations for lost calls, except those of grants that are still open. */
export function releaseReservations(accounting: CapAccounting): CapAccounting {
  const { spent, lost, released } = accounting;
  return { ...accounting, spent: spent - lost.micros, lost: NO_CALLS, released: withCalls(released, lost) };
}

/** The reservation for a rollout or scoring group that has not reported its spending. */
export interface LostReservation extends LostCalls {
  readonly released: boolean;
}

/**
 * A late report of spending replaces the reservation. If the reservation was released, the spending is added, even if
 * it is more than what is left, but without the bounds of its own lost calls, which were released with the reservation.
 */
export function replaceReservation(
  accounting: CapAccounting,
  reservation: LostReservation,
  { micros, lost }: Spending,
): CapAccounting {
  if (reservation.released) return { ...accounting, spent: accounting.spent + micros - lost.micros };
  const others = {
    calls: accounting.lost.calls - reservation.calls,
    micros: accounting.lost.micros - reservation.micros,
  };
  return { ...accounting, spent: accounting.spent - reservation.micros + micros, lost: withCalls(others, lost) };
}

export function withCalls(some: LostCalls, more: LostCalls): LostCalls {
  return { calls: some.calls + more.calls, micros: some.micros + more.micros };
}

export interface QuotaAsk extends Wanted {
  /** What the requester has spent so far, including lost calls. It has no open call. */
  readonly spent: number;
}

/**
 * The new total grant of a requester. If its next call does not fit, it returns what it has not spent, and waits:
 * others may be able to finish with that. `sharers`: the rest is divided by so many; beyond its next call none gets
 * more than its part.
 */
export function quotaFor(
  remaining: number,
  before: number,
  { spent, need, wish }: QuotaAsk,
  sharers: number,
): { readonly ceiling: number; readonly granted: boolean } {
  if (remaining >= 0 && spent + need <= before) return { ceiling: before, granted: true };
  const most = remaining + before - spent;
  if (need > most) return { ceiling: spent, granted: false };
  const fairPart = Math.floor(most / Math.max(1, sharers));
  return { ceiling: spent + Math.min(wish, Math.max(need, fairPart)), granted: true };
}
