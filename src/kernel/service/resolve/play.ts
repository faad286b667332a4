/**
 * Resolves what a run plays: the code of its environment with its arguments, the rows, the number of rollouts, and the
 * names of its judges. Nothing is stored here.
 */

import type { JsonObject } from "../../../contract/json.ts";
import { LIMITS } from "../../../contract/limits.ts";
import type { Scope } from "../../../contract/scope.ts";
import type { RunDataset } from "../../../contract/uploaded-dataset.ts";
import type { Need } from "../../../core/environments/contract.ts";
import type { EnvironmentCode } from "../../../core/protocol/environment-code.ts";
import { judgesFault } from "../../../core/protocol/request-faults.ts";
import { RowError } from "../../../core/rollout/task.ts";
import { charactersOf } from "../../../core/size.ts";
import { sourceOf } from "../../dataset/datasets.ts";
import { type ResolvedDataset, resolveDataset } from "../../dataset/resolve.ts";
import { refuseNeeds } from "../../environment/capabilities.ts";
import { chooseEnvironment } from "../../environment/choose-environment.ts";
import { pinOf } from "../../environment/environments.ts";
import { makeTask } from "../../environment/make-task.ts";
import { PROCESS_SCHEDULER, stepsOfTask } from "../../kit/fair-scheduler.ts";
import { type Result, refuse } from "../../messages/refusal.ts";
import type { EnvironmentPin } from "../../messages/wire.ts";

/** Members of a group that is scored as one. Each may need a read, within one invocation's subrequests. */
export const WHOLE_GROUP = 400;

export interface PlayWanted {
  /** An environment by name (`id`, `id@version`), or the code of another run, which was found already. */
  readonly code: { readonly named: string; readonly args: Readonly<Record<string, unknown>> } | Code;
  readonly rows: RowsWanted;
  /** -1: all. */
  readonly num_examples: number;
  readonly rollouts_per_example: number;
  /** The field to name in the error if a group is too large to be scored as one. */
  readonly groupParam: string;
  /** Whether groups are scored as one, whatever the rubric says; by default the rubric decides. */
  readonly whole_groups?: boolean;
  readonly shuffle: boolean;
  /** The endpoints of judges, by judge name. */
  readonly judges: Readonly<Record<string, unknown>>;
  /** Judges of another run. Those are used that the rubric calls and `judges` does not name. */
  readonly kept?: { readonly judges: Readonly<Record<string, unknown>> | undefined };
  /** Null for a run that is not a training run: it plans all its tasks at once. */
  readonly training: object | null;
}

/**
 * Rows in the request, a dataset by name, or a dataset that was looked up before; null: the environment's own rows.
 * `taken`: the rows of a run whose trajectories are taken over, so no row is read.
 */
export type RowsWanted =
  | { readonly inline: readonly unknown[] }
  | { readonly named: string }
  | { readonly found: ResolvedDataset }
  | { readonly taken: RunDataset }
  | null;

/** Where the rows of a run are. */
export interface RunRows {
  readonly dataset: RunDataset;
  /** Id of an uploaded dataset. */
  readonly id: string | null;
  /** Rows in the request that must be stored. */
  readonly inline: readonly unknown[] | null;
}

export interface Played {
  readonly pin: EnvironmentPin;
  readonly args: JsonObject;
  readonly environment: EnvironmentCode;
  /** What it may use; absent if it comes with the deployment. */
  readonly needs?: readonly Need[];
  readonly rows: RunRows;
  readonly num_examples: number;
  readonly whole_groups: boolean;
  /** The best possible reward; null if the environment does not declare it. */
  readonly max_reward: number | null;
}

export type Code = Pick<Played, "pin" | "args" | "environment" | "needs">;

export async function resolvePlay(env: Env, scope: Scope, wanted: PlayWanted): Promise<Result<Played>> {
  const code = await resolveCode(env, scope, wanted.code);
  if (!code.ok) return code;
  const { pin, environment } = code.value;
  const [given, kept] = [Object.keys(wanted.judges), Object.keys(wanted.kept?.judges ?? {})];
  const misnamed = judgesFault(pin.id, environment.description.judges, given, kept);
  if (misnamed !== null) return { ok: false, error: misnamed };
  const rows = await resolveRows(env, scope, wanted, code.value);
  if (!rows.ok) return rows;
  const isTaken = wanted.rows !== null && "taken" in wanted.rows;
  const endless = !isTaken && rows.value.dataset.length === null;
  const counted = isTaken ? wanted.num_examples : countTasks(wanted, pin, rows.value.dataset.length);
  if (typeof counted !== "number") return counted;
  const whole_groups = wanted.whole_groups ?? environment.description.scores.some(({ group }) => group);
  if (whole_groups && wanted.rollouts_per_example > WHOLE_GROUP) {
    return refuse("too_large", `${pin.id} scores whole groups, of at most ${WHOLE_GROUP} rollouts`, wanted.groupParam);
  }
  if (wanted.shuffle && endless) {
    return refuse("invalid_request", `${pin.id} generates endless tasks, which have no order`, "shuffle");
  }
  const { maxReward: max_reward = null } = environment.description;
  return { ok: true, value: { ...code.value, rows: rows.value, num_examples: counted, whole_groups, max_reward } };
}

/** The code, built with its arguments, after a check that all its needs are met. */
async function resolveCode(env: Env, scope: Scope, wanted: PlayWanted["code"]): Promise<Result<Code>> {
  if ("pin" in wanted) return { ok: true, value: wanted };
  const chosen = await chooseEnvironment(env, scope, wanted.named, wanted.args);
  if (!chosen.ok) return chosen;
  const { registered, environment } = chosen.value;
  const { needs } = environment.description;
  const needing = { named: registered.id, needs, param: "environment" };
  const unmet = await refuseNeeds(env, scope, { ...needing, args: wanted.args });
  if (unmet !== null) return unmet;
  // The arguments came through JSON.parse, so they are JSON.
  return {
    ok: true,
    value: {
      pin: pinOf(registered),
      args: wanted.args as JsonObject,
      environment,
      ...(registered.published && { needs }),
    },
  };
}

async function resolveRows(
  env: Env,
  scope: Scope,
  { rows, training }: PlayWanted,
  { pin, args, environment }: Code,
): Promise<Result<RunRows>> {
  const source = sourceOf(environment, training !== null);
  if (rows === null) {
    const { kind, length, fault } = source;
    if (fault !== null) {
      return refuse("invalid_request", `${pin.id} cannot make its rows: ${fault}`, "environment_args");
    }
    if (kind !== "uploaded")
      return { ok: true, value: { dataset: { kind, key: null, length }, id: null, inline: null } };
    return refuse("invalid_request", `${pin.id} has no rows of its own: dataset is required`, "dataset");
  }
  if ("taken" in rows) return { ok: true, value: { dataset: rows.taken, id: null, inline: null } };
  if ("found" in rows) return { ok: true, value: { ...rows.found, inline: null } };
  if ("named" in rows) {
    const found = await resolveDataset(env, scope, rows.named, { pin, args, environment });
    return found.ok ? { ok: true, value: { ...found.value, inline: null } } : found;
  }
  const { inline } = rows;
  const bad = await firstBadRow(scope, environment, training !== null, inline);
  if (bad !== null) return bad;
  return { ok: true, value: { dataset: { kind: "uploaded", key: null, length: inline.length }, id: null, inline } };
}

/** For an eval, the tasks that it plans; for a training run, all that exist. `length`: null for endless tasks. */
function countTasks(
  { num_examples: asked, rollouts_per_example, training }: PlayWanted,
  { id }: EnvironmentPin,
  length: number | null,
): number | Result<never> {
  const all = length ?? Number.POSITIVE_INFINITY;
  const tasks = training === null ? Math.min(asked === -1 ? all : asked, all) : (length ?? 1);
  if (tasks === Number.POSITIVE_INFINITY) {
    return refuse("invalid_request", `${id} generates endless tasks: set how many`, "num_examples");
  }
  const planned = tasks * rollouts_per_example;
  if (training === null && planned > LIMITS.rolloutsPerRun) {
    return refuse("too_large", `${planned} rollouts; a run holds at most ${LIMITS.rolloutsPerRun}`, "num_examples");
  }
  return tasks === 0 ? refuse("invalid_request", `${id} has no rows`, "dataset") : tasks;
}

/** Builds a task from every row before anything is stored, so that an error names the row. Yields between rows. */
async function firstBadRow(
  { orgId }: Scope,
  environment: EnvironmentCode,
  training: boolean,
  rows: readonly unknown[],
): Promise<Result<never> | null> {
  for (const [index, row] of rows.entries()) {
    try {
      const { task } = await makeTask(environment, { kind: "brought", training, index, row });
      const text = JSON.stringify(task.task);
      await PROCESS_SCHEDULER.spend(orgId, stepsOfTask(text, charactersOf(task.prompt)));
      if (text.length > LIMITS.taskRowBytes) {
        return refuse("too_large", `row ${index} is over ${LIMITS.taskRowBytes} bytes`, `rows[${index}]`);
      }
    } catch (thrown) {
      if (!(thrown instanceof RowError)) throw thrown;
      return refuse("invalid_row", `row ${index + 1}: ${thrown.message}`, thrown.path);
    }
  }
  return null;
}
