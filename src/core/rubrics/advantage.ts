/**
 * Advantages: how much better a rollout did than its group.
 *
 * Computed once, from final rewards: the mean leaves out members without one, and such a member has no advantage.
 */

/** For each reward, itself minus the mean of those that are there. */
export function advantagesOf(rewards: readonly (number | null)[]): (number | null)[] {
  const given = rewards.filter((reward) => reward !== null);
  const mean = given.reduce((sum, reward) => sum + reward, 0) / given.length;
  return rewards.map((reward) => (reward === null ? null : reward - mean));
}

/** What one step was worth; null where nobody has said. */
export interface StepCredit {
  readonly reward: number | null;
  readonly advantage: number | null;
}

/** A step's own numbers, and the rollout's for those it has not. */
export function creditOf(step: Partial<StepCredit>, rollout: StepCredit): StepCredit {
  return {
    reward: step.reward ?? rollout.reward,
    advantage: step.advantage ?? rollout.advantage,
  };
}
