/** What else can be wrong with a training run: how it samples, its trainer's address, its evals, what it holds out. Its engine: refuse-engine.ts. */
import type { EvalRequest } from "../core/eval-request.ts";
import { bentBy, mergeSampling } from "../core/sampling.ts";
import type { TrainingSpec } from "../core/training/spec.ts";
import { refuseAddress } from "./address.ts";
import { type Checked, isInline, misnamedJudge } from "./check-run.ts";
import { chooseEnvironment } from "./choose-environment.ts";
import { pinOf } from "./environments.ts";
import {
  HeldOut,
  keysHeldOut,
  rowsGiven,
  rowsOfRun,
  type TrainingRows,
  tasksToTrain,
} from "./held-out.ts";
import { type Result, refuse } from "./refusal.ts";
import { Subrequests } from "./subrequests.ts";

/** Rows looked at, of as many as there are: where each is held out, there is nothing to train on. */
const ROWS_TRIED = 16;

export async function refuseTraining(
  env: Env,
  request: EvalRequest,
  training: TrainingSpec,
  checked: Checked,
): Promise<Result<never> | null> {
  const barren = neverTrains(request, training, checked.environment);
  if (barren !== null) return barren;
  const url = training.trainer.url ?? null;
  const address = url === null ? null : refuseAddress(env, url, "trainer.url");
  if (address !== null) return address;
  return (
    (await refuseEval(request, training, checked)) ??
    (await refuseHoldout(env, request, training, checked))
  );
}

const BENT =
  "changes what is sampled from, and no trainer can compute the logprobs of that; leave it out";

/** What would play for ever and train nothing, or something else than was sampled. */
function neverTrains(
  { rollouts_per_example: size, sampling }: EvalRequest,
  { min_group_size, advantage, zero_variance, curriculum }: TrainingSpec,
  { players }: Checked["environment"],
): Result<never> | null {
  const refused = (param: string, why: string) =>
    refuse("invalid_request", `${param}: ${why}`, param);
  if (min_group_size > size) {
    return refused("min_group_size", `at most group_size, ${size}: no group would ever train`);
  }
  for (const player of players) {
    const asked = mergeSampling(player.sampling, sampling);
    if (asked.temperature === 0) {
      return refused("sampling.temperature", "must be above 0: rollouts of a task must differ");
    }
    const bent = bentBy(asked);
    if (bent !== null) return refused(bent, BENT);
  }
  const alone = "singleton" in advantage && advantage.singleton === "raw";
  if (size === 1 && !alone && zero_variance !== "keep") {
    const why = `a group of one is dropped as zero_variance: use 2 or more, or filters.zero_variance "keep"`;
    return refused("group_size", why);
  }
  if (curriculum.name === "cycle") return null;
  const { hard, normal, easy, unseen } = curriculum;
  if (hard.up_to > normal.up_to) {
    return refused("curriculum.hard.up_to", "at most curriculum.normal.up_to");
  }
  const all = [hard, normal, easy, unseen];
  if (all.some(({ weight }) => weight > 0)) return null;
  return refused("curriculum", "one of its weights must be above 0");
}

async function refuseEval(
  request: EvalRequest,
  { eval: asked }: TrainingSpec,
  { pin }: Checked,
): Promise<Result<never> | null> {
  if (asked == null) return null;
  const own = asked.environment === undefined;
  const args = asked.environment_args ?? (own ? request.environment_args : {});
  const chosen = await chooseEnvironment(asked.environment ?? `${pin.id}@${pin.version}`, args);
  if (!chosen.ok) {
    const { code, message, param } = chosen.error;
    return refuse(code, message, `eval.${param ?? "environment"}`);
  }
  const { registered, environment: evaluated } = chosen.value;
  // The run's judges judge there, too: none may be missing, and none may be anybody else's.
  const misjudged = misnamedJudge(request, evaluated, pinOf(registered));
  if (misjudged !== null) return asEvals(misjudged);
  if ((evaluated.evalDataset ?? evaluated.dataset).kind !== "uploaded") return null;
  const message = `${registered.id} has no rows of its own, and an eval of a training run brings none`;
  return refuse("invalid_request", message, "eval.environment");
}

function asEvals(refused: Result<never>): Result<never> {
  if (refused.ok) return refused;
  const { code, message } = refused.error;
  return refuse(code, message, "eval.environment");
}

async function refuseHoldout(
  env: Env,
  request: EvalRequest,
  training: TrainingSpec,
  checked: Checked,
): Promise<Result<never> | null> {
  const { holdout } = training;
  if (holdout === 0) return null;
  const rows = rowsOfRequest(env, request, training, checked);
  const wanted = Array.from(
    { length: Math.min(ROWS_TRIED, rows.length ?? ROWS_TRIED) },
    (_, index) => index,
  );
  const keys = await keysHeldOut(rows, holdout);
  const tasks = await tasksToTrain(rows, keys, holdout, wanted);
  if (![...tasks.values()].some((task) => task instanceof HeldOut)) return null;
  const message = `holdout: ${holdout} leave nothing to train on: every task that was tried is among the first ${holdout} of an eval`;
  return refuse("invalid_request", message, "holdout");
}

function rowsOfRequest(
  env: Env,
  { seed, shuffle }: EvalRequest,
  training: TrainingSpec,
  { environment, kind, given, length }: Checked,
): TrainingRows {
  if (given !== null && isInline(given)) return rowsGiven(environment, given, seed);
  const dataset = given === null ? { kind, key: null, length } : given.dataset;
  return rowsOfRun(env, { dataset, seed, shuffle, training }, environment, new Subrequests());
}
