/**
 * The budget of one rollout: what it may spend and has spent. It is stored in the rollout's head, so a call is paid for
 * in the write of its intent. Pure; the rules are in core/costs/allowance.ts.
 *
 * Invariants. A budget that is read from storage has no call in flight: the call of an earlier instance was answered by
 * the turn written after the head, or it is lost. Without a cap nothing is paid for, but lost calls are counted.
 */
import type { Turn } from "../../contract/trajectory.ts";
import {
  callCost,
  covers,
  holdCall,
  loseCall,
  loseOpen,
  newPurse,
  type Purse,
  type Spending,
  settleCall,
  type Wanted,
} from "../../core/costs/allowance.ts";
import type { TurnOutcome, Unasked } from "../messages/endpoint-wire.ts";
import type { AllowanceReply, RolloutBudget } from "../messages/wire.ts";

export interface RolloutPurse extends Purse {
  /** How many requests it sent to its run. */
  readonly asks: number;
  /** How often in a row it had to wait, and until when it waits (epoch milliseconds). */
  readonly waits: number;
  readonly again_at: number;
}

/** The request with this number. */
export interface PurseAsk extends Wanted {
  readonly asks: number;
  readonly spent: number;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;

export function openPurse({ ceiling, base }: Pick<RolloutBudget, "ceiling" | "base">): RolloutPurse {
  return { ...newPurse(ceiling, base), asks: 0, waits: 0, again_at: 0 };
}

/** The budget in a fresh instance. `answer`: the turn that was written after it; null if there is none. */
export function resumedPurse(
  purse: RolloutPurse,
  answer: Turn | null,
  budget: RolloutBudget | undefined,
): RolloutPurse {
  const settled = answer === null || purse.open === 0 ? purse : { ...purse, ...answered(purse, answer, budget) };
  return { ...settled, ...loseOpen(settled) };
}

/** Reserves the bound of a call, right before the call is sent. */
export function withCall(purse: RolloutPurse, bound: number): RolloutPurse {
  return { ...purse, ...holdCall(loseOpen(purse), bound), waits: 0, again_at: 0 };
}

/** Settles the call in flight by its outcome. If none was sent, nothing changes. */
export function afterOutcome(
  purse: RolloutPurse,
  outcome: TurnOutcome | Unasked,
  budget: RolloutBudget | undefined,
): RolloutPurse {
  if (purse.open === 0) return purse;
  const { held } = purse;
  switch (outcome.kind) {
    case "answered":
      return { ...purse, ...answered(purse, outcome.response, budget) };
    case "aborted":
      return { ...purse, ...loseCall(purse, held) };
    case "failed":
      if (outcome.usage !== undefined) return { ...purse, ...answered(purse, { usage: outcome.usage }, budget) };
      return { ...purse, ...(outcome.lost === true ? loseCall(purse, held) : settleCall(purse, held, 0)) };
    case "prompt_too_long":
    case "unusable":
    case "unasked":
      return { ...purse, ...settleCall(purse, held, 0) };
  }
}

/** A reply without usage counts like a lost call. */
function answered(purse: Purse, { usage }: Pick<Turn, "usage">, budget: RolloutBudget | undefined): Purse {
  if (usage === null) return loseCall(purse, purse.held);
  return settleCall(purse, purse.held, budget === undefined ? 0 : callCost(budget.prices, usage));
}

export function mayCall(purse: RolloutPurse, bound: number): boolean {
  return covers(purse, bound);
}

/** It pays for no further call before the next request. */
export function withoutRest(purse: RolloutPurse): RolloutPurse {
  return { ...purse, ceiling: Math.min(purse.ceiling, purse.spent + purse.held) };
}

/** A request for more money, which returns what is not spent. Must be written before the request is sent. */
export function asking(purse: RolloutPurse): RolloutPurse {
  const { spent } = loseOpen(purse);
  return { ...purse, ...loseOpen(purse), ceiling: spent, asks: purse.asks + 1 };
}

export function afterAsk(purse: RolloutPurse, { ceiling }: AllowanceReply, now: number): RolloutPurse {
  if (ceiling !== null) return { ...purse, ceiling, waits: 0, again_at: 0 };
  const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(purse.waits, 10));
  // Rounded, so that rollouts that wait in one object ask again together.
  const again_at = Math.ceil((now + wait) / FIRST_WAIT_MS) * FIRST_WAIT_MS;
  return { ...purse, waits: purse.waits + 1, again_at };
}

/** What it spent, at its end. */
export function spendingOf(purse: RolloutPurse, budget: RolloutBudget | undefined): Spending {
  const { spent, lost } = loseOpen(purse);
  return { micros: budget === undefined ? 0 : spent, lost };
}
