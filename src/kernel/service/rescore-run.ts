/**
 * Starts a run that scores the trajectories of another run again, with another version of its environment, other
 * arguments or other judges.
 *
 * All checks are made here, before anything is stored. Nothing is sampled. Each rollout of the new run takes over one
 * trajectory of the source, and reads it only when the rollout is dispatched. So the source must have ended.
 */

import { nameKeyOf } from "../../contract/published-environment.ts";
import type { RescoreRequest } from "../../contract/run-control.ts";
import type { Scope } from "../../contract/scope.ts";
import { sharedMembers } from "../../core/training/members.ts";
import type { RunRecord } from "../db/runs.ts";
import { findEnvironment } from "../environment/environments.ts";
import { type CreateOptions, hashedWith } from "../kit/idempotency.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import { type Begun, beginRun, replayedRun } from "./begin-run.ts";
import { openRun } from "./read-run.ts";
import { type RunWanted, resolveRun } from "./resolve/resolve-run.ts";

/** The maximum of rollouts in flight. The source's does not apply: here a rollout costs only a message and a report. */
const WINDOW = 1000;

export async function rescoreRun(
  env: Env,
  scope: Scope,
  id: string,
  request: RescoreRequest,
  asked: CreateOptions,
): Promise<Begun> {
  // All runs share one namespace of idempotency keys. A request to rescore another run may have the same body, so the
  // hash includes the run's id.
  const options = hashedWith(`rescore ${id}`, asked);
  const repeated = await replayedRun(env, scope, options);
  if (repeated !== null) return repeated;
  const source = await endedRun(env, scope, id);
  if (!source.ok) return source;
  const record = source.value;
  const resolved = await resolveRun(env, scope, wantedOf(record, request), options.now);
  if (!resolved.ok) return resolved;
  const { name = null, metadata = record.run.metadata } = request;
  const naming = { name, metadata, comesOf: async () => ({ rescore: { run_id: id } }) };
  return await beginRun(env, scope, resolved.value, naming, options);
}

/** The ended run, with its final number of tasks. A training run is accepted before it is known. */
async function endedRun(env: Env, scope: Scope, id: string): Promise<Result<RunRecord>> {
  const found = await openRun(env, scope, id);
  if (!found.ok) return found;
  const { record, object } = found.value;
  const view = await object.view();
  if (view === null || view.settled_at === null) {
    return refuse("conflict", `${id} has not ended: wait for it, or cancel it`, "id");
  }
  const { spec, kind } = record.run;
  if (kind !== "training") return { ok: true, value: record };
  if (sharedMembers(spec.training) !== null) {
    return refuse(
      "conflict",
      `${id} has groups of several sizes: runs with members.*.group_size or ratio cannot be rescored`,
      "id",
    );
  }
  const num_examples = view.counts.planned / spec.rollouts_per_example;
  return { ok: true, value: { ...record, run: { ...record.run, spec: { ...spec, num_examples } } } };
}

/**
 * The source's settings, except where the request differs. A rescoring run reads no rows, calls no policy model and has
 * no deadline.
 */
function wantedOf(record: RunRecord, request: RescoreRequest): RunWanted {
  const { spec } = record.run;
  const named = request.environment ?? codeThereIs(record.run);
  // Arguments of one environment have no meaning in another.
  const isSame = nameKeyOf(named.split("@")[0] ?? "") === nameKeyOf(spec.environment.id);
  const { whole_groups: _, needs: __, limits, ...kept } = spec;
  const { deadline_s: ___, ...unhurried } = limits;
  return {
    ...kept,
    limits: unhurried,
    max_concurrent: WINDOW,
    min_scored: request.min_scored ?? spec.min_scored,
    code: { named, args: request.environment_args ?? (isSame ? spec.environment_args : {}) },
    rows: { taken: spec.dataset },
    groupParam: "environment",
    place: { of: record, called: false },
    judges: request.judges ?? {},
    kept: { judges: spec.judges, mustBeThere: true },
    training: null,
  };
}

/**
 * The version of the environment that the source used; if this deployment no longer has it, the version it has. Published
 * versions stay.
 */
function codeThereIs({ spec: { environment } }: RunRecord["run"]): string {
  const { id, version } = environment;
  const pinned = `${id}@${version}`;
  const isGone = findEnvironment(pinned) === null && findEnvironment(id) !== null;
  return isGone ? id : pinned;
}
