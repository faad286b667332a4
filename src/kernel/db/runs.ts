/**
 * Runs: written when they are accepted, then updated by their object. A run is read together with the public fields of
 * its endpoint, never with the sealed key.
 */
import { and, asc, count, desc, eq, exists, inArray, isNull, lt, notExists, type SQL, sql } from "drizzle-orm";
import { costOfUsage } from "../../contract/judgement.ts";
import type { RunReport } from "../../contract/report.ts";
import type { RunCounts, RunStatus, RunView } from "../../contract/run.ts";
import type { RunPatch } from "../../contract/run-control.ts";
import { plannedAtFirst, type RunSpec } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import { REFERENCE_JUDGE } from "../../contract/training-request.ts";
import type { Database } from "./database.ts";
import { violatedTable } from "./idempotency-keys.ts";
import { currentReport } from "./old-names.ts";
import { pageOf, seconds } from "./page.ts";
import { beyondValue, RUNS_SEARCHED, type RunFilter, runConditions, SORTED_BY } from "./run-filter.ts";
import { type EndpointRow, endpoints, type RunRow, runs } from "./schema.ts";
import { type Condition, inOrganization, inProject, isOpenProject, type Rows, unscoped } from "./scoped.ts";
import { fleetTable } from "./slice-tables.ts";

export type NewRun = Omit<RunRow, "org_id" | "project_id">;
/** An endpoint that was given inline in a run and belongs to it. */
export type InlineEndpointRow = Pick<EndpointRow, "id" | "base_url" | "sealed_key" | "api_key_last4" | "created_at"> &
  Partial<Pick<EndpointRow, "prices" | "refuses" | "silence_limit_s">>;
/** Where a run's model is called: an endpoint or a fleet; the other one is null. */
export interface RunPlace {
  readonly endpoint: Pick<EndpointRow, "id" | "name" | "base_url" | "api_key_last4"> | null;
  readonly fleet: { readonly id: string; readonly name: string | null } | null;
}
export interface RunRecord extends RunPlace {
  readonly run: RunRow;
}

/**
 * The result of writing a run. `full`: the organisation has the maximum number of unfinished runs. `taken`: another
 * training run uses the fleet that this run needs alone. `gone`: its project is being deleted.
 */
export type Inserted = "inserted" | "conflict" | "full" | "taken" | "gone";

/** The limits that may prevent the insertion. */
export interface InsertLimits {
  /** How many unfinished runs the organisation may have; null for no limit. */
  readonly most: number | null;
  /** A fleet that no other unfinished training run may use; null: no such fleet. */
  readonly alone: string | null;
}

/**
 * Writes a run and its inline endpoints, all or nothing, in one call. `conflict`: a run with this idempotency key
 * exists.
 */
export async function insertRun(
  database: Database,
  scope: Scope,
  run: NewRun,
  endpoint: InlineEndpointRow | null,
  judges: readonly InlineEndpointRow[] = [],
  { most, alone }: InsertLimits = { most: null, alone: null },
): Promise<Inserted> {
  const project = inProject(database, scope);
  const owned = inOrganization(database, scope.orgId);
  const beside = endpoint === null ? judges : [endpoint, ...judges];
  // A refused run must not leave an endpoint.
  const isThere = exists(project.columns({ id: runs.id }, runs, eq(runs.id, run.id)));
  const open = isOpenProject(database, scope);
  const unfinished = () => owned.columns({ n: count() }, runs, inArray(runs.status, UNFINISHED));
  const trainers = () => trainingOn(database, scope, alone ?? "");
  const free = alone === null ? open : sql`${open} and ${notExists(trainers())}`;
  const room = most === null ? free : sql`${free} and ${unfinished()} < ${most}`;
  try {
    const [inserted, [standing], others] = await project.batch([
      project.insertIf(room, runs, run).returning({ id: runs.id }),
      unfinished(),
      trainers(),
      ...beside.map((row) => project.insertIf(isThere, endpoints, row)),
    ]);
    if (inserted.length === 1) return "inserted";
    if (alone !== null && others.some(({ id }) => id !== run.id)) return "taken";
    return most !== null && (standing?.n ?? 0) >= most ? "full" : "gone";
  } catch (thrown) {
    if (violatedTable(thrown) !== "runs") throw thrown;
    return "conflict";
  }
}

const UNFINISHED: RunStatus[] = ["queued", "running", "paused"];

export async function getRun(database: Database, scope: Scope, id: string): Promise<RunRecord | null> {
  const rows = await selectRuns(database, scope, eq(runs.id, id));
  return rows[0] ?? null;
}

export async function findRunByIdempotencyKey(
  database: Database,
  scope: Scope,
  key: string,
): Promise<RunRecord | null> {
  const rows = await selectRuns(database, scope, eq(runs.idempotency_key, key));
  return rows[0] ?? null;
}

/** Runs in the order of `filter.sort`, then of their time and id, after `after`; at most `limit`. */
export async function listRuns(database: Database, scope: Scope, filter: RunFilter): Promise<RunRecord[]> {
  const newest = inProject(database, scope)
    .columns({ id: runs.id }, runs, isNull(runs.deleted_at))
    .orderBy(desc(runs.created_at), desc(runs.id))
    .limit(RUNS_SEARCHED);
  const conditions = runConditions(filter, newest);
  const { sort, after, limit } = filter;
  if (sort === "created") {
    return await pageOf(runs, filter, (beyond) => selectRuns(database, scope, ...conditions, beyond));
  }
  const by = SORTED_BY[sort];
  const direction = filter.order === "asc" ? asc : desc;
  const [last] = after === null ? [] : await sortedValue(database, scope, by, after.id);
  return await selectRuns(database, scope, ...conditions, beyondValue(by, last?.value ?? null, filter))
    .orderBy(sql`${by} is null`, direction(by), direction(runs.created_at), direction(runs.id))
    .limit(limit);
}

function sortedValue(database: Database, scope: Scope, by: SQL<string | number | null>, id: string) {
  return inProject(database, scope).columns({ value: by.as("value") }, runs, eq(runs.id, id));
}

/** The result of deleting something that runs use. `usedBy`: ids of unfinished runs, at most `RUNS_LISTED`. */
export interface Deleted {
  readonly deleted: boolean;
  readonly usedBy: string[];
}
export const RUNS_LISTED = 32;

/** The ids of unfinished runs that meet the condition. */
export function unfinishedRuns(database: Database, scope: Scope, condition: Condition): Rows<{ id: string }> {
  const unfinished = inArray(runs.status, UNFINISHED);
  return inProject(database, scope).columns({ id: runs.id }, runs, condition, unfinished);
}

/** The ids of unfinished training runs on a fleet, as far as the list of runs knows. */
export function trainingOn(database: Database, scope: Scope, fleetId: string): Rows<{ id: string }> {
  return unfinishedRuns(database, scope, and(eq(runs.endpoint_id, fleetId), eq(runs.kind, "training")));
}

/** Updates the copy of a run's state. Fields left out are unchanged. */
export async function updateRun(
  database: Database,
  scope: Scope,
  id: string,
  changes: Partial<
    Pick<RunRow, "status" | "counts" | "report" | "error" | "finished_at" | "dead_letters" | "stored_bytes">
  >,
): Promise<void> {
  await inProject(database, scope).update(runs, { ...changes, written_at: Date.now() }, eq(runs.id, id));
}

/**
 * The unfinished runs whose objects have not written their rows since `before` (epoch milliseconds): those silent for
 * longest, at most `limit` of them (or one of each D1 database), and of each D1 database an equal part. Their rows count as
 * written now, so that the next call returns others.
 */
export async function takeSilentRuns(
  database: Database,
  { now, before, limit }: { readonly now: number; readonly before: number; readonly limit: number },
): Promise<{ id: string; scope: Scope }[]> {
  const part = Math.max(1, Math.floor(limit / database.all.length));
  const taken = await database.each((d1) => takeSilentIn(d1, { now, before, limit: part }));
  return taken.flat();
}

async function takeSilentIn(
  d1: D1Database,
  { now, before, limit }: { readonly now: number; readonly before: number; readonly limit: number },
): Promise<{ id: string; scope: Scope }[]> {
  const all = unscoped(d1, "operator");
  const last = sql`coalesce(${runs.written_at}, ${runs.created_at})`;
  const silent = all
    .select({ id: runs.id })
    .from(runs)
    .where(and(isNull(runs.finished_at), isNull(runs.deleted_at), lt(last, before)))
    .orderBy(last)
    .limit(limit);
  const taken = await all
    .update(runs)
    .set({ written_at: now })
    .where(inArray(runs.id, silent))
    .returning({ id: runs.id, orgId: runs.org_id, projectId: runs.project_id });
  return taken.map(({ id, ...scope }) => ({ id, scope }));
}

/** What a client may change in a run, at any time. Fields left out are unchanged. */
export async function changeRun(
  database: Database,
  scope: Scope,
  id: string,
  { max_concurrent, ...plain }: RunPatch,
): Promise<void> {
  const spec =
    max_concurrent === undefined ? {} : { spec: sql`json_set(${runs.spec}, '$.max_concurrent', ${max_concurrent})` };
  const changes = { ...plain, ...spec };
  if (Object.keys(changes).length === 0) return;
  await inProject(database, scope).update(runs, changes, eq(runs.id, id));
}

function selectRuns(database: Database, scope: Scope, ...conditions: Condition[]): Rows<RunRecord> {
  const { id, name, base_url, api_key_last4 } = endpoints;
  const there = isNull(runs.deleted_at);
  const fleets = fleetTable();
  const places = {
    endpoint: { table: endpoints, columns: { id, name, base_url, api_key_last4 }, on: eq(id, runs.endpoint_id) },
    fleet: fleets && {
      ...{ table: fleets, columns: { id: fleets.id, name: fleets.name }, on: eq(fleets.id, runs.endpoint_id) },
    },
  };
  return inProject(database, scope).withBeside({ run: runs }, runs, places, there, ...conditions);
}

/** A run in the shape of the API, from its row. Its object has more current data while it runs. */
export function runViewOf({ run, endpoint, fleet }: RunRecord): RunView {
  const { id, kind, name, status, error, metadata, dead_letters, spec } = run;
  // Members are listed one by one: the record may have other fields, such as sealed keys, that must not be returned.
  const { environment, environment_args, model, sampling, num_examples, rollouts_per_example } = spec;
  const { max_concurrent, limits, min_scored, max_reward, shuffle, seed, answer_cache, prompts, fork, rescore } = spec;
  const report = currentReport(run.report ?? NOTHING_FINISHED);
  return {
    object: "run",
    ...{ id, kind, name, status, error, metadata, dead_letters },
    ...{ environment, environment_args, model, sampling, num_examples, rollouts_per_example },
    ...{ max_concurrent, limits, min_scored, shuffle, seed },
    ...(max_reward !== undefined && { max_reward }),
    ...(answer_cache === true && { answer_cache }),
    ...(prompts && { prompts }),
    max_cost_micros: spec.money?.max_cost_micros ?? null,
    status_reason: run.finished_at === null ? statusReasonOf(run) : null,
    endpoint: endpoint && shownOf(endpoint),
    fleet: fleet && { id: fleet.id, name: fleet.name },
    agent: spec.agent ?? null,
    dataset: run.dataset_id,
    judges: judgesOf(spec),
    counts: run.counts ?? nothingDispatched(spec),
    report,
    cost: costOfUsage(report.usage),
    forked_from: fork === undefined ? null : { rollout_id: fork.rollout_id, turn: fork.turn },
    rescored_from: rescore?.run_id ?? null,
    // Only its object has this.
    training: null,
    created_at: seconds(run.created_at),
    finished_at: run.finished_at === null ? null : seconds(run.finished_at),
  };
}

function shownOf({ id, name, base_url, api_key_last4 }: NonNullable<RunPlace["endpoint"]>): RunView["endpoint"] {
  return { id, name, base_url, api_key_last4 };
}

/** The status reason as far as D1 has it; the run's object has more. */
function statusReasonOf({ status }: RunRow): RunView["status_reason"] {
  return status === "paused" ? { state: "paused", reason: "user" } : { state: "active", reason: null };
}

function judgesOf({ judges = {} }: RunSpec): RunView["judges"] {
  // A training's reference is called as a judge, and is in `training`.
  const named = Object.entries(judges).filter(([name]) => name !== REFERENCE_JUDGE);
  return Object.fromEntries(named.map(([name, { endpoint_id, model }]) => [name, { endpoint: endpoint_id, model }]));
}

function nothingDispatched(spec: RunSpec): RunCounts {
  const planned = plannedAtFirst(spec);
  return {
    planned,
    pending: planned,
    dispatched: 0,
    in_flight: 0,
    scored: 0,
    unscored: {},
    failed: {},
    cancelled: {},
  };
}

const NOTHING_FINISHED: RunReport = {
  reward: {
    mean: null,
    se: null,
    ci95: null,
    wilson95: null,
    range: null,
    n_tasks: 0,
    n_rollouts: 0,
    n_unscored: 0,
    n_error: 0,
    n_truncated: 0,
  },
  metrics: {},
  pass_at_k: {},
  pass_hat_k: {},
  pass_k: {},
  stop_conditions: {},
  turns: 0,
  usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
  calls: 0,
};
