/**
 * Begins or resumes a training.
 *
 * Invariants: the first eval uses the weights that the training starts from, and ends before any batch is trained. Two
 * trainings never send weights to the same policy. The metadata of a run holds what is needed to resume it: which eval
 * was made before it, and the settings of the embedded trainer.
 */

import { join } from "node:path";
import { serveBaseWeights } from "@rollcall/policy/policy-server";
import { startTrainerThatComesBack, type TrainerProcess } from "@rollcall/trainer/trainer-process";
import type { EvalRequestInput } from "../../contract/eval-request.ts";
import type { RunView } from "../../contract/run.ts";
import type { TrainingRequestInput } from "../../contract/training-request.ts";
import type { TrainingView } from "../../contract/training-view.ts";
import { COMMAND } from "../../local/package-root.ts";
import { ApiRequestError, type RollcallClient } from "../../sdk/client.ts";
import type { Connection } from "../connect.ts";
import { CommandError, EXIT, usageError } from "../exit.ts";
import { followRun } from "../follow.ts";
import { Display } from "../terminal/display.ts";
import { countText } from "../terminal/format.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { Tracker } from "../tracker.ts";
import type { TrainerChoice } from "./arguments.ts";
import type { TrainingPlan } from "./request.ts";

/** What every part of a training needs: the connection, the trainer, and the signal that ends it. */
export interface TrainingContext {
  readonly connection: Connection;
  readonly term: Terminal;
  /** Aborted when the training must stop, for any reason. */
  readonly signal: AbortSignal;
  readonly trainer: TrainerChoice;
  /** Absent or null: the run is not sent anywhere. */
  readonly tracker?: Tracker | null;
}

/** The settings of the trainer; stored with the run, so that a resumed training has the same ones. */
export interface LearningSettings {
  readonly learningRate: number;
  /** How often each batch is trained on. */
  readonly passes: number;
  readonly loss: string;
  readonly seed: number;
}

/** Keys in the metadata of a run. */
const BEFORE = "eval_before";
const LEARNING_RATE = "learning_rate";
const PASSES = "passes";
const LOSS = "loss";
const EVAL_ROWS = "eval_rows";
/** Rows that were sent in the request: the platform has them, but gives them no name. */
const WITH_REQUEST = "with_request";

/** A training whose run exists. */
export interface Begun {
  readonly run: RunView;
  /** The eval before, and the request for the eval after; null if there is none. */
  readonly before: RunView | null;
  readonly evaluation: EvalRequestInput | null;
  /** The trainer's token; null if the trainer already has it. */
  readonly token: string | null;
}

/** A second training of the same policy would overwrite its weights. */
export async function refuseSecondTraining(client: RollcallClient, policyUrl: string): Promise<void> {
  const other = await unfinishedTraining(client, policyUrl);
  if (other === null) return;
  throw new CommandError(EXIT.usage, {
    code: "conflict",
    message: `${other.id} is training this policy: continue it with \`${COMMAND} train --resume ${other.id}\`, or end it with \`${COMMAND} run cancel ${other.id}\``,
    type: "invalid_request_error",
  });
}

/** The newest unfinished training of this policy. */
export async function unfinishedTraining(client: RollcallClient, policyUrl: string): Promise<RunView | null> {
  for (const status of ["running", "paused", "queued"] as const) {
    for await (const run of client.runs.list({ status })) {
      if (run.kind === "training" && run.endpoint?.base_url === policyUrl) return run;
    }
  }
  return null;
}

/** `learning` is for the embedded trainer, which then starts from the policy that comes with Rollcall. */
export async function beginTraining(
  { training, evaluation }: TrainingPlan,
  learning: LearningSettings | null,
  context: TrainingContext,
): Promise<Begun> {
  const { policyUrl } = context.connection;
  if (learning !== null && policyUrl !== null) await serveBaseWeights(policyUrl);
  const before = evaluation === null ? null : await evaluate("before", evaluation, {}, context);
  const metadata = {
    ...training.metadata,
    ...(before !== null && { [BEFORE]: before.id }),
    ...(before !== null && Array.isArray(training.dataset) && { [EVAL_ROWS]: WITH_REQUEST }),
    ...(learning !== null && metadataOf(learning)),
  };
  const run = await createRun({ ...training, metadata }, context);
  return { run, before, evaluation, token: run.trainer?.token ?? null };
}

function metadataOf({ learningRate, passes, loss }: LearningSettings): Record<string, string> {
  return { [LEARNING_RATE]: String(learningRate), [PASSES]: String(passes), [LOSS]: loss };
}

/** If there are no tasks besides the held-out ones, trains on those too and prints a note. */
async function createRun(request: TrainingRequestInput, { connection, term, signal }: TrainingContext) {
  const { client } = connection;
  try {
    return await client.runs.create(request, { signal });
  } catch (error) {
    const allHeldOut = error instanceof ApiRequestError && error.status === 400 && error.param === "holdout";
    if (!allHeldOut) throw error;
    term.log(
      `${request.environment} has too few tasks to hold some out: the evals before and after use training tasks.`,
    );
    return await client.runs.create({ ...request, holdout: 0 }, { signal });
  }
}

/** Continues a run that was begun earlier; resumes it if it is paused. */
export async function resumeTraining(runId: string, context: TrainingContext): Promise<Begun> {
  const { connection, signal, trainer } = context;
  const { client } = connection;
  const found = await client.runs.get(runId, { signal });
  trainingOf(found);
  const run = found.status === "paused" ? await client.runs.resume(runId, { signal }) : found;
  const beforeId = run.metadata[BEFORE];
  const before = beforeId === undefined ? null : await client.runs.get(beforeId, { signal });
  const token = trainer.kind === "embedded" ? (await client.runs.rotateTrainerToken(runId, { signal })).token : null;
  return { run, before, evaluation: before && sameEval(run, before, context), token };
}

/** The settings of the embedded trainer for a run. */
export function learningOf({ id, metadata, seed }: RunView): LearningSettings {
  const [rate, loss] = [metadata[LEARNING_RATE], metadata[LOSS]];
  if (rate !== undefined && loss !== undefined) {
    // Runs created before 0.2 have no member list.
    return { learningRate: Number(rate), passes: Number(metadata[PASSES] ?? 1), loss, seed };
  }
  throw usageError(`${id} uses your own trainer: add --trainer pull or push:URL`, "trainer");
}

/**
 * The request for the same eval; null if the run does not hold all of it: rows or a key that were sent in the request.
 */
function sameEval(run: RunView, before: RunView, { term }: TrainingContext): EvalRequestInput | null {
  if (run.metadata[EVAL_ROWS] === WITH_REQUEST) {
    term.log(`No eval after training: the rows of ${before.id} were sent inline, so other runs cannot use them.`);
    return null;
  }
  const { environment, environment_args, model, endpoint, fleet, sampling, dataset } = before;
  const { num_examples, shuffle, seed, max_concurrent } = before;
  if (endpoint?.name === null && endpoint.api_key_last4 !== null) {
    term.log(
      `No eval after training: the key of ${endpoint.base_url} was sent inline with ${before.id} and is not stored.`,
    );
    return null;
  }
  return {
    ...{
      environment: `${environment.id}@${environment.version}`,
      environment_args,
      model,
      sampling,
    },
    ...{ num_examples, shuffle, seed, max_concurrent, judges: before.judges },
    ...(endpoint !== null && { endpoint: endpoint.name ?? { base_url: endpoint.base_url } }),
    ...(fleet !== null && { fleet: fleet.id }),
    ...(dataset !== null && { dataset }),
  };
}

/** Throws if the run is an eval. */
export function trainingOf(run: RunView): TrainingView {
  if (run.training !== null) return run.training;
  throw usageError(`${run.id} is an eval; continue it with: ${COMMAND} eval --resume ${run.id}`);
}

/** Starts warming up at once, and is restarted when it dies. */
export function embeddedTrainer(
  { connection, term }: { connection: Pick<Connection, "url">; term: Pick<Terminal, "log"> },
  policyUrl: string,
  settings: LearningSettings,
): TrainerProcess {
  return startTrainerThatComesBack({ url: connection.url, policyUrl, ...settings, log: term.log });
}

/** The folder where the embedded trainer keeps a run's weights. */
export function checkpointOf({ directory }: Connection, runId: string): string {
  return join(directory, "trainers", runId);
}

/**
 * Runs an eval before or after a training. Returns the ended run; its line stays on the terminal. Throws if it did not
 * complete.
 */
export async function evaluate(
  when: "before" | "after",
  request: EvalRequestInput,
  metadata: Readonly<Record<string, string>>,
  { connection, term, signal }: TrainingContext,
): Promise<RunView> {
  const { client } = connection;
  term.log(`Evaluating ${when} training: ${countText(request.num_examples ?? 0)} tasks of ${request.environment}`);
  const display = new Display(term, () => performance.now());
  const started = await client.runs.create(
    { ...request, name: `${when} training`, metadata: { ...request.metadata, ...metadata } },
    { signal },
  );
  const run = await followRun(client, started.id, {
    signal,
    onProgress: (it) => display.show(it),
  });
  if (run.status === "completed") return run;
  throw new CommandError(EXIT.bad, {
    code: "eval_failed",
    message: `the eval ${when} training, ${run.id}, is ${run.status}: ${run.error?.message ?? "cancelled"}`,
    type: "run_error",
  });
}
