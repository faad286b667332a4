/** The installed Rollcall itself, as a checkout or as a package: its folder, name, version and sources. */

import { createHash, type Hash } from "node:crypto";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import * as z from "zod";

/** Everything that the Worker can import, and what determines how it is bundled. Not the command line. */
const SOURCES = [
  "src/**/*",
  "packages/math-equivalence/*.{ts,json}",
  "environments/**/*.{ts,json,md,jsonl}",
  "wrangler.toml",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
];
/** Code that only runs in Node or a browser, and files that only the compiler reads. */
const NO_SOURCES = ["**/node_modules", "src/{cli,local,sdk,web}/**", "**/*.d.ts"];

/** package.json of a checkout, which has `publishedAs`, or of the package, which has `importedAs`. */
const Manifest = z.object({
  name: z.string(),
  version: z.string(),
  publishedAs: z.string().optional(),
  importedAs: z.string().optional(),
});
const Installed = z.object({ packages: z.record(z.string(), z.object({ resolved: z.string().optional() })) });

/** The folder of package.json and wrangler.toml. Compiled files are deeper below it than their sources. */
export const PACKAGE_ROOT = nearestPackage(import.meta.dirname);

function nearestPackage(folder: string): string {
  if (existsSync(join(folder, "package.json"))) return folder;
  if (folder === dirname(folder)) throw new Error("Rollcall's package.json is missing: reinstall Rollcall");
  return nearestPackage(dirname(folder));
}

function readManifest(root: string): z.infer<typeof Manifest> {
  return Manifest.parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));
}

/** The name by which others import this package. It is only defined in package.json. */
export function rollcallName(root: string = PACKAGE_ROOT): string {
  const { name, importedAs } = readManifest(root);
  return importedAs ?? name;
}

/** The name of the package on npm. Others install it under the name by which they import it: npm's alias. */
export function publishedName(root: string = PACKAGE_ROOT): string {
  const { name, publishedAs } = readManifest(root);
  return publishedAs ?? name;
}

export function rollcallVersion(root: string = PACKAGE_ROOT): string {
  return readManifest(root).version;
}

/** The names that an environment may import from this package, with the source file of each. */
export function environmentExports(root: string = PACKAGE_ROOT): ReadonlyMap<string, string> {
  const name = rollcallName(root);
  return new Map([
    [name, join(root, "src/core/entry.ts")],
    [`${name}/testing`, join(root, "src/core/testing.ts")],
  ]);
}

/** For esbuild: imports by package name. Its filter cannot match names that are only known at run time. */
export const BARE_IMPORT = /^[^./]/;

/**
 * An import from this package as the package itself writes it, through a public entry or not; null for another import.
 * A package imports itself by the name in its package.json.
 */
export function ownImport(path: string): string | null {
  const name = rollcallName();
  if (path !== name && !path.startsWith(`${name}/`)) return null;
  return readManifest(PACKAGE_ROOT).name + path.slice(name.length);
}

const REGISTRY = "https://registry.npmjs.org/";

/**
 * This Rollcall as a dependency of another package, never by the name of imports, which is not ours on npm. `file:` and
 * a path for a checkout, a tarball, or a copy of unknown origin; an alias if it came from npm's registry; otherwise the
 * address it was installed from.
 */
export function rollcallSpecifier(root: string = PACKAGE_ROOT): string {
  const places = [rollcallName(root), publishedName(root)].map((name) => join("node_modules", name));
  const place = places.find((one) => root.endsWith(sep + one));
  if (place === undefined) return `file:${root}`;
  const modules = join(root.slice(0, -place.length), "node_modules");
  const resolved = resolvedFrom(modules, place);
  if (resolved === undefined) return `file:${root}`;
  if (resolved.startsWith(REGISTRY)) return `npm:${publishedName(root)}@^${rollcallVersion(root)}`;
  // npm records a tarball's path relative to the folder that it installed into.
  return resolved.startsWith("file:") ? `file:${resolve(dirname(modules), resolved.slice("file:".length))}` : resolved;
}

/** What npm recorded about this copy in the hidden lockfile of node_modules. Other installers record nothing there. */
function resolvedFrom(modules: string, place: string): string | undefined {
  const lock = join(modules, ".package-lock.json");
  if (!existsSync(lock)) return undefined;
  const { packages } = Installed.parse(JSON.parse(readFileSync(lock, "utf8")));
  return packages[place]?.resolved;
}

/**
 * How a person runs this command line again: it begins the commands that are printed. Outside a checkout plain `npx` may
 * fetch the package that has this name on the registry, which is not ours.
 */
export const COMMAND = commandOf(PACKAGE_ROOT);

function commandOf(root: string): string {
  // npx without an installation keeps its copy in such a folder.
  if (root.includes(`${sep}_npx${sep}`))
    return `npx --package=${rollcallSpecifier(root).replace(/^npm:/, "")} rollcall`;
  return root.includes(`${sep}node_modules${sep}`) ? "npx --no-install rollcall" : "npx rollcall";
}

/** The source files of a Worker: paths relative to `root`, sorted. */
export function workerSources(root: string): string[] {
  return globSync(SOURCES, { cwd: root, withFileTypes: true, exclude: NO_SOURCES })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}

/** A hash of these sources, independent of where `root` is. */
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
