/**
 * The environments this deployment holds: those of the registry, and those a generated entry module registers before
 * the first request. Looked up by id and version, built once for each project and set of arguments: an instance may keep
 * what one project's rollouts met, and another's must not find it there.
 */
import { waitUntil } from "cloudflare:workers";
import { ENVIRONMENTS, type RegisteredEnvironment } from "../../../environments/registered.ts";
import { EnvError, messageOf } from "../../contract/errors.ts";
import { canonicalJson, type JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import { type AnyEnvironment, tearDown } from "../../core/environments/any-environment.ts";
import { logError } from "../kit/log.ts";
import { folderOf } from "../kit/names.ts";
import type { EnvironmentPin, RunSpec } from "../messages/wire.ts";
import { BuiltEnvironments } from "./built-environments.ts";

export type HeldEnvironment = RegisteredEnvironment;

const held: HeldEnvironment[] = [...ENVIRONMENTS];

/** One is a handful of closures, and what they close over. */
const BUILT_KEPT = 64;
/** No invocation holds one longer: an alarm or a batch of messages may take so long. */
const LEASE_MS = 15 * 60_000;
export const built = new BuiltEnvironments({
  kept: BUILT_KEPT,
  leaseMs: LEASE_MS,
  buildMs: LIMITS.buildMs,
  retire: (environment) => waitUntil(retire(environment)),
});

/** Adds one that does not come with Rollcall. Throws when the id is taken. */
export function registerEnvironment(environment: HeldEnvironment): void {
  if (held.some(({ id }) => id === environment.id)) {
    throw new Error(`an environment ${environment.id} is registered already`);
  }
  held.push(environment);
}

export function heldEnvironments(): readonly HeldEnvironment[] {
  return held;
}

/** `id`, or `id@version` where a missing minor or patch means the newest that begins so. */
export function findEnvironment(named: string): HeldEnvironment | null {
  const [id, wanted] = named.split("@", 2);
  const versions = held.filter((entry) => entry.id === id);
  const matching = versions.filter(
    ({ version }) => wanted === undefined || version === wanted || version.startsWith(`${wanted}.`),
  );
  return matching.at(-1) ?? null;
}

export function pinOf({ id, version, digest }: HeldEnvironment): EnvironmentPin {
  return { id, version, digest };
}

/**
 * The environment a run pinned, or null when this deployment no longer holds that code. Rejects with an EnvError where
 * that code fails to build it.
 */
export async function pinnedEnvironment({
  scope,
  environment: pin,
  environment_args: args,
}: Pick<RunSpec, "scope" | "environment" | "environment_args">): Promise<AnyEnvironment | null> {
  const registered = findEnvironment(`${pin.id}@${pin.version}`);
  if (registered === null || registered.digest !== pin.digest) return null;
  try {
    return await builtEnvironment(scope, registered, args);
  } catch (thrown) {
    const message = `${pin.id}@${pin.version} cannot be built: ${messageOf(thrown)}`;
    throw new EnvError(message, { cause: thrown });
  }
}

/** For a project, or for nobody's rollouts; `args` are such as its schema takes. Rejects with what its own code says. */
export function builtEnvironment(
  scope: Scope | null,
  registered: HeldEnvironment,
  args: JsonObject,
): Promise<AnyEnvironment> {
  return built.get(nameOf(scope, registered, args), () => registered.load(args), Date.now());
}

/** Whoever asks for it now runs none of its code. */
export function isBuilt(scope: Scope | null, registered: HeldEnvironment, args: JsonObject): boolean {
  return built.has(nameOf(scope, registered, args));
}

function nameOf(scope: Scope | null, { id, digest }: HeldEnvironment, args: JsonObject): string {
  return `${scope === null ? "" : folderOf(scope)} ${id} ${digest} ${canonicalJson(args)}`;
}

async function retire(environment: AnyEnvironment): Promise<void> {
  for (const { error_chain_str, message } of await tearDown(environment)) {
    logError("teardown", {}, new EnvError(`${error_chain_str}: ${message}`));
  }
}
