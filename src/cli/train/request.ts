/** What a training asks the platform for: the run itself, and the eval that is made before and after it. */
import type { EvalRequestInput } from "../../contract/eval-request.ts";
import { EvalRequest } from "../../contract/eval-request.ts";
import { TrainingRequest, type TrainingRequestInput } from "../../contract/training-request.ts";
import type { Connection } from "../connect.ts";
import { datasetInRequest, withUploadedRows } from "../dataset-argument.ts";
import { completePlay } from "../eval/request.ts";
import { usageError } from "../exit.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type TrainingDefaults, type TrainingSettings, trainingDefaults } from "./arguments.ts";

/** Where nothing is known of the trainer. */
const STEPS_OF_OTHERS = 100;

export interface TrainingPlan {
  readonly training: TrainingRequestInput;
  /** Null where none is wanted. */
  readonly evaluation: EvalRequestInput | null;
}

/** Fills what the settings leave open; uploads their rows where they are too many to travel with a run. */
export async function planTraining(
  settings: TrainingSettings,
  connection: Connection,
  { say }: Pick<Terminal, "say">,
  signal: AbortSignal,
): Promise<TrainingPlan> {
  const { dataset, trainer } = settings;
  const embedded = trainer.kind === "embedded";
  if (embedded) refuseWithoutPolicy(connection);
  const draft = dataset === null ? settings.draft : { ...settings.draft, dataset: datasetInRequest(dataset) };
  const choice = { force: settings.force, policyOnly: embedded, say };
  const { environment, played } = await completePlay(draft, connection, choice);
  const defaults = trainingDefaults(environment.id);
  const shared = await withUploadedRows(played, dataset, { client: connection.client, say, signal });
  return {
    training: trainingRequest(shared, settings, defaults),
    evaluation: evalRequest(shared, settings.evalExamples),
  };
}

/** It sends weights to the policy server beside a platform, which one elsewhere does not have. */
function refuseWithoutPolicy({ policyUrl, url }: Connection): void {
  if (policyUrl !== null) return;
  throw usageError(
    `--trainer: ${url} has no bundled policy to train: set the model with -m, its endpoint with -b, and your own trainer: pull or push:URL`,
    "trainer",
  );
}

function trainingRequest(
  shared: EvalRequestInput,
  { training, trainer, evalExamples }: TrainingSettings,
  defaults: TrainingDefaults,
): TrainingRequestInput {
  const { kind: _, ...played }: EvalRequestInput & Record<string, unknown> = shared;
  const { learning_rate: _rate, passes: _passes, loss: _loss, batch_rollouts, ...limits } = defaults;
  const measured = { ...limits, batch_size: { rollouts: batch_rollouts } };
  return {
    ...(trainer.kind === "embedded" ? measured : { max_steps: STEPS_OF_OTHERS }),
    trainer: trainer.kind === "push" ? { delivery: "push", url: trainer.url } : {},
    ...played,
    ...training,
    ...holdoutOf(played["holdout"], evalExamples),
    kind: "training",
  };
}

/** All that the evals play, and more where a file asks for it; what is no number is left to whoever refuses it. */
function holdoutOf(asked: unknown, evalExamples: number): { readonly holdout?: number } {
  if (asked === undefined) return { holdout: evalExamples };
  return typeof asked === "number" ? { holdout: Math.max(asked, evalExamples) } : {};
}

/** The first tasks of this seed and order, each once: those that a training run with this seed and `holdout` leaves alone. */
function evalRequest(shared: EvalRequestInput, num_examples: number): EvalRequestInput | null {
  if (num_examples === 0) return null;
  const request: EvalRequestInput & Record<string, unknown> = { ...shared };
  // A request from a file has the training's own fields, too.
  for (const name of Object.keys(TrainingRequest.shape)) {
    if (!Object.hasOwn(EvalRequest.shape, name)) delete request[name];
  }
  return { ...request, kind: "eval", num_examples, rollouts_per_example: 1 };
}
