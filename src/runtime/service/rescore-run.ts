/**
 * A run that scores what another one left behind: with another version of its environment, other arguments, other judges.
 *
 * Everything that can be wrong is said here, before anything is stored. Nothing is sampled: its rollouts take over the
 * trajectories of the source, one by one as they are dispatched, so only a source that has ended can be scored anew.
 */

import type { JsonObject } from "../../contract/json.ts";
import type { ResolvedJudges } from "../../contract/judgement.ts";
import type { RunView } from "../../contract/run.ts";
import type { RescoreRequest } from "../../contract/run-control.ts";
import type { Scope } from "../../contract/scope.ts";
import type { AnyEnvironment } from "../../core/environments/any-environment.ts";
import { mintRunId } from "../../core/ids.ts";
import { getEndpoint } from "../../db/endpoints.ts";
import type { NewRun, RunRecord } from "../../db/runs.ts";
import { type Result, refuse } from "../contract/refusal.ts";
import type { EnvironmentPin } from "../contract/wire.ts";
import { refuseNeeds } from "../environment/capabilities.ts";
import { chooseEnvironment } from "../environment/choose-environment.ts";
import { findEnvironment, pinOf } from "../environment/environments.ts";
import type { CreateOptions } from "../kit/idempotency.ts";

import { minting, sha256Hex } from "../kit/secrets.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { beginRun, replayedRun } from "./accept-run.ts";
import { misnamedJudge, tooLargeGroup } from "./check-run.ts";
import { openRun } from "./read-run.ts";
import { type RunJudges, resolveJudges } from "./run-endpoint.ts";

/** Rollouts under way at once. Each is a message and a report, whatever window the source had. */
const WINDOW = 1000;

export async function rescoreRun(
  env: Env,
  scope: Scope,
  id: string,
  request: RescoreRequest,
  asked: CreateOptions,
): Promise<Result<{ run: RunView; replayed: boolean }>> {
  // Keys of runs are one set: the same body may score another run.
  const options = { ...asked, requestHash: sha256Hex(`rescore ${id} ${asked.requestHash}`) };
  const repeated = await replayedRun(env, scope, options);
  if (repeated !== null) return repeated;
  const source = await endedRun(env, scope, id);
  if (!source.ok) return source;
  const record = source.value;
  const scorer = await scorerOf(env, scope, record, request, options.now);
  if (!scorer.ok) return scorer;
  const runId = mintRunId(minting(env, options.now));
  const run = rowOf(runId, { record, request, scorer: scorer.value }, options);
  const endpoint = { shown: record.endpoint, inline: null };
  const { benches } = scorer.value;
  return await beginRun(env, scope, { run, endpoint, benches }, options, new Subrequests());
}

/** With what it planned in the end: a training run is accepted before anybody knows. */
async function endedRun(env: Env, scope: Scope, id: string): Promise<Result<RunRecord>> {
  const found = await openRun(env, scope, id);
  if (!found.ok) return found;
  const { record, object } = found.value;
  const view = await object.view();
  if (view !== null && view.settled_at !== null) {
    const training = record.run.kind === "training";
    const planned = training ? view.counts.planned : record.run.planned;
    return { ok: true, value: { ...record, run: { ...record.run, planned } } };
  }
  return refuse("conflict", `${id} has not ended: wait for it, or cancel it`, "id");
}

/** What scores: the code, its arguments, and its judges by the ids of their endpoints. */
interface Scorer {
  readonly pin: EnvironmentPin;
  readonly environment: AnyEnvironment;
  readonly environment_args: JsonObject;
  readonly judges: ResolvedJudges;
  /** Endpoints that came with them. */
  readonly benches: RunJudges["inline"];
}

async function scorerOf(
  env: Env,
  scope: Scope,
  { run }: RunRecord,
  request: RescoreRequest,
  now: number,
): Promise<Result<Scorer>> {
  const named = request.environment ?? codeThereIs(run);
  // Arguments of one environment say nothing to another.
  const same = named.split("@")[0] === run.environment_id;
  const args = request.environment_args ?? (same ? run.request.environment_args : {});
  const chosen = await chooseEnvironment(env, named, args);
  if (!chosen.ok) return chosen;
  const { registered, environment } = chosen.value;
  const pin = pinOf(registered);
  const needing = { named: registered.id, needs: environment.needs, param: "environment" };
  const unmet = await refuseNeeds(env, scope, { ...needing, args });
  if (unmet !== null) return unmet;
  const kept = judgesKept(run.request.judges, environment, request);
  const refused =
    misnamedJudge({ judges: { ...kept, ...request.judges } }, environment, pin) ??
    tooLargeGroup(environment, pin, run.request.rollouts_per_example, "environment") ??
    (await deletedJudge(env, scope, kept));
  if (refused !== null) return refused;
  const resolved = await resolveJudges(env, scope, request.judges ?? {}, now);
  if (!resolved.ok) return resolved;
  // They came through JSON.parse, so they are JSON.
  const environment_args = args as JsonObject;
  const { inline: benches, judges: others } = resolved.value;
  const judges = { ...kept, ...others };
  return { ok: true, value: { pin, environment, environment_args, judges, benches } };
}

/** The code that played the run, or, where this deployment holds that version no more, the one it holds. */
function codeThereIs({ environment_id: id, environment_version }: RunRecord["run"]): string {
  const pinned = `${id}@${environment_version}`;
  return findEnvironment(pinned) === null ? id : pinned;
}

/** Those of the source that this rubric asks, where the request names nobody else. */
function judgesKept(judges: ResolvedJudges = {}, { rubric }: AnyEnvironment, request: RescoreRequest): ResolvedJudges {
  const asked = rubric.judges.filter((name) => !Object.hasOwn(request.judges ?? {}, name));
  return Object.fromEntries(Object.entries(judges).filter(([name]) => asked.includes(name)));
}

/** By id, for one that was given with the run has no name. */
async function deletedJudge(env: Env, scope: Scope, judges: ResolvedJudges): Promise<Result<never> | null> {
  for (const [name, { endpoint }] of Object.entries(judges)) {
    const found = await getEndpoint(env.DB, scope, endpoint);
    if (found !== null && found.deleted_at === null) continue;
    const message = `the endpoint of the judge ${name} was deleted: name another`;
    return refuse("conflict", message, `judges.${name}`);
  }
  return null;
}

interface Rescore {
  readonly record: RunRecord;
  readonly request: RescoreRequest;
  readonly scorer: Scorer;
}

/** The run's row with what is different. It reads no rows, calls no model and has no deadline to keep. */
function rowOf(
  id: string,
  { record: { run }, request, scorer }: Rescore,
  { now, idempotencyKey, requestHash }: CreateOptions,
): NewRun {
  const { org_id: _org, project_id: _project, ...kept } = run;
  const { resolved, limits, ...settings } = kept.request;
  const { deadline_s: _deadline, ...unhurried } = limits;
  const { pin, environment, environment_args, judges } = scorer;
  const whole_groups = environment.rubric.hasGroupFunctions;
  return {
    ...kept,
    ...{ id, name: request.name ?? null, status: "queued", kind: "eval" },
    environment_id: pin.id,
    environment_version: pin.version,
    environment_digest: pin.digest,
    metadata: request.metadata ?? run.metadata,
    request: {
      ...{ ...settings, limits: unhurried, environment_args, judges, max_concurrent: WINDOW },
      ...{ kind: "eval", environment: `${pin.id}@${pin.version}` },
      min_scored: request.min_scored ?? settings.min_scored,
      resolved: { dataset: resolved.dataset, whole_groups, rescore: { run_id: run.id } },
    },
    dataset_key: null,
    dataset_id: null,
    ...{ counts: null, report: null, error: null, finished_at: null, dead_letters: 0 },
    ...{ created_at: now, idempotency_key: idempotencyKey, request_hash: requestHash },
  };
}
