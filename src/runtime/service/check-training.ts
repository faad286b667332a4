/**
 * What else can be wrong with a training run: how it samples, its trainer's address, its evals, the tasks it holds out,
 * and the engine behind its endpoint.
 */

import { isSilent, probeEndpoint } from "../../clients/probe.ts";
import type { EvalRequest } from "../../contract/eval-request.ts";
import { bentBy, mergeSampling } from "../../contract/sampling.ts";
import type { Scope } from "../../contract/scope.ts";
import { evalsOwn, type TrainingSpec } from "../../contract/training-request.ts";
import { whyUntrainable } from "../../core/training/engine-exactness.ts";
import { type Result, refuse } from "../contract/refusal.ts";
import { firstPlaces, type RowsOf } from "../dataset/datasets.ts";
import { blocksOf } from "../dataset/rows.ts";
import { accessOf, EndpointUnusable } from "../endpoint/call.ts";
import { chooseEnvironment } from "../environment/choose-environment.ts";
import { pinOf } from "../environment/environments.ts";
import { refuseAddress } from "../kit/address.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { HeldOut, keysHeldOut, rowsGiven, rowsOfRun, type TrainingRows, tasksToTrain } from "../scoring/held-out.ts";
import { type Checked, isInline, misnamedJudge } from "./check-run.ts";
import type { RunEndpoint } from "./run-endpoint.ts";

/** Rows looked at, of as many as there are: where each is held out, there is nothing to train on. */
const ROWS_TRIED = 16;
/** Reads of the rows that are held out, which whoever starts rollouts makes once a run: each is of up to 1 MiB. */
const BLOCKS_HELD_OUT = 256;

export async function refuseTraining(
  env: Env,
  scope: Scope,
  request: EvalRequest,
  training: TrainingSpec,
  checked: Checked,
): Promise<Result<never> | null> {
  const barren = neverTrains(request, training, checked.environment) ?? refuseMembers(checked.environment);
  if (barren !== null) return barren;
  const url = training.trainer.url ?? null;
  const address = url === null ? null : await refuseAddress(env, scope, url, "trainer.url");
  if (address !== null) return address;
  return (
    (await refuseEval(env, scope, request, training, checked)) ??
    refuseOrder(request, training, checked) ??
    (await refuseHoldout(env, scope, request, training, checked))
  );
}

const BENT = "changes what is sampled from, and no trainer can compute the logprobs of that; leave it out";

/** What would play for ever and train nothing, or something else than was sampled. */
function neverTrains(
  { rollouts_per_example: size, sampling }: EvalRequest,
  { min_group_size, advantage, zero_variance, curriculum }: TrainingSpec,
  { players }: Checked["environment"],
): Result<never> | null {
  const refused = (param: string, why: string) => refuse("invalid_request", `${param}: ${why}`, param);
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

/** Trainers read `all` and an empty name as none, and `agg` is the series of all together. */
const RESERVED = ["", "all", "agg"];

function refuseMembers({ members }: Checked["environment"]): Result<never> | null {
  const reserved = members.find((name) => RESERVED.includes(name));
  if (reserved === undefined) return null;
  const message = `an environment of the group is called "${reserved}", which a trainer or the series take for something else`;
  return refuse("invalid_request", message, "environment");
}

async function refuseEval(
  env: Env,
  scope: Scope,
  request: EvalRequest,
  { eval: asked, holdout }: TrainingSpec,
  { pin, kind }: Checked,
): Promise<Result<never> | null> {
  if (asked == null) return null;
  const own = asked.environment === undefined;
  const args = asked.environment_args ?? (own ? request.environment_args : {});
  const chosen = await chooseEnvironment(env, scope, asked.environment ?? `${pin.id}@${pin.version}`, args);
  if (!chosen.ok) {
    const { code, message, param } = chosen.error;
    return refuse(code, message, `eval.${param ?? "environment"}`);
  }
  const { registered, environment: evaluated } = chosen.value;
  // The run's judges judge there, too: none may be missing, and none may be anybody else's.
  const misjudged = misnamedJudge(request, evaluated, pinOf(registered));
  if (misjudged !== null) return asEvals(misjudged);
  if (kind === "uploaded" && evalsOwn(asked, pin)) {
    if (asked.num_examples <= holdout) return null;
    const message = `eval.num_examples: ${asked.num_examples} tasks of the run's own rows, of which holdout keeps ${holdout} out of training: at most those`;
    return refuse("invalid_request", message, "eval.num_examples");
  }
  if ((evaluated.evalDataset ?? evaluated.dataset).kind !== "uploaded") return null;
  const message = `${registered.id} has no rows of its own, and those of the run are for evals of its own environment`;
  return refuse("invalid_request", message, "eval.environment");
}

function asEvals(refused: Result<never>): Result<never> {
  if (refused.ok) return refused;
  const { code, message } = refused.error;
  return refuse(code, message, "eval.environment");
}

/** Evals are played in the order the run was asked for, and there may be none of their rows. */
function refuseOrder(
  { shuffle }: EvalRequest,
  { holdout, eval: asked }: TrainingSpec,
  { pin, environment, kind }: Checked,
): Result<never> | null {
  if (!shuffle || kind === "uploaded") return null;
  if (holdout === 0 && (asked == null || !evalsOwn(asked, pin))) return null;
  const source = environment.evalDataset ?? environment.dataset;
  if (source.kind === "uploaded" || source.length !== null) return null;
  const message = `${pin.id} makes the tasks of evals without end: they have no order`;
  return refuse("invalid_request", message, "shuffle");
}

async function refuseHoldout(
  env: Env,
  scope: Scope,
  request: EvalRequest,
  training: TrainingSpec,
  checked: Checked,
): Promise<Result<never> | null> {
  const { holdout } = training;
  if (holdout === 0) return null;
  const refused = (why: string) => refuse("invalid_request", `holdout: ${why}`, "holdout");
  const spec = rowsOfRequest(request, training, checked);
  const blocks = await blocksHeldOut(env, spec, holdout);
  if (blocks > BLOCKS_HELD_OUT) {
    return refused(
      `${holdout} shuffled rows lie in ${blocks} blocks of the dataset, of which ${BLOCKS_HELD_OUT} are read at most: hold out ${BLOCKS_HELD_OUT}, or upload the rows in the order they are to be played in`,
    );
  }
  const rows = rowsOf(env, scope, spec, checked);
  const { length } = rows;
  if (rows.shared && length !== null && length <= holdout) {
    return refused(`${holdout} of ${length} rows leave none to train on: at most ${length - 1}`);
  }
  const wanted = Array.from({ length: Math.min(ROWS_TRIED, length ?? ROWS_TRIED) }, (_, at) => at);
  const keys = await keysHeldOut(rows, holdout);
  const tasks = await tasksToTrain(rows, keys, holdout, wanted);
  if (![...tasks.values()].some((task) => task instanceof HeldOut)) return null;
  return refused(
    `${holdout} leave nothing to train on: every task that was tried is among the first ${holdout} of an eval`,
  );
}

function rowsOfRequest(
  { seed, shuffle }: EvalRequest,
  training: TrainingSpec,
  { kind, given, length }: Checked,
): RowsOf {
  const dataset = given === null || isInline(given) ? { kind, key: null, length } : given.dataset;
  return { dataset, seed, shuffle, training };
}

function rowsOf(env: Env, { orgId }: Scope, spec: RowsOf, { environment, given }: Checked): TrainingRows {
  if (given !== null && isInline(given)) return rowsGiven(orgId, spec, environment, given);
  return rowsOfRun(env, orgId, spec, environment, new Subrequests());
}

/** Reads it takes to know what is held out: none, where rows came with the run or are made. */
async function blocksHeldOut(env: Env, spec: RowsOf, holdout: number): Promise<number> {
  const { key, index_key } = spec.dataset;
  if (key === null) return 0;
  const rows = firstPlaces(spec, holdout).map(({ row }) => row);
  return await blocksOf(env, { key, index_key }, rows, new Subrequests());
}

/**
 * Whether a training run may train on what its endpoint samples: it is asked anew for each run, with the run's model and the fields that
 * the run sends, since a server may have been started with other flags since it was added. One that does not answer now is taken
 * for what it was last seen to be; where nobody has seen that, the run is refused.
 */
export async function refuseEngine(
  env: Env,
  scope: Scope,
  request: Pick<EvalRequest, "model" | "sampling">,
  { initial_weights }: Pick<TrainingSpec, "initial_weights">,
  endpoint: RunEndpoint,
  now: number,
): Promise<Result<never> | null> {
  const { place } = endpoint;
  if (place.kind === "fleet") return await place.refuseTraining({ ...request, initial_weights }, now);
  try {
    const access = await accessOf(env, scope, place);
    const { model, sampling } = request;
    const seen = await probeEndpoint({ ...access, model, usual: null, sampling, now });
    const why = whyUntrainable(isSilent(seen) ? (endpoint.capabilities ?? seen) : seen);
    return why === null ? null : refuse("invalid_request", `endpoint: ${why}`, "endpoint");
  } catch (thrown) {
    if (!(thrown instanceof EndpointUnusable)) throw thrown;
    return refuse("conflict", `${thrown.message}: give it again`, "endpoint");
  }
}
