/**
 * A run that scores what another one left behind: with another version of its environment, other arguments, other judges.
 *
 * Everything that can be wrong is said here, before anything is stored. Nothing is sampled: its rollouts take over the
 * trajectories of the source, one by one as they are dispatched, so only a source that has ended can be scored anew.
 */

import type { JsonObject } from "../../contract/json.ts";
import type { RunView } from "../../contract/run.ts";
import type { RescoreRequest } from "../../contract/run-control.ts";
import type { RunSpec } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import type { AnyEnvironment } from "../../core/environments/any-environment.ts";
import { mintRunId } from "../../core/ids.ts";
import { getEndpoint } from "../../db/endpoints.ts";
import type { RunRecord } from "../../db/runs.ts";
import { type Result, refuse } from "../contract/refusal.ts";
import { refuseNeeds } from "../environment/capabilities.ts";
import { chooseEnvironment } from "../environment/choose-environment.ts";
import { findEnvironment, pinOf } from "../environment/environments.ts";
import { type CreateOptions, hashedWith } from "../kit/idempotency.ts";
import { minting } from "../kit/secrets.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { beginRun, newRun, payerOf, plainSpec, replayedRun } from "./accept-run.ts";
import { misnamedJudge, tooLargeGroup } from "./check-run.ts";
import { openRun } from "./read-run.ts";
import { placesOfJudges, type RunJudges, resolveJudges } from "./run-endpoint.ts";
import { moneyOf } from "./run-money.ts";

type Judges = RunJudges["judges"];

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
  const options = hashedWith(`rescore ${id}`, asked);
  const repeated = await replayedRun(env, scope, options);
  if (repeated !== null) return repeated;
  const source = await endedRun(env, scope, id);
  if (!source.ok) return source;
  const record = source.value;
  const scorer = await scorerOf(env, scope, record, request, options.now);
  if (!scorer.ok) return scorer;
  const runId = mintRunId(minting(env, options.now));
  const { changes, benches, places } = scorer.value;
  const payer = payerOf(options, runId);
  const money = await moneyOf(env, scope, { policy: null, judges: places }, { ...options, payer });
  const { name = null, metadata = record.run.metadata } = request;
  const base = { name, metadata, dataset_id: null, spec: baseOf(record.run) };
  const run = newRun(base, { ...changes, run_id: runId, rescore: { run_id: id }, money }, options);
  const endpoint = { shown: { endpoint: record.endpoint, fleet: record.fleet }, inline: null };
  return await beginRun(env, scope, { run, endpoint, benches }, options, new Subrequests());
}

/** With the tasks it had in the end: a training run is accepted before anybody knows. */
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
  const num_examples = view.counts.planned / spec.rollouts_per_example;
  return { ok: true, value: { ...record, run: { ...record.run, spec: { ...spec, num_examples } } } };
}

/** What scores: its code, arguments and judges, as changes of the source's spec. */
interface Scorer {
  readonly changes: Partial<RunSpec>;
  /** Endpoints that came with its judges. */
  readonly benches: RunJudges["inline"];
  /** Where its judges are asked. */
  readonly places: RunJudges["places"];
}

async function scorerOf(
  env: Env,
  scope: Scope,
  { run }: RunRecord,
  request: RescoreRequest,
  now: number,
): Promise<Result<Scorer>> {
  const code = request.environment ?? codeThereIs(run);
  // Arguments of one environment say nothing to another.
  const same = code.split("@")[0] === run.spec.environment.id;
  const args = request.environment_args ?? (same ? run.spec.environment_args : {});
  const chosen = await chooseEnvironment(env, scope, code, args);
  if (!chosen.ok) return chosen;
  const { registered, environment } = chosen.value;
  const pin = pinOf(registered);
  const needing = { named: registered.id, needs: environment.needs, param: "environment" };
  const unmet = await refuseNeeds(env, scope, { ...needing, args });
  if (unmet !== null) return unmet;
  const kept = judgesKept(run.spec.judges, environment, request);
  const refused =
    misnamedJudge({ judges: { ...kept, ...request.judges } }, environment, pin) ??
    tooLargeGroup(environment, pin, run.spec.rollouts_per_example, "environment") ??
    (await deletedJudge(env, scope, kept));
  if (refused !== null) return refused;
  const resolved = await resolveJudges(env, scope, request.judges ?? {}, now);
  if (!resolved.ok) return resolved;
  const { inline: benches, judges: others, places: named } = resolved.value;
  const judges = { ...kept, ...others };
  const changes = {
    environment: pin,
    // They came through JSON.parse, so they are JSON.
    environment_args: args as JsonObject,
    whole_groups: environment.rubric.hasGroupFunctions,
    min_scored: request.min_scored ?? run.spec.min_scored,
    ...(Object.keys(judges).length > 0 && { judges }),
  };
  const places = { ...(await placesOfJudges(env, scope, kept)), ...named };
  return { ok: true, value: { changes, benches, places } };
}

/** What is kept of the source. A run that scores reads no rows, calls no model and has no deadline to keep. */
function baseOf({ spec }: RunRecord["run"]): RunSpec {
  const { judges: _judges, limits, ...kept } = plainSpec(spec);
  const { deadline_s: _deadline, ...unhurried } = limits;
  return { ...kept, limits: unhurried, max_concurrent: WINDOW };
}

/** The code that played the run, or, where this deployment holds that version no more, the one it holds. */
function codeThereIs({ spec: { environment } }: RunRecord["run"]): string {
  const { id, version } = environment;
  const pinned = `${id}@${version}`;
  return findEnvironment(pinned) === null ? id : pinned;
}

/** Those of the source that this rubric asks, where the request names nobody else. */
function judgesKept(judges: Judges = {}, { rubric }: AnyEnvironment, request: RescoreRequest): Judges {
  const asked = rubric.judges.filter((name) => !Object.hasOwn(request.judges ?? {}, name));
  return Object.fromEntries(Object.entries(judges).filter(([name]) => asked.includes(name)));
}

/** By id, for one that was given with the run has no name. */
async function deletedJudge(env: Env, scope: Scope, judges: Judges): Promise<Result<never> | null> {
  for (const [name, { endpoint_id }] of Object.entries(judges)) {
    const found = await getEndpoint(env.DB, scope, endpoint_id);
    if (found !== null && found.deleted_at === null) continue;
    const message = `the endpoint of the judge ${name} was deleted: name another`;
    return refuse("conflict", message, `judges.${name}`);
  }
  return null;
}
