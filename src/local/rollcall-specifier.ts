/** Where this Rollcall came from, as another package's dependency. */
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import * as z from "zod";

/** The folder of package.json and wrangler.toml: two above the sources, and two above what is compiled from them. */
export const PACKAGE_ROOT = join(import.meta.dirname, "..", "..");

const Installed = z.object({
  packages: z.record(z.string(), z.object({ resolved: z.string().optional() })),
});
const Version = z.object({ version: z.string() });

/** `file:` and a path for a checkout or a tarball; else the version, as the registry has it. */
export function rollcallSpecifier(root: string = PACKAGE_ROOT): string {
  const modules = dirname(root);
  if (basename(modules) !== "node_modules") return `file:${root}`;
  const resolved = resolvedFrom(modules) ?? "";
  // npm notes a tarball's path relative to the folder it installed into.
  if (resolved.startsWith("file:"))
    return `file:${resolve(dirname(modules), resolved.slice("file:".length))}`;
  return resolved.startsWith("git") ? resolved : `^${rollcallVersion(root)}`;
}

export function rollcallVersion(root: string = PACKAGE_ROOT): string {
  return Version.parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8"))).version;
}

/** What npm noted about this copy in the hidden lockfile of its node_modules; other installers note nothing there. */
function resolvedFrom(modules: string): string | undefined {
  const lock = join(modules, ".package-lock.json");
  if (!existsSync(lock)) return undefined;
  const { packages } = Installed.parse(JSON.parse(readFileSync(lock, "utf8")));
  return packages["node_modules/rollcall"]?.resolved;
}
