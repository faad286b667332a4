/** This Rollcall itself, in a checkout and where it was installed from a package: where it stands, and what it is made of. */

import { createHash, type Hash } from "node:crypto";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import * as z from "zod";

/** What the Worker can import, and what decides how it is bundled. The command line and its parts are not in it. */
const SOURCES = [
  "src/**/*",
  "packages/math-equivalence/*.{ts,json}",
  "environments/**/*.{ts,json,md,jsonl}",
  "wrangler.toml",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
];
/** What runs in Node or a browser alone, and what only the compiler reads. */
const NO_SOURCES = ["**/node_modules", "src/{cli,local,sdk,web}/**", "**/*.d.ts"];

const Manifest = z.object({ name: z.string(), version: z.string() });
const Installed = z.object({ packages: z.record(z.string(), z.object({ resolved: z.string().optional() })) });

/** The folder of package.json and wrangler.toml. What is compiled from the sources stands deeper below it than they do. */
export const PACKAGE_ROOT = nearestPackage(import.meta.dirname);

function nearestPackage(folder: string): string {
  if (existsSync(join(folder, "package.json"))) return folder;
  if (folder === dirname(folder)) throw new Error("Rollcall's package.json is missing: reinstall Rollcall");
  return nearestPackage(dirname(folder));
}

function readManifest(root: string): z.infer<typeof Manifest> {
  return Manifest.parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));
}

/** By which others import this package: package.json alone says so. */
export function rollcallName(root: string = PACKAGE_ROOT): string {
  return readManifest(root).name;
}

export function rollcallVersion(root: string = PACKAGE_ROOT): string {
  return readManifest(root).version;
}

/** What an environment may import of this package, and the source behind each. */
export function environmentDoors(root: string = PACKAGE_ROOT): ReadonlyMap<string, string> {
  const name = rollcallName(root);
  return new Map([
    [name, join(root, "src/core/entry.ts")],
    [`${name}/testing`, join(root, "src/core/testing.ts")],
  ]);
}

/** For esbuild: imports by name. It knows no other way to ask for a name that is not known before. */
export const BARE_IMPORT = /^[^./]/;

/** Whether an import is of this package, behind one of its doors or not. */
export function isOwnImport(path: string): boolean {
  const name = rollcallName();
  return path === name || path.startsWith(`${name}/`);
}

/**
 * Where this Rollcall came from, as another package's dependency. Never its name, which is not ours on the npm registry.
 * `file:` and a path for a checkout, a tarball, or a copy of which nothing is known; else
 * the address it was installed from.
 */
export function rollcallSpecifier(root: string = PACKAGE_ROOT): string {
  const place = join("node_modules", rollcallName(root));
  const modules = join(root.slice(0, -place.length), "node_modules");
  const resolved = root.endsWith(sep + place) ? resolvedFrom(modules, place) : undefined;
  if (resolved === undefined) return `file:${root}`;
  // npm notes a tarball's path relative to the folder it installed into.
  return resolved.startsWith("file:") ? `file:${resolve(dirname(modules), resolved.slice("file:".length))}` : resolved;
}

/** What npm noted about this copy in the hidden lockfile of its node_modules; other installers note nothing there. */
function resolvedFrom(modules: string, place: string): string | undefined {
  const lock = join(modules, ".package-lock.json");
  if (!existsSync(lock)) return undefined;
  const { packages } = Installed.parse(JSON.parse(readFileSync(lock, "utf8")));
  return packages[place]?.resolved;
}

/** What a Worker is made of: paths from `root`, sorted. */
export function workerSources(root: string): string[] {
  return globSync(SOURCES, { cwd: root, withFileTypes: true, exclude: NO_SOURCES })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}

/** The same as one number: same sources, same hash, wherever `root` is. */
export function sourcesHash(root: string): string {
  return hashFiles(createHash("sha256"), root, workerSources(root));
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
