/**
 * Everything that can be wrong with a run but its rows and its endpoint: the environment, its arguments, what it needs,
 * who judges, and how many rollouts come of it. Nothing is stored here.
 */

import type { EvalRequest } from "../../contract/eval-request.ts";
import type { JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { RunDataset } from "../../contract/uploaded-dataset.ts";
import type { AnyEnvironment } from "../../core/environments/any-environment.ts";
import { buildTask, parseRow, RowError } from "../../core/rollout/task.ts";
import { charactersOf } from "../../core/size.ts";
import { type Result, refuse } from "../contract/refusal.ts";
import type { EnvironmentPin } from "../contract/wire.ts";
import { sourceOf } from "../dataset/datasets.ts";
import { type ResolvedDataset, resolveDataset } from "../dataset/resolve.ts";
import { refuseNeeds } from "../environment/capabilities.ts";
import { chooseEnvironment } from "../environment/choose-environment.ts";
import { pinOf } from "../environment/environments.ts";
import { PROCESS_TURNS, stepsOfTask } from "../kit/fair-turns.ts";

/** Members of a group that is scored as one: each may be a read, within one invocation's subrequests. */
export const WHOLE_GROUP = 400;

export interface Checked {
  readonly pin: EnvironmentPin;
  readonly environment: AnyEnvironment;
  readonly kind: RunDataset["kind"];
  /** Rows that came with the run, or a dataset it names; null for an environment with rows of its own. */
  readonly given: readonly unknown[] | ResolvedDataset | null;
  readonly length: number | null;
  readonly num_examples: number;
}

/** Whether the rows came with the run. */
export function isInline(given: Checked["given"]): given is readonly unknown[] {
  return Array.isArray(given);
}

interface CheckedAs {
  readonly training: boolean;
  /** Those of the run that begins this one. */
  readonly rows: ResolvedDataset | undefined;
}

export async function checkRun(
  env: Env,
  scope: Scope,
  request: EvalRequest,
  { training, rows }: CheckedAs,
): Promise<Result<Checked>> {
  const chosen = await chooseEnvironment(env, scope, request.environment, request.environment_args);
  if (!chosen.ok) return chosen;
  const { registered, environment } = chosen.value;
  const needing = { named: registered.id, needs: environment.needs, param: "environment" };
  const unmet = await refuseNeeds(env, scope, { ...needing, args: request.environment_args });
  if (unmet !== null) return unmet;
  const pin = pinOf(registered);
  const misjudged = misnamedJudge(request, environment, pin);
  if (misjudged !== null) return misjudged;
  if (typeof request.dataset !== "string") {
    const given = request.dataset ?? rows ?? null;
    return await checkDataset({ scope, request, training, environment, pin }, given);
  }
  // It came through JSON.parse, so it is JSON.
  const args = request.environment_args as JsonObject;
  const uploaded = await resolveDataset(env, scope, request.dataset, { pin, args, environment });
  if (!uploaded.ok) return uploaded;
  return await checkDataset({ scope, request, training, environment, pin }, uploaded.value);
}

/** The judges of the rubric and those of the request must be the same: a misspelt one would judge nothing. */
export function misnamedJudge(
  { judges }: { readonly judges: Readonly<Record<string, unknown>> },
  { rubric }: AnyEnvironment,
  { id }: EnvironmentPin,
): Result<never> | null {
  const missing = rubric.judges.find((name) => !Object.hasOwn(judges, name));
  if (missing !== undefined) {
    const message = `${id} needs the judge ${missing}: say who it is, {"endpoint": …, "model": …}`;
    return refuse("missing_judge", message, `judges.${missing}`);
  }
  const unknown = Object.keys(judges).find((name) => !rubric.judges.includes(name));
  if (unknown === undefined) return null;
  const known = rubric.judges.length === 0 ? "no judge" : rubric.judges.join(", ");
  return refuse("unknown_field", `${id} knows ${known}, not ${unknown}`, `judges.${unknown}`);
}

interface Asked {
  readonly scope: Scope;
  readonly request: EvalRequest;
  readonly training: boolean;
  readonly environment: AnyEnvironment;
  readonly pin: EnvironmentPin;
}

async function checkDataset(asked: Asked, given: Checked["given"]): Promise<Result<Checked>> {
  const { scope, request, training, environment, pin } = asked;
  const source = sourceOf(environment, training);
  if (given === null && source.kind === "uploaded") {
    const message = `${pin.id} has no rows of its own: dataset is required`;
    return refuse("invalid_request", message, "dataset");
  }
  const bad = isInline(given) ? await firstBadRow(scope, environment, source, given) : null;
  if (bad !== null) return bad;
  const length = isInline(given) ? given.length : (given?.dataset ?? source).length;
  const counted = training ? { ok: true as const, value: length ?? 1 } : count(asked, length);
  if (!counted.ok) return counted;
  const num_examples = counted.value;
  if (num_examples === 0) {
    return refuse("invalid_request", `${pin.id} has no rows`, "dataset");
  }
  const members = request.rollouts_per_example;
  const large = tooLargeGroup(environment, pin, members, "rollouts_per_example");
  if (large !== null) return large;
  if (request.shuffle && length === null) {
    const message = `${pin.id} makes tasks without end: they have no order`;
    return refuse("invalid_request", message, "shuffle");
  }
  const kind = given === null ? source.kind : "uploaded";
  return { ok: true, value: { pin, environment, kind, given, length, num_examples } };
}

/** Tasks of an eval, all of which it plans at once. */
function count({ request, pin }: Asked, length: number | null): Result<number> {
  const num_examples = countExamples(request, length);
  if (num_examples === null) {
    const message = `${pin.id} makes tasks without end: say how many`;
    return refuse("invalid_request", message, "num_examples");
  }
  const planned = num_examples * request.rollouts_per_example;
  if (planned <= LIMITS.rolloutsPerRun) return { ok: true, value: num_examples };
  const message = `${planned} rollouts; a run holds at most ${LIMITS.rolloutsPerRun}`;
  return refuse("too_large", message, "num_examples");
}

/** `param`: what is to be blamed for a group that its rubric cannot score as one. */
export function tooLargeGroup(
  { rubric }: AnyEnvironment,
  { id }: EnvironmentPin,
  members: number,
  param: string,
): Result<never> | null {
  if (!rubric.hasGroupFunctions || members <= WHOLE_GROUP) return null;
  return refuse("too_large", `${id} scores whole groups, of at most ${WHOLE_GROUP}`, param);
}

function countExamples(request: EvalRequest, length: number | null): number | null {
  if (request.num_examples === -1) return length;
  return Math.min(request.num_examples, length ?? Number.POSITIVE_INFINITY);
}

/** Every row is made a task of before anything is stored: a bad one is named by its place. Others compute in between. */
async function firstBadRow(
  { orgId }: Scope,
  environment: AnyEnvironment,
  source: AnyEnvironment["dataset"],
  rows: readonly unknown[],
): Promise<Result<never> | null> {
  for (const [index, row] of rows.entries()) {
    try {
      const { task, prompt } = buildTask(environment, parseRow(source, row, index), index);
      const text = JSON.stringify(task);
      await PROCESS_TURNS.spend(orgId, stepsOfTask(text, charactersOf(prompt)));
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
