/**
 * Begins and ends a drain, and counts what is in flight. The organisations' objects do the work: while the deployment is
 * draining they grant no rollouts, and they notify their runs (src/kernel/account).
 *
 * Invariant. A run may start a rollout only within a lease of its organisation's object. So if no such object has
 * granted any, and nothing is in flight, nothing starts until the drain ends.
 */

import { databaseOf } from "../kernel/db/database.ts";
import { Refusal } from "../kernel/http/errors.ts";
import { beginDrain, drainingSince, endDrain } from "../kernel/kit/draining.ts";
import { idsOf, logError } from "../kernel/kit/log.ts";
import { accountObject, runObject } from "../kernel/kit/names.ts";
import { Subrequests } from "../kernel/kit/subrequests.ts";
import { listUnfinishedRuns, type UnfinishedRun } from "./queries.ts";
import type { DrainPage } from "./wire.ts";

/** Runs in one request: each of them and its organisation is called once. */
const RUNS_AT_ONCE = 100;

/** One page of unfinished runs. A repeat may find fewer in flight. `begin`: the drain begins, if it has not. */
export async function drainPage(env: Env, after: string, begin: boolean): Promise<DrainPage> {
  if (begin) await beginDrain(env);
  else if ((await drainingSince(env)) === null) throw new Refusal(ENDED);
  const { runs, next } = await pageAfter(env, after);
  const subrequests = new Subrequests();
  const granted = await notifyOrganizations(env, runs, subrequests);
  const found = await subrequests.objectAll(runs, (run) => inFlightOf(env, run));
  const silent = runs.flatMap(({ id }, at) => (found[at] === null ? [id] : []));
  const busy = runs.flatMap(({ id }, at) => ((found[at] ?? 0) > 0 ? [id] : []));
  const in_flight = found.reduce<number>((sum, count) => sum + (count ?? 0), 0);
  return { in_flight, granted, busy, silent, next };
}

const ENDED = { code: "conflict", message: "the drain was ended by another command", param: null } as const;

/** Notifies the organisations of one page of unfinished runs that rollouts may start again. */
export async function resumePage(env: Env, after: string): Promise<Pick<DrainPage, "next">> {
  if (after === "") await endDrain(env);
  const { runs, next } = await pageAfter(env, after);
  await notifyOrganizations(env, runs, new Subrequests());
  return { next };
}

async function pageAfter(env: Env, after: string) {
  const runs = await listUnfinishedRuns(databaseOf(env), after, RUNS_AT_ONCE);
  return { runs, next: runs.length < RUNS_AT_ONCE ? null : (runs.at(-1)?.id ?? null) };
}

/** Returns how many rollouts the organisations of these runs have granted; one that does not answer counts as one. */
async function notifyOrganizations(env: Env, runs: readonly UnfinishedRun[], subrequests: Subrequests) {
  const organizations = [...new Set(runs.map(({ scope }) => scope.orgId))];
  const granted = await subrequests.objectAll(organizations, async (org_id) => {
    try {
      return (await accountObject(env, org_id).changed())?.granted ?? 1;
    } catch (thrown) {
      logError("drain: the organization does not answer", { org_id }, thrown);
      return 1;
    }
  });
  return granted.reduce((sum, count) => sum + count, 0);
}

/** Null if it does not answer. */
async function inFlightOf(env: Env, { id, scope }: UnfinishedRun): Promise<number | null> {
  try {
    return await runObject(env, scope, id).underWay();
  } catch (thrown) {
    logError("drain: the run does not answer", idsOf({ scope, run_id: id }), thrown);
    return null;
  }
}
