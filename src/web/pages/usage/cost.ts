/** Adds up what usage cost: the calls of models, and what the platform charged. Pure; amounts are micro-dollars. */
import type { UsageBucket, UsageResult } from "../../../billing/wire.ts";
import { dollarsText, NOTHING } from "../../components/format.ts";

export interface UsageCost {
  readonly policy: number;
  readonly judges: number;
  readonly platform: number;
  readonly rollouts: number;
  readonly scored: number;
  readonly tokens: number;
  /** Calls of the policy and of judges. */
  readonly calls: number;
  readonly judgeCalls: number;
  /** Those whose cost is unknown: it is in no sum. */
  readonly unpriced: number;
}

export function costOf(results: readonly UsageResult[]): UsageCost {
  const sum = (of: (result: UsageResult) => number) => results.reduce((all, result) => all + of(result), 0);
  const calls = sum((result) => result.calls + result.judge_calls);
  return {
    policy: sum(({ policy_micros }) => policy_micros),
    judges: sum(({ judge_micros }) => judge_micros),
    platform: sum(({ cost_micros }) => cost_micros),
    rollouts: sum(({ rollouts }) => rollouts),
    scored: sum(({ scored }) => scored),
    tokens: sum(
      (result) => result.input_tokens + result.output_tokens + result.judge_input_tokens + result.judge_output_tokens,
    ),
    calls,
    judgeCalls: sum(({ judge_calls }) => judge_calls),
    unpriced: Math.max(0, calls - sum(({ priced_calls }) => priced_calls)),
  };
}

export function costOfBuckets(buckets: readonly UsageBucket[]): UsageCost {
  return costOf(buckets.flatMap(({ results }) => results));
}

export function totalOf({ policy, judges, platform }: UsageCost): number {
  return policy + judges + platform;
}

/** The total. If the cost of some calls is unknown, the total is a lower bound, and the text says so. */
export function totalText(cost: UsageCost): string {
  const total = totalOf(cost);
  if (cost.unpriced === 0) return dollarsText(total);
  return total === 0 ? "unknown" : `${dollarsText(total)} or more`;
}

/** What calls of models cost, judges included. */
export function modelsText(cost: UsageCost): string {
  return totalText({ ...cost, platform: 0 });
}

/**
 * What calls of judges cost. Usage does not say whether the calls without a price are those of judges: the text says so,
 * and it is "unknown" only if some of them must be.
 */
export function judgesText({ judges, judgeCalls, calls, unpriced }: UsageCost): string {
  if (judgeCalls === 0) return NOTHING;
  if (unpriced === 0) return dollarsText(judges);
  const policyCalls = calls - judgeCalls;
  if (judges === 0 && unpriced > policyCalls) return "unknown";
  return `at least ${dollarsText(judges)}; some calls have no price`;
}
