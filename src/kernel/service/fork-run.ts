/**
 * Forks a rollout: starts a new run whose rollouts continue after one of its turns, with the same code, task and
 * settings except where the request differs. All checks are made before anything is stored.
 */

import type { ForkRequest } from "../../contract/run-control.ts";
import type { RunSpec } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import type { Need } from "../../core/environments/contract.ts";
import { forkableTurns, forkPoint } from "../../core/rollout/fork.ts";
import type { RunRecord } from "../db/runs.ts";
import { refuseNeeds } from "../environment/capabilities.ts";
import { behindRoute } from "../environment/code-behind-route.ts";
import { pinnedEnvironment } from "../environment/environments.ts";
import { type CreateOptions, hashedWith } from "../kit/idempotency.ts";
import { publishedEnvironments } from "../kit/slice-hooks.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import { storeForkPoint } from "../trajectory/carry-over.ts";
import { type Begun, beginRun, type Naming, replayedRun } from "./begin-run.ts";
import { finishedTrajectory } from "./read-rollouts.ts";
import { notFound, openRun, placeOfId } from "./read-run.ts";
import type { Code } from "./resolve/play.ts";
import { type RunWanted, resolveRun } from "./resolve/resolve-run.ts";

export async function forkRollout(
  env: Env,
  scope: Scope,
  id: string,
  request: ForkRequest,
  asked: CreateOptions,
): Promise<Begun> {
  // Idempotency keys of runs share one namespace, and the same body may fork another rollout.
  const options = hashedWith(`fork ${id}`, asked);
  const repeated = await replayedRun(env, scope, options);
  if (repeated !== null) return repeated;
  const source = await endedRollout(env, scope, id);
  if (!source.ok) return source;
  const { record, read } = source.value;
  if (record.run.spec.agent !== undefined) {
    return refuse(
      "conflict",
      `${id} was played by an agent, whose state only the agent has: it cannot be forked`,
      "id",
    );
  }
  const code = await forkableCode(env, scope, record.run.spec);
  if (!code.ok) return code;
  const resolved = await resolveRun(env, scope, wantedOf(record, code.value, request), options.now);
  if (!resolved.ok) return resolved;
  const trajectory = await read();
  if (trajectory === null) {
    return refuse("conflict", `${id} ended before its first turn: there is no turn to fork from`, "id");
  }
  const { turn } = request;
  const turns = forkableTurns(trajectory);
  if (turn >= turns) {
    const range = turns === 0 ? "it has none" : `0 to ${turns - 1} (the first turn is 0)`;
    const message = `turn: must be the index of a turn that another turn can follow: ${range}`;
    return refuse("invalid_request", message, "turn");
  }
  const point = forkPoint(trajectory, turn);
  const comesOf: Naming["comesOf"] = async (runId, subrequests) => {
    const key = await storeForkPoint(env, scope, runId, point, subrequests);
    return { fork: { rollout_id: id, turn, key } };
  };
  return await beginRun(env, scope, resolved.value, { name: null, metadata: record.run.metadata, comesOf }, options);
}

/** The rollout's run, and a function that reads its trajectory. Refused if the rollout has not ended. */
async function endedRollout(
  env: Env,
  scope: Scope,
  id: string,
): Promise<Result<{ readonly record: RunRecord; readonly read: () => Promise<Trajectory | null> }>> {
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
  const address = { scope, run_id: place.runId };
  return { ok: true, value: { record, read: () => finishedTrajectory(env, address, rollout, object) } };
}

/** This deployment must have the code that the run pinned, and a rollout must consist of its state only. */
async function forkableCode(env: Env, scope: Scope, spec: RunSpec): Promise<Result<Code>> {
  const { environment: pin, environment_args: args } = spec;
  const named = `${pin.id}@${pin.version}`;
  const environment = await behindRoute(env, pin, args, () => pinnedEnvironment(env, spec));
  if (environment instanceof Error) return refuse("conflict", environment.message, "id");
  if (environment === null) {
    return refuse("conflict", `this deployment does not have ${named} with the run's pinned code`, "id");
  }
  if (!environment.description.forkable) {
    return refuse("conflict", `${named} cannot be forked: its rollouts hold more than their state`, "id");
  }
  const { needs } = environment.description;
  const ungranted = await publishedEnvironments().refuseUngranted(env, scope, { id: pin.id, needs, param: "id" });
  if (ungranted !== null) return ungranted;
  const unmet = await refuseNeeds(env, scope, { named, needs, param: "id" });
  return (
    unmet ?? {
      ok: true,
      value: { pin, args, environment, ...(spec.needs && { needs: spec.needs as readonly Need[] }) },
    }
  );
}

/** A run over one task of the original run; no rows are read. */
function wantedOf(record: RunRecord, code: Code, request: ForkRequest): RunWanted {
  const { spec } = record.run;
  const { model, sampling, endpoint, fleet, rollouts } = request;
  const isNamed = endpoint !== undefined || fleet !== undefined;
  return {
    ...spec,
    model: model ?? spec.model,
    sampling: sampling ?? spec.sampling,
    code,
    rows: { taken: spec.dataset },
    num_examples: 1,
    rollouts_per_example: rollouts,
    groupParam: "rollouts",
    // If the request names no place, the run's own is used; refused if that was deleted.
    place: isNamed ? { endpoint, fleet } : { of: record, called: true },
    judges: {},
    kept: { judges: spec.judges, mustBeThere: false },
    training: null,
  };
}
