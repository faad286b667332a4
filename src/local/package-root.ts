/** This Rollcall itself, in a checkout and where it was installed from a package: where it stands, and what it is made of. */

import { createHash, type Hash } from "node:crypto";
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import * as z from "zod";

/** What the Worker can import, and what decides how it is bundled. The command line and its parts are not in it. */
const SOURCES = [
  "src/index.ts",
  "src/{contract,core,db,clients,runtime,api}/**/*",
  "packages/math-equivalence/*.{ts,json}",
  "environments/**/*.{ts,json,md,jsonl}",
  "wrangler.toml",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
];

const Installed = z.object({ packages: z.record(z.string(), z.object({ resolved: z.string().optional() })) });

/** The folder of package.json and wrangler.toml. What is compiled from the sources stands deeper below it than they do. */
export const PACKAGE_ROOT = nearestPackage(import.meta.dirname);

function nearestPackage(folder: string): string {
  if (existsSync(join(folder, "package.json"))) return folder;
  if (folder === dirname(folder)) throw new Error("Rollcall's package.json is gone: install it again");
  return nearestPackage(dirname(folder));
}

export function rollcallVersion(root: string = PACKAGE_ROOT): string {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version;
}

/**
 * Where this Rollcall came from, as another package's dependency. Never a name of the npm registry: `rollcall` there is
 * not ours. `file:` and a path for a checkout, a tarball, or a copy of which nothing is known; else
 * the address it was installed from.
 */
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

/** What a Worker is made of, as one number: same sources, same hash, wherever `root` is. */
export function sourcesHash(root: string): string {
  const files = globSync(SOURCES, { cwd: root, withFileTypes: true, exclude: ["**/node_modules"] })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
  return hashFiles(createHash("sha256"), root, files);
}

export function hashFiles(hash: Hash, folder: string, files: readonly string[]): string {
  for (const file of files) {
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(folder, file)))
      .update("\0");
  }
  return hash.digest("hex");
}
