/** A run with its own cap, and the faults while it spends it: decided by its seed alone. */
import { seededRandom } from "../../../src/contract/random.ts";
import type { QueueFaults, Victim } from "../plan.ts";

export interface CapPlan {
  readonly seed: number;
  readonly rollouts: number;
  readonly max_concurrent: number;
  /** Micro-dollars. */
  readonly max_cost_micros: number;
  /** For every call, of the policy and of the judge. */
  readonly max_tokens: number;
  readonly latency_ms: number;
  /** The chance that a call fails, and the chance that an answer between objects is lost. */
  readonly model_faults: number;
  readonly lost_replies: number;
  readonly queues: QueueFaults;
  /** After this many requests of the model, as a share of the rollouts. */
  readonly kills: readonly { readonly victim: Victim; readonly at: number }[];
}

/** Micro-dollars for a million tokens. */
export const POLICY_PRICES = { input_per_mtok_micros: 400_000, output_per_mtok_micros: 1_600_000 };
export const JUDGE_PRICES = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 5_000_000 };

/** With more rollouts than this their calls take longer, so that the maximum is in flight at once. */
const ROLLOUTS_AT_ONCE = 120;

/** The approximate cost of one rollout with its judge at these prices, without faults. */
const MICROS_EACH = 4000;

export function capPlanOf(seed: number, rollouts: number): CapPlan {
  const random = seededRandom("cap plan", seed);
  const upTo = (least: number, most: number) => least + random() * (most - least);
  const kills = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
    const victim: Victim = random() < 0.6 ? "workerd" : "group";
    return { victim, at: upTo(0.1, 2) };
  });
  return {
    seed,
    rollouts,
    max_concurrent: Math.min(500, Math.ceil(rollouts * upTo(0.65, 1))),
    max_cost_micros: Math.round(rollouts * MICROS_EACH * upTo(0.15, 1.2)),
    max_tokens: Math.round(upTo(50, 800)),
    latency_ms: Math.round(upTo(50, 400) * Math.max(1, rollouts / ROLLOUTS_AT_ONCE)),
    model_faults: random() < 0.8 ? upTo(0.01, 0.12) : 0,
    lost_replies: random() < 0.6 ? upTo(0.01, 0.08) : 0,
    queues: { drop: upTo(0, 0.1), duplicate: upTo(0, 0.3), delay: upTo(0, 0.1), reorder: upTo(0, 1) },
    kills: kills.toSorted((a, b) => a.at - b.at),
  };
}
