/** What a training run's trainer is served by, from the run's own spec: whoever finds its object missing creates it. */
import type { TrainerSpec } from "./training-wire.ts";
import type { RunSpec } from "./wire.ts";

/** Null for a run that trains nothing. */
export function trainerSpecOf({ scope, run_id, training, trainer }: RunSpec): TrainerSpec | null {
  if (training === undefined) return null;
  const { trainer: target, max_steps } = training;
  const { sealed_push_secret, base_url } = trainer ?? { sealed_push_secret: null, base_url: "" };
  return { scope, run_id, target, max_steps, sealed_push_secret, base_url };
}
