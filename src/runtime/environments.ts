/** The environments this deployment holds: looked up by id and version, built once per set of arguments. */
import { DIGESTS } from "../../environments/digests.ts";
import { ENVIRONMENTS, type RegisteredEnvironment } from "../../environments/registry.ts";
import type { AnyEnvironment } from "../core/environments/any-environment.ts";
import { canonicalJson, type JsonObject } from "../core/json.ts";
import type { EnvironmentPin } from "./wire.ts";

/** Built environments kept per isolate; one is a handful of closures. */
const BUILT_KEPT = 64;
const built = new Map<string, Promise<AnyEnvironment>>();

/** `id`, or `id@version` where a missing minor or patch means the newest that begins so. */
export function findEnvironment(named: string): RegisteredEnvironment | null {
  const [id, wanted] = named.split("@", 2);
  const versions = ENVIRONMENTS.filter((entry) => entry.id === id);
  const matching = versions.filter(
    ({ version }) => wanted === undefined || version === wanted || version.startsWith(`${wanted}.`),
  );
  return matching.at(-1) ?? null;
}

export function pinOf(registered: RegisteredEnvironment): EnvironmentPin {
  return {
    id: registered.id,
    version: registered.version,
    digest: DIGESTS[registered.id] ?? "",
  };
}

/** The environment a run pinned, or null when this deployment no longer holds that code. */
export async function pinnedEnvironment(
  pin: EnvironmentPin,
  args: JsonObject,
): Promise<AnyEnvironment | null> {
  const registered = findEnvironment(`${pin.id}@${pin.version}`);
  if (registered === null || pinOf(registered).digest !== pin.digest) return null;
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
