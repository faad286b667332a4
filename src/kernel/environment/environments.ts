/**
 * The environments of this deployment: those of the registry, and those that a generated entry module registers before
 * the first request. They are found by id and version, and built once for each project and set of arguments, because an
 * instance may keep data from one project's rollouts that another project must not see.
 */
import { waitUntil } from "cloudflare:workers";
import { ENVIRONMENTS, type RegisteredEnvironment } from "../../../environments/registered.ts";
import { EnvError, messageOf } from "../../contract/errors.ts";
import { canonicalJson, type JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { EnvironmentCode, VersionedEnvironment } from "../../core/protocol/environment-code.ts";
import { loadableOf } from "../../core/protocol/in-process.ts";
import { logError } from "../kit/log.ts";
import { folderOf } from "../kit/names.ts";
import { publishedEnvironments } from "../kit/slice-hooks.ts";
import { isPassing } from "../kit/storage-faults.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { EnvironmentPin, RunSpec } from "../messages/wire.ts";
import { BuiltEnvironments } from "./built-environments.ts";

const held: VersionedEnvironment[] = ENVIRONMENTS.map(heldOf);

/** Each one is a few closures and their data. */
const BUILT_KEPT = 64;
/** The longest time that an invocation may hold one: an alarm or a batch of messages. */
const LEASE_MS = 15 * 60_000;
export const built = new BuiltEnvironments({
  kept: BUILT_KEPT,
  leaseMs: LEASE_MS,
  buildMs: LIMITS.buildMs,
  retire: (environment) => waitUntil(retire(environment)),
});

/** Adds an environment that does not come with Rollcall. Throws if the id is taken. */
export function registerEnvironment(environment: RegisteredEnvironment): void {
  if (held.some(({ id }) => id === environment.id)) {
    throw new Error(`an environment ${environment.id} is registered already`);
  }
  held.push(heldOf(environment));
}

function heldOf({ id, version, digest, ...loader }: RegisteredEnvironment): VersionedEnvironment {
  return { id, version, digest, code: loadableOf(loader), published: null };
}

export function heldEnvironments(): readonly VersionedEnvironment[] {
  return held;
}

/** `id`, or `id@version`. If minor or patch is missing, the newest matching version. */
export function findEnvironment(named: string): VersionedEnvironment | null {
  const [id, wanted] = named.split("@", 2);
  const versions = held.filter((entry) => entry.id === id);
  const matching = versions.filter(
    ({ version }) => wanted === undefined || version === wanted || version.startsWith(`${wanted}.`),
  );
  return matching.at(-1) ?? null;
}

/** The same, or a published environment that the project may use. Refuses with `param` as the field at fault. */
export async function environmentNamed(
  env: Env,
  scope: Scope,
  named: string,
  param: string,
): Promise<Result<VersionedEnvironment>> {
  const value = findEnvironment(named);
  if (value !== null) return { ok: true, value };
  const found = await publishedEnvironments().find(env, scope, named);
  if (found === null) return refuse("not_found", `no environment ${named}`, param);
  return found.ok ? found : { ok: false, error: { ...found.error, param } };
}

export function pinOf({ id, version, digest }: VersionedEnvironment): EnvironmentPin {
  return { id, version, digest };
}

/**
 * The environment that a run pinned; null if this deployment no longer has that code. Rejects with an EnvError if the
 * code fails to build it.
 */
export async function pinnedEnvironment(
  env: Env,
  { scope, environment: pin, environment_args: args }: Pick<RunSpec, "scope" | "environment" | "environment_args">,
): Promise<EnvironmentCode | null> {
  const registered =
    findEnvironment(`${pin.id}@${pin.version}`) ?? (await publishedEnvironments().pinned(env, pin, scope.orgId));
  if (registered === null || registered.digest !== pin.digest) return null;
  try {
    return await builtEnvironment(scope, registered, args);
  } catch (thrown) {
    // Published code runs elsewhere: any other error is about the way there.
    if (isPassing(env, thrown) || (registered.published !== null && !(thrown instanceof EnvError))) throw thrown;
    const message = `${pin.id}@${pin.version} cannot be built: ${messageOf(thrown)}`;
    throw new EnvError(message, { cause: thrown });
  }
}

/**
 * For a project, or for no project if `scope` is null. `args` must be valid for its schema. Rejects with its own error.
 */
export function builtEnvironment(
  scope: Scope | null,
  registered: VersionedEnvironment,
  args: JsonObject,
): Promise<EnvironmentCode> {
  const load = () => registered.code.load(args);
  // Published code is built by calls of the invocation.
  return built.get(nameOf(scope, registered, args), load, Date.now(), registered.published !== null);
}

/** Whether it is built already, so that getting it runs none of its code. */
export function isBuilt(scope: Scope | null, registered: VersionedEnvironment, args: JsonObject): boolean {
  return built.has(nameOf(scope, registered, args));
}

function nameOf(scope: Scope | null, { id, digest }: VersionedEnvironment, args: JsonObject): string {
  return `${scope === null ? "" : folderOf(scope)} ${id} ${digest} ${canonicalJson(args)}`;
}

async function retire(environment: EnvironmentCode): Promise<void> {
  for (const { error_chain_str, message } of await environment.tearDown()) {
    logError("teardown", {}, new EnvError(`${error_chain_str}: ${message}`));
  }
}
