/** The environment that a request names, built with its arguments: for a run, or to check uploaded rows. */

import type { JsonObject } from "../../contract/json.ts";
import type { Scope } from "../../contract/scope.ts";
import type { AnyEnvironment } from "../../core/environments/any-environment.ts";
import { formatPath, valueAt } from "../../core/field-path.ts";
import { argumentsWork, checkWithin } from "../../core/rubrics/work.ts";
import { PROCESS_SCHEDULER, stepsOfJson } from "../kit/fair-scheduler.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import { behindRoute } from "./code-behind-route.ts";
import { builtEnvironment, findEnvironment, type HeldEnvironment } from "./environments.ts";

export interface ChosenEnvironment {
  readonly registered: HeldEnvironment;
  readonly environment: AnyEnvironment;
}

/** `named`: `id` or `id@version`. Refuses with `environment` or `environment_args` as the field at fault. */
export async function chooseEnvironment(
  env: Env,
  scope: Scope,
  named: string,
  args: Readonly<Record<string, unknown>>,
): Promise<Result<ChosenEnvironment>> {
  const registered = findEnvironment(named);
  if (registered === null) return refuse("not_found", `no environment ${named}`, "environment");
  const parsed = await parseInTurn(scope.orgId, registered, args);
  if (!parsed.success) return refuseArgs(parsed.error.issues[0], args);
  // The arguments came through JSON.parse, so they are JSON.
  const looked = await behindRoute(env, registered, args as JsonObject, async () => {
    const environment = await builtOrError(scope, registered, args as JsonObject);
    return environment instanceof Error ? environment : { environment, rowless: rowsFault(environment) };
  });
  if (looked instanceof Error) {
    const message = `${registered.id} cannot be built from these arguments: ${looked.message}`;
    return refuse("invalid_request", message, "environment_args");
  }
  const { environment, rowless } = looked;
  if (rowless !== null) {
    const message = `${registered.id} cannot make its rows: ${rowless}`;
    return refuse("invalid_request", message, "environment_args");
  }
  return { ok: true, value: { registered, environment } };
}

/** Compiles all patterns and schemas in the arguments, so the work is counted and takes a scheduling turn. */
async function parseInTurn(orgId: string, { args: schema }: HeldEnvironment, args: Readonly<Record<string, unknown>>) {
  const work = argumentsWork();
  const giveBack = await PROCESS_SCHEDULER.take(orgId);
  try {
    return checkWithin(() => schema.safeParse(args), work);
  } finally {
    giveBack(stepsOfJson(JSON.stringify(args)) + work.steps);
  }
}

/** Reading the length may run the environment's own code, which makes the rows. */
function rowsFault({ evalDataset, dataset }: AnyEnvironment): string | null {
  try {
    void (evalDataset ?? dataset).length;
    return null;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
}

/** The environment, or the error that its own code threw for these arguments. */
export async function builtOrError(
  scope: Scope | null,
  registered: HeldEnvironment,
  args: JsonObject,
): Promise<AnyEnvironment | Error> {
  try {
    return await builtEnvironment(scope, registered, args);
  } catch (thrown) {
    return thrown instanceof Error ? thrown : new Error(String(thrown));
  }
}

type Issue = NonNullable<ReturnType<HeldEnvironment["args"]["safeParse"]>["error"]>["issues"][number];

function refuseArgs(issue: Issue | undefined, args: unknown): Result<never> {
  const path = issue?.path ?? [];
  const unknown = issue?.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
  const param = formatPath(["environment_args", ...path, ...unknown]);
  if (unknown.length > 0) return refuse("unknown_field", `${param} is not a known field`, param);
  const missing = issue?.code === "invalid_type" && valueAt(args, path) === undefined;
  const reason = missing ? "is required" : (issue?.message ?? "does not fit the environment");
  return refuse("invalid_request", `${param}: ${reason}`, param);
}
