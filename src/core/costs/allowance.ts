/**
 * What a run with `max_cost_micros` may still spend: bounds of calls, the purses they are paid from, and what the run lets
 * out. Pure. All amounts are whole micro-dollars; tokens are rounded up call by call, so no sum is below what was used.
 *
 * Invariants. Σ spent + Σ let out ≤ cap after every function here, as long as no call takes more than its bound. A call
 * leaves only while its bound is within its purse. A call of which nobody knows what it took has taken its bound.
 */

/** What tokens and calls count for against the cap: the owner's prices and the platform's together. */
export interface CostPrices {
  /** Micro-dollars for a million tokens. */
  readonly input: number;
  readonly output: number;
  /** Micro-dollars of each call that is answered. */
  readonly call: number;
}

/** What a call can take at most, in tokens. */
export interface CallSize {
  readonly prompt_tokens: number;
  /** Tokens it may be answered with; null where nobody limits them. */
  readonly most_tokens: number | null;
}

/** The bound of a call without one: no purse covers it. */
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

/** Calls of which nobody knows what they took. `micros`: their bounds. */
export interface LostCalls {
  readonly calls: number;
  readonly micros: number;
}
export const NO_CALLS: LostCalls = { calls: 0, micros: 0 };

/** What one rollout, or one unit while its judges are asked, may spend and has spent. */
export interface Purse {
  /** What the run has let it spend in all. It grows, and falls only to what is spent. */
  readonly ceiling: number;
  /** Calls whose end is known, and lost ones. */
  readonly spent: number;
  /** Bounds of the calls under way, and how many those are. */
  readonly held: number;
  readonly open: number;
  readonly lost: LostCalls;
}

export function newPurse(ceiling: number, spent = 0): Purse {
  return { ceiling, spent, held: 0, open: 0, lost: NO_CALLS };
}

/** Whether another call may leave. */
export function covers({ ceiling, spent, held }: Purse, bound: number): boolean {
  return spent + held + bound <= ceiling;
}

/** A call leaves: to be written before it does. */
export function holdCall(purse: Purse, bound: number): Purse {
  return { ...purse, held: purse.held + bound, open: purse.open + 1 };
}

/** A call came to its end, and `cost` is what it took: 0 for one that was refused. */
export function settleCall(purse: Purse, bound: number, cost: number): Purse {
  return { ...purse, spent: purse.spent + cost, held: purse.held - bound, open: purse.open - 1 };
}

/** Nobody saw what came of a call. */
export function loseCall(purse: Purse, bound: number): Purse {
  const lost = withCalls(purse.lost, { calls: 1, micros: bound });
  return { ...settleCall(purse, bound, bound), lost };
}

/** The same of all that are under way: their process ended, or nobody waits for them any more. */
export function loseOpen(purse: Purse): Purse {
  const { held, open, lost } = purse;
  if (open === 0) return purse;
  const all = withCalls(lost, { calls: open, micros: held });
  return { ...purse, spent: purse.spent + held, held: 0, open: 0, lost: all };
}

/** Turns that one ask is to be enough for, while the run has that much. */
export const TURNS_PER_ASK = 4;
/** Bytes of a token, mostly: by so much prompts grow from turn to turn. */
const BYTES_PER_TOKEN = 4;

/** What a rollout asks its run for: `need` for the next call, `wish` for some more. */
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

/** What a run has counted so far. */
export interface CapBook {
  /** What is known of everything that has ended, lost calls at their bounds. */
  readonly spent: number;
  /** What is let out: to rollouts that run and units whose judges are asked, what they have spent included. */
  readonly out: number;
  /** Of what is spent, what is held for lost calls. */
  readonly lost: LostCalls;
  /** What was held for lost calls until it was released: it counts no more. */
  readonly released: LostCalls;
}
export const NEW_CAP: CapBook = { spent: 0, out: 0, lost: NO_CALLS, released: NO_CALLS };

/** What may still be let out. Below 0 where calls took more than their bounds, or what was released was used after all. */
export function capRoom(cap: number, { spent, out }: CapBook): number {
  return cap - spent - out;
}

/** `by` more is let out; less than 0: given back. */
export function letOut(book: CapBook, by: number): CapBook {
  return { ...book, out: book.out + by };
}

/** What something took out of a run's cap. */
export interface Spending {
  /** In micro-dollars, lost calls at their bounds; 0 in a run without a cap. */
  readonly micros: number;
  readonly lost: LostCalls;
}

/** What was let out has ended: what was spent of it is gone, the rest is there again. */
export function closeAllowance(book: CapBook, ceiling: number, { micros, lost }: Spending): CapBook {
  return { ...book, spent: book.spent + micros, out: book.out - ceiling, lost: withCalls(book.lost, lost) };
}

/** Lost calls count no more; those of whoever is still let out something are not among them. */
export function releaseHolds(book: CapBook): CapBook {
  const { spent, lost, released } = book;
  return { ...book, spent: spent - lost.micros, lost: NO_CALLS, released: withCalls(released, lost) };
}

/** What is held for somebody of whom nobody has heard. */
export interface LostHold extends LostCalls {
  readonly released: boolean;
}

/**
 * Somebody of whom nobody had heard says what was spent, in place of what is held for it. Behind a release that is added,
 * though it may be more than is left: but not the bounds of its own lost calls, which were released with the hold.
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
  /** What the asker has spent so far, lost calls included. Nothing of its is under way. */
  readonly spent: number;
}

/**
 * The ceiling of whoever asks. One whose next call does not fit gives back what it has not spent, and waits: others may end
 * with it. `sharers`: how many the rest is to be enough for; nobody gets more than its share beyond its next call.
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
