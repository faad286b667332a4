/** The environment that a request names, built with its arguments: for a run, or to check uploaded rows. */

import { EnvError } from "../../contract/errors.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { Scope } from "../../contract/scope.ts";
import type { ArgumentsFault, EnvironmentCode, VersionedEnvironment } from "../../core/protocol/environment-code.ts";
import { argumentsFault, unbuiltFault } from "../../core/protocol/request-faults.ts";
import { argumentsWork } from "../../core/rubrics/work.ts";
import { PROCESS_SCHEDULER, stepsOfJson } from "../kit/fair-scheduler.ts";
import { publishedEnvironments } from "../kit/slice-hooks.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import { behindRoute } from "./code-behind-route.ts";
import { builtEnvironment, environmentNamed } from "./environments.ts";

export interface ChosenEnvironment {
  readonly registered: VersionedEnvironment;
  readonly environment: EnvironmentCode;
}

/** `named`: `id` or `id@version`. Refuses with `environment` or `environment_args` as the field at fault. */
export async function chooseEnvironment(
  env: Env,
  scope: Scope,
  named: string,
  args: Readonly<Record<string, unknown>>,
): Promise<Result<ChosenEnvironment>> {
  const found = await environmentNamed(env, scope, named, "environment");
  if (!found.ok) return found;
  const registered = found.value;
  if (registered.published?.version.kind === "python") {
    const message = `environment: ${registered.id} is a Python environment, which this platform cannot play itself yet`;
    return refuse("invalid_request", message, "environment");
  }
  const fault = await checkArguments(env, scope.orgId, registered, args);
  if (fault instanceof EnvError) {
    const message = `${registered.id}@${registered.version} cannot check its arguments: ${fault.message}`;
    return refuse("invalid_request", message, "environment");
  }
  if (fault !== null) return { ok: false, error: argumentsFault(fault) };
  // The arguments came through JSON.parse, so they are JSON.
  const looked = await behindRoute(env, registered, args as JsonObject, async () => {
    const environment = await builtOrError(scope, registered, args as JsonObject);
    return environment instanceof Error ? environment : { environment, rowless: rowsFault(environment.description) };
  });
  if (looked instanceof Error) {
    return { ok: false, error: unbuiltFault(registered.id, looked.message) };
  }
  const { environment, rowless } = looked;
  if (rowless !== null) {
    const message = `${registered.id} cannot make its rows: ${rowless}`;
    return refuse("invalid_request", message, "environment_args");
  }
  const wanted = { id: registered.id, needs: environment.description.needs, param: "environment" };
  const ungranted = await publishedEnvironments().refuseUngranted(env, scope, wanted);
  return ungranted ?? { ok: true, value: { registered, environment } };
}

/** Published code computes in its own isolate, and may not answer: it holds no turn of this process. */
async function checkArguments(
  env: Env,
  orgId: string,
  registered: VersionedEnvironment,
  args: Readonly<Record<string, unknown>>,
): Promise<ArgumentsFault | EnvError | null> {
  if (registered.published === null) return await checkInTurn(orgId, registered, args);
  const check = () => registered.code.checkArguments(args, argumentsWork());
  try {
    return await behindRoute(env, registered, args as JsonObject, check);
  } catch (thrown) {
    if (thrown instanceof EnvError) return thrown;
    throw thrown;
  }
}

/** Compiles all patterns and schemas in the arguments, so the work is counted and takes a scheduling turn. */
async function checkInTurn(orgId: string, { code }: VersionedEnvironment, args: Readonly<Record<string, unknown>>) {
  const work = argumentsWork();
  const giveBack = await PROCESS_SCHEDULER.take(orgId);
  try {
    return await code.checkArguments(args, work);
  } finally {
    giveBack(stepsOfJson(JSON.stringify(args)) + work.steps);
  }
}

/** Reading the length may run the environment's own code, which makes the rows. */
function rowsFault({ evalDataset, dataset }: EnvironmentCode["description"]): string | null {
  return (evalDataset ?? dataset).fault;
}

/** The environment, or the error that its own code threw for these arguments. */
export async function builtOrError(
  scope: Scope | null,
  registered: VersionedEnvironment,
  args: JsonObject,
): Promise<EnvironmentCode | Error> {
  try {
    return await builtEnvironment(scope, registered, args);
  } catch (thrown) {
    if (registered.published !== null && !(thrown instanceof EnvError)) throw thrown;
    return thrown instanceof Error ? thrown : new Error(String(thrown));
  }
}
