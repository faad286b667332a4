/** Where this Rollcall came from, as another package's dependency. Never a name of the npm registry: `rollcall` there is not ours. */
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import * as z from "zod";
import { PACKAGE_ROOT } from "./package-root.ts";

const Installed = z.object({
  packages: z.record(z.string(), z.object({ resolved: z.string().optional() })),
});

/** `file:` and a path for a checkout, a tarball, or a copy of which nothing is known; else the address it was installed from. */
export function rollcallSpecifier(root: string = PACKAGE_ROOT): string {
  const modules = dirname(root);
  const resolved = basename(modules) === "node_modules" ? resolvedFrom(modules) : undefined;
  if (resolved === undefined) return `file:${root}`;
  // npm notes a tarball's path relative to the folder it installed into.
  return resolved.startsWith("file:") ? `file:${resolve(dirname(modules), resolved.slice("file:".length))}` : resolved;
}

/** What npm noted about this copy in the hidden lockfile of its node_modules; other installers note nothing there. */
function resolvedFrom(modules: string): string | undefined {
  const lock = join(modules, ".package-lock.json");
  if (!existsSync(lock)) return undefined;
  const { packages } = Installed.parse(JSON.parse(readFileSync(lock, "utf8")));
  return packages["node_modules/rollcall"]?.resolved;
}
