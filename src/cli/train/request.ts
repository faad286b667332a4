/** Makes the requests of a training: the run itself, and the eval before and after it. */
import type { EvalRequestInput } from "../../contract/eval-request.ts";
import { EvalRequest } from "../../contract/eval-request.ts";
import { TrainingRequest, type TrainingRequestInput } from "../../contract/training-request.ts";
import type { Connection } from "../connect.ts";
import { datasetInRequest, withUploadedRows } from "../dataset-argument.ts";
import { completePlay } from "../eval/request.ts";
import { usageError } from "../exit.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type TrainingDefaults, type TrainingSettings, trainingDefaults } from "./arguments.ts";

/** The number of steps for a trainer whose settings are unknown. */
const STEPS_OF_OTHERS = 100;

export interface TrainingPlan {
  readonly training: TrainingRequestInput;
  /** Null if no evals are requested. */
  readonly evaluation: EvalRequestInput | null;
}

/** Completes the settings; uploads their rows if they are too many for the request. */
export async function planTraining(
  settings: TrainingSettings,
  connection: Connection,
  { log }: Pick<Terminal, "log">,
  signal: AbortSignal,
): Promise<TrainingPlan> {
  const { dataset, trainer } = settings;
  const embedded = trainer.kind === "embedded";
  if (embedded) refuseWithoutPolicy(connection);
  const draft = dataset === null ? settings.draft : { ...settings.draft, dataset: datasetInRequest(dataset) };
  const choice = { force: settings.force, policyOnly: embedded, log };
  const { environment, played } = await completePlay(draft, connection, choice);
  const defaults = trainingDefaults(environment.id);
  const shared = await withUploadedRows(played, dataset, { client: connection.client, log, signal });
  return {
    training: trainingRequest(shared, settings, defaults),
    evaluation: evalRequest(shared, settings.evalExamples),
  };
}

/** The embedded trainer sends weights to the policy server of a local platform; a remote platform has none. */
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

/**
 * Holds out all tasks of the evals, or more if the file asks for more; a value that is not a number is left for the API
 * to refuse.
 */
function holdoutOf(asked: unknown, evalExamples: number): { readonly holdout?: number } {
  if (asked === undefined) return { holdout: evalExamples };
  return typeof asked === "number" ? { holdout: Math.max(asked, evalExamples) } : {};
}

/**
 * The first tasks of this seed and order, each once: a training run with this seed and `holdout` does not train on
 * them.
 */
function evalRequest(shared: EvalRequestInput, num_examples: number): EvalRequestInput | null {
  if (num_examples === 0) return null;
  const request: EvalRequestInput & Record<string, unknown> = { ...shared };
  // A request from a file may have fields that only a training has.
  for (const name of Object.keys(TrainingRequest.shape)) {
    if (!Object.hasOwn(EvalRequest.shape, name)) delete request[name];
  }
  return { ...request, kind: "eval", num_examples, rollouts_per_example: 1 };
}
