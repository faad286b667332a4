/**
 * What one rollout may spend and has spent, as it is kept with the rollout: part of its head, so that a call is paid for in
 * the write of its intent. Pure; the rules are those of core/costs/allowance.ts.
 *
 * Invariants. What is read back from storage has no call under way: that of an instance before is answered by the turn that
 * was written behind the head, or it is lost. Outside a run with a cap nothing is paid for, and lost calls are counted.
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
  /** How often it asked its run for more. */
  readonly asks: number;
  /** How often in a row it was told to wait, and until when it does (epoch ms). */
  readonly waits: number;
  readonly again_at: number;
}

/** What is asked for with an ask of this number. */
export interface PurseAsk extends Wanted {
  readonly asks: number;
  readonly spent: number;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;

export function openPurse({ ceiling, base }: Pick<RolloutBudget, "ceiling" | "base">): RolloutPurse {
  return { ...newPurse(ceiling, base), asks: 0, waits: 0, again_at: 0 };
}

/** As it goes on in a fresh instance. `answer`: the turn that was written after the purse; null for none. */
export function resumedPurse(
  purse: RolloutPurse,
  answer: Turn | null,
  budget: RolloutBudget | undefined,
): RolloutPurse {
  const settled = answer === null || purse.open === 0 ? purse : { ...purse, ...answered(purse, answer, budget) };
  return { ...settled, ...loseOpen(settled) };
}

/** Right before a call leaves. */
export function withCall(purse: RolloutPurse, bound: number): RolloutPurse {
  return { ...purse, ...holdCall(loseOpen(purse), bound), waits: 0, again_at: 0 };
}

/** What came of the call under way; of one that never left nothing. */
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

/** A reply that does not say what it took is lost in the same way. */
function answered(purse: Purse, { usage }: Pick<Turn, "usage">, budget: RolloutBudget | undefined): Purse {
  if (usage === null) return loseCall(purse, purse.held);
  return settleCall(purse, purse.held, budget === undefined ? 0 : callCost(budget.prices, usage));
}

export function mayCall(purse: RolloutPurse, bound: number): boolean {
  return covers(purse, bound);
}

/** It pays for no other call before it has asked. */
export function withoutRest(purse: RolloutPurse): RolloutPurse {
  return { ...purse, ceiling: Math.min(purse.ceiling, purse.spent + purse.held) };
}

/** It asks for more, and gives back what it has not spent: to be written before the ask leaves. */
export function asking(purse: RolloutPurse): RolloutPurse {
  const { spent } = loseOpen(purse);
  return { ...purse, ...loseOpen(purse), ceiling: spent, asks: purse.asks + 1 };
}

export function afterAsk(purse: RolloutPurse, { ceiling }: AllowanceReply, now: number): RolloutPurse {
  if (ceiling !== null) return { ...purse, ceiling, waits: 0, again_at: 0 };
  const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(purse.waits, 10));
  // Those that wait in one object ask again together.
  const again_at = Math.ceil((now + wait) / FIRST_WAIT_MS) * FIRST_WAIT_MS;
  return { ...purse, waits: purse.waits + 1, again_at };
}

/** What it took, at its end. */
export function spendingOf(purse: RolloutPurse, budget: RolloutBudget | undefined): Spending {
  const { spent, lost } = loseOpen(purse);
  return { micros: budget === undefined ? 0 : spent, lost };
}
