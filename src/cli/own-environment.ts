/**
 * What the environment argument of a command means. First come the environments that come with Rollcall, then folders
 * and installed packages; any other name is left to the platform, which may hold it.
 */
import { join } from "node:path";
import {
  type EnvironmentPackage,
  environmentPackagesIn,
  findInstalledEnvironment,
  isFolderReference,
  resolveEnvironmentPackage,
} from "../local/environment-package.ts";
import { PACKAGE_ROOT } from "../local/package-root.ts";
import { usageError } from "./exit.ts";

export interface NamedEnvironment {
  /** As it was typed. */
  readonly reference: string;
  /** What a platform is asked for: an id, or id@version. */
  readonly name: string;
  /** What lies here under its name; null for nothing. */
  readonly here: EnvironmentPackage | null;
  /** The same; null when it comes with Rollcall. */
  readonly own: EnvironmentPackage | null;
}

export function nameEnvironment(reference: string, cwd: string): NamedEnvironment {
  const ours = environmentPackagesIn(join(PACKAGE_ROOT, "environments"));
  if (isFolderReference(reference)) {
    const own = distinct(resolveEnvironmentPackage(reference, cwd), ours);
    return { reference, name: own.id, here: own, own: ours.includes(own) ? null : own };
  }
  const name = reference.replace(/^@[^/]+\//, "");
  const here = ours.find(({ id }) => id === name.split("@")[0]);
  if (here !== undefined) return { reference, name, here, own: null };
  const own = findInstalledEnvironment(reference, cwd);
  return { reference, name, here: own, own };
}

/** The packages a platform is to hold beside those that come with Rollcall. */
export function ownEnvironments(references: readonly string[], cwd: string): EnvironmentPackage[] {
  const ours = environmentPackagesIn(join(PACKAGE_ROOT, "environments"));
  const found = references.map((reference) => {
    const known = ours.find(({ id }) => id === reference);
    return known ?? distinct(resolveEnvironmentPackage(reference, cwd), ours);
  });
  const own = found.filter((environment) => !ours.includes(environment));
  const twice = own.find((environment, at) => own.some((it, i) => i < at && it.id === environment.id));
  if (twice === undefined) return own;
  throw usageError(`--env: two environments are called ${twice.id}; rename one of them`, "env");
}

/** The package itself, or ours when it is one of ours. An id of ours for other code is refused. */
function distinct(environment: EnvironmentPackage, ours: readonly EnvironmentPackage[]): EnvironmentPackage {
  const same = ours.find(({ id }) => id === environment.id);
  if (same === undefined) return environment;
  if (same.digest === environment.digest) return same;
  throw usageError(
    `${environment.id} is the name of an environment that comes with Rollcall; rename yours in ${join(environment.folder, "package.json")}`,
    "environment",
  );
}
