/** The results of an environment for each model, from the rows of its newest runs. */
import type { EnvironmentResults, ModelResults } from "../../contract/environment-results.ts";
import { canonicalJson, type JsonObject } from "../../contract/json.ts";
import type { ResolvedJudge } from "../../contract/judgement.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import { databaseOf } from "../db/database.ts";
import { seconds } from "../db/page.ts";
import { type RunResults, runsOfEnvironment } from "../db/past-runs.ts";
import { environmentNamed } from "../environment/environments.ts";
import { type Result, refuse } from "../messages/refusal.ts";

/**
 * The results of a project's runs stay when the environment is taken down or deleted, so the environment is looked up only
 * if it has none under this spelling of its name.
 */
export async function readEnvironmentResults(env: Env, scope: Scope, id: string): Promise<Result<EnvironmentResults>> {
  if (id.includes("@")) {
    return refuse("invalid_request", "id: give the environment without its version", "id");
  }
  const read = (of: string) => runsOfEnvironment(databaseOf(env), scope, { id: of, limit: LIMITS.resultRuns + 1 });
  const runs = await read(id);
  if (runs.length > 0) return { ok: true, value: resultsOf(id, runs) };
  const found = await environmentNamed(env, scope, id, "id");
  if (!found.ok) return found;
  return { ok: true, value: resultsOf(found.value.id, found.value.id === id ? [] : await read(found.value.id)) };
}

/** `read`: the newest first; one more than the limit, if there are more. */
function resultsOf(id: string, read: readonly RunResults[]): EnvironmentResults {
  const runs = read.slice(0, LIMITS.resultRuns);
  const rows = new Map<string, RunResults[]>();
  const left_out = { training: 0, forked: 0, rescored: 0 };
  for (const run of runs) {
    if (run.kind === "training") left_out.training += 1;
    else if (run.forked) left_out.forked += 1;
    else if (run.rescored) left_out.rescored += 1;
    else {
      const alike = keyOf(run);
      const evals = rows.get(alike);
      if (evals === undefined) rows.set(alike, [run]);
      else evals.push(run);
    }
  }
  return {
    object: "environment_results",
    ...{ id, runs: runs.length, has_more: read.length > runs.length, left_out },
    rows: [...rows.values()].flatMap(rowOf).sort(byMean),
  };
}

/** Rewards of runs with different keys cannot be compared, or are of different models. */
function keyOf({ id, version, digest, model, weightsOf, dataset, inline, args, judges }: RunResults): string {
  const known = args !== null && judges !== null ? { args, judges: judgesOf(judges) } : { id };
  return canonicalJson([version, digest, model, weightsOf, dataset, inline, known]);
}

function judgesOf(judges: NonNullable<RunResults["judges"]>) {
  const decides = ({ model, sampling }: ResolvedJudge) => ({ model, sampling: sampling as JsonObject });
  return Object.fromEntries(Object.entries(judges).map(([name, judge]) => [name, decides(judge)]));
}

function rowOf(evals: readonly RunResults[]): ModelResults[] {
  const [newest] = evals;
  if (newest === undefined) return [];
  const { version, digest, model, weightsOf, dataset, inline, args, judges } = newest;
  const ends = evals.map(endsOf);
  return [
    {
      ...{ version, digest, model, weights_of: weightsOf, dataset, inline: inline === 1, environment_args: args },
      judges: judges === null ? null : judgesOf(judges),
      evals: evals.length,
      unfinished: evals.filter((one) => !hasEnded(one)).length,
      rollouts: ends.reduce((all, each) => ({
        planned: all.planned + each.planned,
        scored: all.scored + each.scored,
        unscored: all.unscored + each.unscored,
        failed: all.failed + each.failed,
        cancelled: all.cancelled + each.cancelled,
      })),
      measured: measuredOf(evals),
      latest: evals.slice(0, LIMITS.resultEvalsListed).map(({ id, name, status, reward, created_at }) => {
        return { id, name, status, mean: reward?.mean ?? null, created_at: seconds(created_at) };
      }),
    },
  ];
}

/** The choice must not depend on the rewards. */
function measuredOf(evals: readonly RunResults[]): ModelResults["measured"] {
  let most: ModelResults["measured"] = null;
  for (const one of evals) {
    const { id, reward, created_at } = one;
    if (!hasEnded(one) || reward === null || reward.mean === null) continue;
    if (most !== null && reward.n_tasks <= most.reward.n_tasks) continue;
    most = { id, created_at: seconds(created_at), reward, rollouts: endsOf(one) };
  }
  return most;
}

function hasEnded({ status }: RunResults): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

function endsOf({ counts, planned }: RunResults): ModelResults["rollouts"] {
  if (counts === null) return { planned, scored: 0, unscored: 0, failed: 0, cancelled: 0 };
  const sum = (ends: Readonly<Record<string, number>>) => Object.values(ends).reduce((all, n) => all + n, 0);
  const { scored, unscored, failed, cancelled } = counts;
  return {
    planned: counts.planned,
    ...{ scored, unscored: sum(unscored), failed: sum(failed), cancelled: sum(cancelled) },
  };
}

/** The highest first, those without a mean last; the order of the rest is by their newest eval. */
function byMean({ measured: a }: ModelResults, { measured: b }: ModelResults): number {
  return (b?.reward.mean ?? Number.NEGATIVE_INFINITY) - (a?.reward.mean ?? Number.NEGATIVE_INFINITY) || 0;
}
