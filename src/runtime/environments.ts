/**
 * The environments this deployment holds: those of the registry, and those a generated entry module registers before
 * the first request. Looked up by id and version, built once per set of arguments.
 */
import { DIGESTS } from "../../environments/digests.ts";
import { ENVIRONMENTS, type RegisteredEnvironment } from "../../environments/registry.ts";
import type { AnyEnvironment } from "../core/environments/any-environment.ts";
import { canonicalJson, type JsonObject } from "../core/json.ts";
import type { EnvironmentPin } from "./wire.ts";

export interface HeldEnvironment extends RegisteredEnvironment {
  /** Of the code it was bundled from. */
  readonly digest: string;
}

const held: HeldEnvironment[] = ENVIRONMENTS.map((entry) => {
  return { ...entry, digest: DIGESTS[entry.id] ?? "" };
});

/** Built environments kept per isolate; one is a handful of closures. */
const BUILT_KEPT = 64;
const built = new Map<string, Promise<AnyEnvironment>>();

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

/** The environment a run pinned, or null when this deployment no longer holds that code. */
export async function pinnedEnvironment(
  pin: EnvironmentPin,
  args: JsonObject,
): Promise<AnyEnvironment | null> {
  const registered = findEnvironment(`${pin.id}@${pin.version}`);
  if (registered === null || registered.digest !== pin.digest) return null;
  const name = `${pin.digest} ${canonicalJson(args)}`;
  const known = built.get(name);
  if (known !== undefined) return await known;
  const oldest = built.keys().next();
  if (built.size >= BUILT_KEPT && !oldest.done) built.delete(oldest.value);
  const made = registered.load(args);
  built.set(name, made);
  // A failed build must not be remembered: the next use tries again.
  made.catch(() => built.delete(name));
  return await made;
}
