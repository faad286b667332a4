/**
 * Forks a rollout: a run of its own whose rollouts go on behind one turn of it, with the same code, task and settings but
 * for what the request says otherwise. Everything that can be wrong is said before anything is stored.
 */

import type { RunView } from "../../contract/run.ts";
import type { ForkRequest } from "../../contract/run-control.ts";
import type { RunSpec } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import { mintRunId } from "../../core/ids.ts";
import { forkableTurns, forkPoint } from "../../core/rollout/fork.ts";
import type { RunRecord } from "../../db/runs.ts";
import { type Result, refuse } from "../contract/refusal.ts";
import { refuseNeeds } from "../environment/capabilities.ts";
import { behindRoute } from "../environment/code-behind-route.ts";
import { pinnedEnvironment } from "../environment/environments.ts";
import { type CreateOptions, hashedWith } from "../kit/idempotency.ts";
import { minting } from "../kit/secrets.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { storeForkPoint } from "../trajectory/carry-over.ts";
import { beginRun, newRun, payerOf, plainSpec, replayedRun } from "./accept-run.ts";
import { WHOLE_GROUP } from "./check-run.ts";
import { finishedTrajectory } from "./read-rollouts.ts";
import { notFound, openRun, placeOfId } from "./read-run.ts";
import { fleetOf, placeOfRun, placesOfJudges, pricedAt, type RunEndpoint, resolvePlace } from "./run-endpoint.ts";
import { moneyOf } from "./run-money.ts";

export async function forkRollout(
  env: Env,
  scope: Scope,
  id: string,
  request: ForkRequest,
  asked: CreateOptions,
): Promise<Result<{ run: RunView; replayed: boolean }>> {
  // Keys of runs are one set: the same body may fork another rollout.
  const options = hashedWith(`fork ${id}`, asked);
  const repeated = await replayedRun(env, scope, options);
  if (repeated !== null) return repeated;
  const source = await readSource(env, scope, id);
  if (!source.ok) return source;
  const { record, trajectory } = source.value;
  const refused = refusedTurn(trajectory, request.turn) ?? refusedGroup(record, request);
  if (refused !== null) return refused;
  const endpoint = await endpointFor(env, scope, request, record, options.now);
  if (!endpoint.ok) return endpoint;
  const subrequests = new Subrequests();
  const runId = mintRunId(minting(env, options.now));
  const point = forkPoint(trajectory, request.turn);
  const key = await storeForkPoint(env, scope, runId, point, subrequests);
  const fork = { rollout_id: id, turn: request.turn, key };
  const base = { name: null, metadata: record.run.metadata, dataset_id: null, spec: plainSpec(record.run.spec) };
  const changes = changesOf(record.run, request, endpoint.value);
  const policy = pricedAt(endpoint.value, changes.model ?? record.run.spec.model);
  const judges = await placesOfJudges(env, scope, record.run.spec.judges);
  const money = await moneyOf(env, scope, { policy, judges }, { ...options, payer: payerOf(options, runId) });
  const run = newRun(base, { ...changes, run_id: runId, fork, money }, options);
  return await beginRun(env, scope, { run, endpoint: endpoint.value }, options, subrequests);
}

/** The rollout's run and its trajectory, once it has ended and can be gone on with. */
async function readSource(
  env: Env,
  scope: Scope,
  id: string,
): Promise<Result<{ record: RunRecord; trajectory: Trajectory }>> {
  const place = placeOfId(env, id);
  if (place === null) return notFound("rollout", id);
  const found = await openRun(env, scope, place.runId);
  if (!found.ok) return notFound("rollout", id);
  const { record, object } = found.value;
  const rollout = await object.rollout(place);
  if (rollout === null) return notFound("rollout", id);
  if (rollout.entry.finish_seq === null) {
    return refuse("conflict", `${id} has not ended: wait for it, or cancel it`, "id");
  }
  const unfit = await unfitEnvironment(env, scope, record);
  if (unfit !== null) return unfit;
  const address = { scope, run_id: place.runId };
  const trajectory = await finishedTrajectory(env, address, rollout, object);
  if (trajectory !== null) return { ok: true, value: { record, trajectory } };
  return refuse("conflict", `${id} ended before it began: there is no turn to go on from`, "id");
}

/** The code the run pinned must be here, and its state must be all there is to a rollout. */
async function unfitEnvironment(env: Env, scope: Scope, { run }: RunRecord): Promise<Result<never> | null> {
  const { environment: pin, environment_args: args } = run.spec;
  const named = `${pin.id}@${pin.version}`;
  const environment = await behindRoute(env, pin, args, () => pinnedEnvironment(run.spec));
  if (environment instanceof Error) return refuse("conflict", environment.message, "id");
  if (environment === null) {
    const message = `${named} is not in this deployment with the code the run pinned`;
    return refuse("conflict", message, "id");
  }
  if (!environment.forkable) {
    const message = `${named} cannot be forked: its rollouts keep more than their state`;
    return refuse("conflict", message, "id");
  }
  return await refuseNeeds(env, scope, { named, needs: environment.needs, param: "id" });
}

function refusedTurn(trajectory: Trajectory, turn: number): Result<never> | null {
  const turns = forkableTurns(trajectory);
  if (turn < turns) return null;
  const range = turns === 0 ? "it has none" : `turns 0 to ${turns - 1}`;
  const message = `turn: a rollout can be forked where another turn follows: ${range}`;
  return refuse("invalid_request", message, "turn");
}

function refusedGroup({ run }: RunRecord, { rollouts }: ForkRequest): Result<never> | null {
  if (!run.spec.whole_groups || rollouts <= WHOLE_GROUP) return null;
  const message = `${run.environment_id} scores whole groups, of at most ${WHOLE_GROUP}`;
  return refuse("too_large", message, "rollouts");
}

/** The one asked for, or the run's, unless that was deleted since. */
async function endpointFor(
  env: Env,
  scope: Scope,
  request: ForkRequest,
  record: RunRecord,
  now: number,
): Promise<Result<RunEndpoint>> {
  const named = request.endpoint !== undefined || request.fleet !== undefined;
  return named ? await resolvePlace(env, scope, request, now) : await placeOfRun(env, scope, record);
}

/** One task of the run, asked anew, of rows that are nobody else's. */
function changesOf({ spec }: RunRecord["run"], request: ForkRequest, endpoint: RunEndpoint): Partial<RunSpec> {
  const { model = spec.model, sampling = spec.sampling, rollouts } = request;
  const max_concurrent = Math.min(spec.max_concurrent, endpoint.max_concurrent ?? spec.max_concurrent);
  const place = { endpoint_id: endpoint.id, ...fleetOf(endpoint) };
  return { model, ...place, sampling, max_concurrent, num_examples: 1, rollouts_per_example: rollouts };
}
