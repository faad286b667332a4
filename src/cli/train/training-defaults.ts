/**
 * How the embedded trainer learns where nothing else is asked: measured, on two cores, to reach its best within a minute.
 * docs/training.md has the curves.
 */
export interface TrainingDefaults {
  readonly max_steps: number;
  readonly group_size: number;
  readonly batch_rollouts: number;
  readonly max_concurrent: number;
  /** Paces the rollouts: tasks are begun no further ahead than what this lets train. */
  readonly max_off_policy_steps: number;
  readonly learning_rate: number;
  /** How often a batch is trained on: more where its rollouts take longer than its training. */
  readonly passes: number;
  readonly loss: string;
}

const USUAL: TrainingDefaults = {
  max_steps: 48,
  group_size: 8,
  batch_rollouts: 64,
  max_concurrent: 64,
  max_off_policy_steps: 2,
  learning_rate: 5e-4,
  passes: 1,
  loss: "dppo",
};

/** Where an environment needs something else. */
const KNOWN: Readonly<Record<string, Partial<TrainingDefaults>>> = {
  calculator: { max_steps: 26, learning_rate: 2.5e-4, passes: 6 },
  "guess-number": { learning_rate: 7e-4 },
};

/** By the environment's id. */
export function trainingDefaults(environment: string): TrainingDefaults {
  return { ...USUAL, ...KNOWN[environment] };
}
