/**
 * The further checks of a training run: its sampling, its trainer's address, its evals, its held-out tasks, and the
 * engine of its endpoint or fleet.
 */

import type { EvalRequest } from "../../../contract/eval-request.ts";
import { bentBy, mergeSampling } from "../../../contract/sampling.ts";
import type { Scope } from "../../../contract/scope.ts";
import {
  type AskedEval,
  evalName,
  evalPlayed,
  evalsOf,
  evalsOwn,
  type TrainingSpec,
} from "../../../contract/training-request.ts";
import { whyUntrainable } from "../../../core/training/engine-exactness.ts";
import { rowOfMember, sharedMembers } from "../../../core/training/members.ts";
import { isSilent, probeEndpoint } from "../../clients/probe.ts";
import { firstPlaces, sourceOf } from "../../dataset/datasets.ts";
import { blocksOf } from "../../dataset/rows.ts";
import { accessOf, EndpointUnusable } from "../../endpoint/call.ts";
import { refuseAddress } from "../../kit/address.ts";
import { Subrequests } from "../../kit/subrequests.ts";
import { type Refusal, type Result, refuse } from "../../messages/refusal.ts";
import { HeldOut, keysHeldOut, rowsGiven, rowsOfRun, tasksToTrain } from "../../scoring/held-out.ts";
import type { RunEndpoint } from "./endpoint.ts";
import { GROUP_OF_ONE, type MembersAsked, refuseMembers } from "./members.ts";
import { type Played, type PlayWanted, resolvePlay } from "./play.ts";

/** How many rows are tried at most. If all of them are held out, there is nothing to train on. */
const ROWS_TRIED = 16;
const ROWS_TRIED_OF_MEMBER = 2;
/** Reads of the held-out rows, made once for each run by the consumer that starts rollouts: each is up to 1 MiB. */
const BLOCKS_HELD_OUT = 256;

type Asked = Pick<EvalRequest, "sampling"> &
  Pick<PlayWanted, "rollouts_per_example" | "shuffle" | "judges"> & {
    readonly seed: number;
    readonly training: MembersAsked | null;
  };

export async function refuseTraining(
  env: Env,
  scope: Scope,
  asked: Asked,
  training: TrainingSpec,
  play: Played,
): Promise<Result<never> | null> {
  const barren =
    neverTrains(asked, training, play.environment.description) ?? refuseMembers(asked.training, training, play);
  if (barren !== null) return barren;
  const { url } = training.trainer;
  const address = url === undefined ? null : await refuseAddress(env, scope, url, "trainer.url");
  if (address !== null) return address;
  return (
    refuseOrder(asked, training, play) ??
    (await refuseEvals(env, scope, asked, training, play)) ??
    (await refuseHoldout(env, scope, asked, training, play))
  );
}

/** Trainers read `all` and an empty name as no name, and `agg` is the series of all environments together. */
const RESERVED = ["", "all", "agg"];
const BENT = "changes the sampling distribution, so that trainers cannot compute its logprobs: remove it";

/** The size of the run's groups. Infinite if members have sizes of their own, which `refuseMembers` checks. */
function sizeOfAll(asked: number, members: TrainingSpec["members"]): number {
  return members === undefined ? asked : Number.POSITIVE_INFINITY;
}

/** Refuses settings that would train on nothing forever, or on something else than was sampled. */
function neverTrains(
  { rollouts_per_example, sampling }: Asked,
  { min_group_size, advantage, zero_variance, curriculum, members }: TrainingSpec,
  { players }: Played["environment"]["description"],
): Result<never> | null {
  const size = sizeOfAll(rollouts_per_example, members);
  const refused = (param: string, why: string) => refuse("invalid_request", `${param}: ${why}`, param);
  if (min_group_size > size) {
    return refused("min_group_size", `must be at most group_size (${size}), or no group would be trained on`);
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
    return refused("group_size", GROUP_OF_ONE);
  }
  if (curriculum.name === "difficulty") {
    const { hard, normal, easy, unseen } = curriculum;
    if (hard.up_to > normal.up_to) {
      return refused("curriculum.hard.up_to", "must be at most curriculum.normal.up_to");
    }
    if ([hard, normal, easy, unseen].every(({ weight }) => weight <= 0)) {
      return refused("curriculum", "at least one weight must be above 0");
    }
  }
  const reserved = players.flatMap(({ member }) => member ?? []).find((name) => RESERVED.includes(name));
  if (reserved === undefined) return null;
  const message = `an environment of the group is called "${reserved}", a reserved name: rename it`;
  return refuse("invalid_request", message, "environment");
}

async function refuseEvals(
  env: Env,
  scope: Scope,
  asked: Asked,
  training: TrainingSpec,
  play: Played,
): Promise<Result<never> | null> {
  const names: string[] = [];
  for (const [at, one] of evalsOf(training).entries()) {
    const field = training.evals === undefined ? "eval" : `evals[${at}]`;
    const name = evalName(one, play.pin);
    if (names.includes(name)) {
      const message = `${field}.name: another eval is called ${name}: give each a name of its own`;
      return refuse("invalid_request", message, `${field}.name`);
    }
    names.push(name);
    const refused = await refuseEval(env, scope, { ...asked, holdout: training.holdout }, { asked: one, field }, play);
    if (refused !== null) return refused;
  }
  return null;
}

/**
 * Resolves the eval as it will be resolved when the run starts it. It uses the run's judges and the run's endpoint.
 * `field`: its place in the request.
 */
async function refuseEval(
  env: Env,
  scope: Scope,
  { shuffle, judges, holdout }: Asked & Pick<TrainingSpec, "holdout">,
  { asked, field }: { readonly asked: AskedEval; readonly field: string },
  { pin, args: environment_args, rows: { dataset } }: Played,
): Promise<Result<never> | null> {
  const {
    environment: named,
    environment_args: args,
    dataset: brings,
    ...played
  } = evalPlayed(asked, { environment: pin, environment_args, shuffle });
  const { length } = dataset;
  const brought = dataset.kind === "uploaded" && length !== null && evalsOwn(asked, pin);
  const own = brought ? { found: { id: null, dataset: { ...dataset, length } } } : null;
  const resolved = await resolvePlay(env, scope, {
    ...{ ...played, judges, groupParam: "rollouts_per_example", training: null },
    code: { named, args },
    rows: brings === undefined ? own : { named: brings },
  });
  if (!resolved.ok) return { ok: false, error: asEvals(resolved.error, { named, field, brings }) };
  if (!brought || asked.num_examples <= holdout) return null;
  const message = `${field}.num_examples: ${asked.num_examples} tasks of the run's own rows, but holdout keeps only ${holdout} out of training: raise holdout`;
  return refuse("invalid_request", message, `${field}.num_examples`);
}

/** Names the fields of the training request that decide it. */
function asEvals(
  { code, message, param }: Refusal,
  of: { readonly named: string; readonly field: string; readonly brings: string | undefined },
): Refusal {
  const { named: environment, field } = of;
  // The run's rows and judges were checked before, so the fault is that they do not fit the eval's environment.
  if (param === "dataset" && of.brings === undefined) {
    const why = `${environment.split("@")[0]} has no rows of its own, and the run's rows are only for evals of the run's own environment`;
    return { code, message: why, param: `${field}.environment` };
  }
  const isField = param !== null && !param.startsWith("judges.");
  return { code, message, param: `${field}.${isField ? param : "environment"}` };
}

/** Evals are played in the run's order, which does not exist if their rows are endless. */
function refuseOrder(
  { shuffle }: Asked,
  training: TrainingSpec,
  { pin, environment, rows: { dataset } }: Played,
): Result<never> | null {
  if (!shuffle || dataset.kind === "uploaded") return null;
  if (training.holdout === 0 && !evalsOf(training).some((asked) => evalsOwn(asked, pin))) return null;
  const source = sourceOf(environment, false);
  if (source.kind === "uploaded" || source.length !== null) return null;
  const message = `${pin.id} generates endless tasks, which have no order`;
  return refuse("invalid_request", message, "shuffle");
}

async function refuseHoldout(
  env: Env,
  { orgId }: Scope,
  { seed, shuffle }: Asked,
  training: TrainingSpec,
  { environment, rows: { dataset, inline } }: Played,
): Promise<Result<never> | null> {
  const { holdout } = training;
  if (holdout === 0) return null;
  const refused = (why: string) => refuse("invalid_request", `holdout: ${why}`, "holdout");
  const spec = { dataset, seed, shuffle, training };
  const { key, index_key } = dataset;
  const subrequests = new Subrequests();
  if (key !== null) {
    const held = firstPlaces(spec, holdout).map(({ row }) => row);
    const blocks = await blocksOf(env, { key, index_key }, held, subrequests);
    if (blocks > BLOCKS_HELD_OUT) {
      return refused(
        `${holdout} shuffled rows are in ${blocks} blocks of the dataset, but at most ${BLOCKS_HELD_OUT} can be read: hold out ${BLOCKS_HELD_OUT} rows, or upload the rows in the order of play`,
      );
    }
  }
  const rows =
    inline === null
      ? rowsOfRun(env, orgId, spec, environment, subrequests)
      : rowsGiven(orgId, spec, environment, inline);
  const { length } = rows;
  if (rows.shared && length !== null && length <= holdout) {
    return refused(`holding out ${holdout} of ${length} rows leaves no row to train on: use at most ${length - 1}`);
  }
  const keys = await keysHeldOut(rows, holdout);
  for (const { name, share } of sharedMembers(training) ?? []) {
    const count = Math.min(ROWS_TRIED_OF_MEMBER, share.rows.length ?? ROWS_TRIED_OF_MEMBER);
    const own = Array.from({ length: count }, (_, at) => rowOfMember(share.rows, at));
    const tasks = [...(await tasksToTrain(rows, keys, holdout, own)).values()];
    if (tasks.every((task) => task instanceof HeldOut)) {
      return refused(`holding out ${holdout} rows leaves no row of ${name} to train on`);
    }
  }
  const wanted = Array.from({ length: Math.min(ROWS_TRIED, length ?? ROWS_TRIED) }, (_, at) => at);
  const tasks = await tasksToTrain(rows, keys, holdout, wanted);
  if (![...tasks.values()].some((task) => task instanceof HeldOut)) return null;
  return refused(
    `holding out ${holdout} rows leaves nothing to train on: every task that was tried is among the first ${holdout} of an eval`,
  );
}

/**
 * Whether a training run can train on what its endpoint samples. The endpoint is probed again for each run, with the
 * run's model and the fields that it sends, because the server may have been restarted with other flags. If it does not
 * answer now, the last probe counts; without one the run is refused.
 */
export async function refuseEngine(
  env: Env,
  scope: Scope,
  request: Pick<EvalRequest, "model" | "sampling">,
  { initial_weights }: Pick<TrainingSpec, "initial_weights">,
  { place, capabilities }: RunEndpoint,
  now: number,
): Promise<Result<never> | null> {
  if (place === null) return null;
  if (place.kind === "fleet") return await place.refuseTraining({ ...request, initial_weights }, now);
  try {
    const access = await accessOf(env, scope, place);
    const { model, sampling } = request;
    const seen = await probeEndpoint({ ...access, model, usual: null, sampling, now });
    const why = whyUntrainable(isSilent(seen) ? (capabilities ?? seen) : seen);
    return why === null ? null : refuse("invalid_request", `endpoint: ${why}`, "endpoint");
  } catch (thrown) {
    if (!(thrown instanceof EndpointUnusable)) throw thrown;
    return refuse("conflict", `${thrown.message}: send it again`, "endpoint");
  }
}
