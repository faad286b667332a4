/**
 * The budget of one rollout: what it may spend and has spent. It is stored in the rollout's head, so a call is paid for
 * in the write of its intent. Pure; the rules are in core/costs/call-budget.ts.
 *
 * Invariants. A budget that is read from storage has no call in flight: the call of an earlier instance was answered by
 * the turn written after the head, or it is lost. Without a cap nothing is paid for, but lost calls are counted.
 */
import type { Turn } from "../../contract/trajectory.ts";
import {
  type CallBudget,
  callCost,
  covers,
  loseCall,
  loseOpen,
  newCallBudget,
  reserveCall,
  type Spending,
  settleCall,
  type Wanted,
} from "../../core/costs/call-budget.ts";
import type { TurnOutcome, Unasked } from "../messages/endpoint-wire.ts";
import type { BudgetReply, RolloutBudget } from "../messages/wire.ts";

export interface RolloutCallBudget extends CallBudget {
  /** How many requests it sent to its run. */
  readonly asks: number;
  /** How often in a row it had to wait, and until when it waits (epoch milliseconds). */
  readonly waits: number;
  readonly again_at: number;
}

/** The request with this number. */
export interface BudgetAsk extends Wanted {
  readonly asks: number;
  readonly spent: number;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;

export function openCallBudget({ ceiling: quota, base }: Pick<RolloutBudget, "ceiling" | "base">): RolloutCallBudget {
  return { ...newCallBudget(quota, base), asks: 0, waits: 0, again_at: 0 };
}

/** The budget in a fresh instance. `answer`: the turn that was written after it; null if there is none. */
export function resumedCallBudget(
  callBudget: RolloutCallBudget,
  answer: Turn | null,
  budget: RolloutBudget | undefined,
): RolloutCallBudget {
  const settled =
    answer === null || callBudget.open === 0 ? callBudget : { ...callBudget, ...answered(callBudget, answer, budget) };
  return { ...settled, ...loseOpen(settled) };
}

/** Reserves the bound of a call, right before the call is sent. */
export function withCall(callBudget: RolloutCallBudget, bound: number): RolloutCallBudget {
  return { ...callBudget, ...reserveCall(loseOpen(callBudget), bound), waits: 0, again_at: 0 };
}

/** Settles the call in flight by its outcome. If none was sent, nothing changes. */
export function afterOutcome(
  callBudget: RolloutCallBudget,
  outcome: TurnOutcome | Unasked,
  budget: RolloutBudget | undefined,
): RolloutCallBudget {
  if (callBudget.open === 0) return callBudget;
  const settled = settledBy(callBudget, outcome, budget);
  return { ...callBudget, ...settled, spent: settled.spent + costOfRefusals(outcome, budget) };
}

/** What replies cost that could not be used, for which the call was repeated at once. */
function costOfRefusals(outcome: TurnOutcome | Unasked, budget: RolloutBudget | undefined): number {
  if (budget === undefined || !("refusals" in outcome)) return 0;
  const used = outcome.refusals?.flatMap(({ usage }) => usage ?? []) ?? [];
  return used.reduce((sum, usage) => sum + callCost(budget.prices, usage), 0);
}

function settledBy(
  callBudget: RolloutCallBudget,
  outcome: TurnOutcome | Unasked,
  budget: RolloutBudget | undefined,
): CallBudget {
  const { held } = callBudget;
  switch (outcome.kind) {
    case "answered":
      return answered(callBudget, outcome.response, budget);
    case "aborted":
      return loseCall(callBudget, held);
    case "failed":
      if (outcome.usage !== undefined) return answered(callBudget, { usage: outcome.usage }, budget);
      return outcome.lost === true ? loseCall(callBudget, held) : settleCall(callBudget, held, 0);
    case "prompt_too_long":
    case "unusable":
    case "unasked":
      return settleCall(callBudget, held, 0);
  }
}

/** A reply without usage counts like a lost call. */
function answered(
  callBudget: CallBudget,
  { usage }: Pick<Turn, "usage">,
  budget: RolloutBudget | undefined,
): CallBudget {
  if (usage === null) return loseCall(callBudget, callBudget.held);
  return settleCall(callBudget, callBudget.held, budget === undefined ? 0 : callCost(budget.prices, usage));
}

export function mayCall(callBudget: RolloutCallBudget, bound: number): boolean {
  return covers(callBudget, bound);
}

/** It pays for no further call before the next request. */
export function withoutRest(callBudget: RolloutCallBudget): RolloutCallBudget {
  return { ...callBudget, ceiling: Math.min(callBudget.ceiling, callBudget.spent + callBudget.held) };
}

/** A request for more money, which returns what is not spent. Must be written before the request is sent. */
export function asking(callBudget: RolloutCallBudget): RolloutCallBudget {
  const { spent } = loseOpen(callBudget);
  return { ...callBudget, ...loseOpen(callBudget), ceiling: spent, asks: callBudget.asks + 1 };
}

export function afterAsk(
  callBudget: RolloutCallBudget,
  { ceiling: quota }: BudgetReply,
  now: number,
): RolloutCallBudget {
  if (quota !== null) return { ...callBudget, ceiling: quota, waits: 0, again_at: 0 };
  const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(callBudget.waits, 10));
  // Rounded, so that rollouts that wait in one object ask again together.
  const again_at = Math.ceil((now + wait) / FIRST_WAIT_MS) * FIRST_WAIT_MS;
  return { ...callBudget, waits: callBudget.waits + 1, again_at };
}

/** What it spent, at its end. */
export function spendingOf(callBudget: RolloutCallBudget, budget: RolloutBudget | undefined): Spending {
  const { spent, lost } = loseOpen(callBudget);
  return { micros: budget === undefined ? 0 : spent, lost };
}
