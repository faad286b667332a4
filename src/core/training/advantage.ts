/**
 * Advantages: how much better a rollout is than its group. A registry of pure functions.
 *
 * Invariants. A member without a reward has no advantage and is in no mean, so it changes no other member's advantage.
 * If all rewards of a group are equal (in the sense of same-score.ts), all its advantages are exactly 0. Advantages of
 * mean-type estimators sum to 0; with a length-weighted baseline, their products with the sampled tokens do. A group is
 * credited once, from final rewards, by one function that the run and its consumer share, so that the samples are built
 * with the same numbers that are trained.
 */
import { isSameScore } from "../../contract/same-score.ts";
import type { Advantage, LengthPenalty, LossAggregation } from "../../contract/training-request.ts";

/** Raised when a formula changes: batches record which version made their numbers. */
const VERSION = 1;

/**
 * The advantage of each reward over its group; null for a missing reward, and always null for `none`. `tokens`: sampled
 * tokens of each member, for a length-weighted baseline.
 */
export function advantagesOf(
  advantage: Advantage,
  rewards: readonly (number | null)[],
  tokens: readonly number[] = [],
): (number | null)[] {
  if (advantage.name === "none") return rewards.map(() => null);
  const given = rewards.filter(isGiven);
  const weights = tokens.filter((_, at) => isGiven(rewards[at] ?? null));
  const credited = estimate(advantage, given, weights);
  let next = 0;
  return rewards.map((reward) => (isGiven(reward) ? (credited[next++] ?? null) : null));
}

/**
 * mean: prime-rl orchestrator/algo/grpo.py (also `length_weighted_baseline`), and Dr. GRPO. mean_std: TRL grpo_trainer.py (sample, 1e-4), its
 * asynchronous worker (population, 1e-8), verl core_algos.py (sample, 1e-6, raw). rloo: verl core_algos.py; `r_i` minus
 * the mean of the others. max_rl: prime-rl algo/max_rl.py, https://arxiv.org/abs/2602.02710.
 */
function estimate(
  advantage: Exclude<Advantage, { name: "none" }>,
  rewards: readonly number[],
  tokens: readonly number[],
): readonly number[] {
  if (rewards.length === 1 && "singleton" in advantage && advantage.singleton === "raw") {
    return rewards;
  }
  if (allEqual(rewards)) return rewards.map(() => 0);
  const mean = meanOf(rewards);
  const apart = rewards.map((reward) => reward - mean);
  switch (advantage.name) {
    case "mean": {
      if (!isLengthWeighted(advantage)) return apart;
      const baseline = weightedMean(rewards, tokens) ?? mean;
      return rewards.map((reward) => reward - baseline);
    }
    case "mean_std": {
      const count = advantage.sd === "sample" ? apart.length - 1 : apart.length;
      const spread = Math.sqrt(sum(apart.map((deviation) => deviation ** 2)) / count) + advantage.eps;
      return apart.map((deviation) => deviation / spread);
    }
    case "rloo": {
      const scale = rewards.length / (rewards.length - 1);
      return apart.map((deviation) => scale * deviation);
    }
    case "max_rl":
      return apart.map((deviation) => (mean > 0 ? deviation / mean : 0));
  }
}

/** Whether the advantages of a group depend on the lengths of its members, besides their rewards. */
export function isLengthWeighted(advantage: Advantage): boolean {
  return advantage.name === "mean" && advantage.length_weighted_baseline === true;
}

/** `sum(L_i * r_i) / sum(L_i)`; null if no token was sampled. */
function weightedMean(rewards: readonly number[], tokens: readonly number[]): number | null {
  const total = sum(tokens);
  return total > 0 ? sum(rewards.map((reward, at) => reward * (tokens[at] ?? 0))) / total : null;
}

/** Tokens and turns of one rollout: `output` was sampled, `total` includes its input. */
export interface Lengths {
  readonly output: number;
  readonly total: number;
  readonly turns: number;
}

/**
 * Rewards minus a fraction of their mean for length: `r - mean * (output * o / max(o) + input * i / max(i) + turns * t
 * / max(t))`, the maxima over the scored members and at least 1 (prime-rl, orchestrator/algo/grpo.py).
 */
export function penalise(
  penalty: LengthPenalty,
  members: readonly { readonly reward: number | null; readonly lengths: Lengths }[],
): (number | null)[] {
  const scored = members.filter(({ reward }) => isGiven(reward));
  const mean = meanOf(scored.flatMap(({ reward }) => reward ?? []));
  const of = (measure: (lengths: Lengths) => number) => {
    const most = Math.max(1, ...scored.map(({ lengths }) => measure(lengths)));
    return (lengths: Lengths) => measure(lengths) / most;
  };
  const [output, input, turns] = [of((l) => l.output), of((l) => l.total - l.output), of((l) => l.turns)];
  return members.map(({ reward, lengths }) => {
    if (!isGiven(reward)) return null;
    const share = penalty.output * output(lengths) + penalty.input * input(lengths) + penalty.turns * turns(lengths);
    return reward - mean * share;
  });
}

/** The estimator in the form of a batch's manifest. */
export function estimatorOf(
  { name, ...params }: Advantage,
  penalty: LengthPenalty | null,
  loss_aggregation?: LossAggregation,
): { name: string; version: number; params: Record<string, unknown> } {
  const shaped = penalty === null ? params : { ...params, length_penalty: penalty };
  const all = loss_aggregation === undefined ? shaped : { ...shaped, loss_aggregation };
  return { name, version: VERSION, params: all };
}

export interface GroupRules {
  readonly advantage: Advantage;
  readonly length_penalty: LengthPenalty | null;
  readonly min_group_size: number;
  readonly zero_variance: "drop" | "refill" | "keep";
}

export interface CreditedGroup {
  /** What happens to the group: it trains, all its members have the same reward, or too few members are left. */
  readonly verdict: "train" | "zero_variance" | "too_few";
  readonly survivors: number;
  /** The mean of the unmodified rewards; null without survivors. */
  readonly mean: number | null;
  /** In the order of the members. */
  readonly advantages: readonly (number | null)[];
}

const NOTHING: Lengths = { output: 0, total: 0, turns: 0 };

/** `reward` is null for a member that failed, was cancelled or has no score. */
export function creditGroup(
  rules: GroupRules,
  members: readonly { readonly reward: number | null; readonly lengths?: Lengths | undefined }[],
): CreditedGroup {
  const rewards =
    rules.length_penalty === null
      ? members.map(({ reward }) => reward)
      : penalise(
          rules.length_penalty,
          members.map(({ reward, lengths }) => ({ reward, lengths: lengths ?? NOTHING })),
        );
  const scored = members.flatMap(({ reward }) => (isGiven(reward) ? [reward] : []));
  const tokens = members.map(({ lengths }) => (lengths ?? NOTHING).output);
  const advantages = advantagesOf(rules.advantage, rewards, tokens);
  return {
    verdict: verdictOf(rules, rewards.filter(isGiven), advantages),
    survivors: scored.length,
    mean: scored.length === 0 ? null : meanOf(scored),
    advantages,
  };
}

function verdictOf(
  rules: GroupRules,
  rewards: readonly number[],
  advantages: readonly (number | null)[],
): CreditedGroup["verdict"] {
  if (rewards.length === 0 || rewards.length < rules.min_group_size) return "too_few";
  const flat =
    rules.advantage.name === "none"
      ? allEqual(rewards)
      : advantages.every((advantage) => advantage === null || advantage === 0);
  return flat && rules.zero_variance !== "keep" ? "zero_variance" : "train";
}

function isGiven(reward: number | null): reward is number {
  return reward !== null && Number.isFinite(reward);
}

function allEqual(rewards: readonly number[]): boolean {
  return rewards.length === 0 || isSameScore(Math.min(...rewards), Math.max(...rewards));
}

function meanOf(rewards: readonly number[]): number {
  return sum(rewards) / Math.max(1, rewards.length);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
