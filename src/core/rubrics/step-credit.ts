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
