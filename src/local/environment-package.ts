/**
 * Environments as packages: a folder or an installed npm package, whose package.json names the module that exports
 * `loadEnvironment`.
 *
 * Invariants. An id is the package's name without its scope. A digest covers everything that can change a rollout: the
 * package's name and version, and every file of its folder except tests, prose, example rows, tool settings and other
 * files that no rollout reads. It does not cover the core, whose rollout state has its own version. Paths are real
 * paths, so a linked package and its folder are the same package.
 */

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import * as z from "zod";
import { COMMAND } from "./package-root.ts";

export interface EnvironmentPackage {
  readonly id: string;
  readonly version: string;
  readonly folder: string;
  /** The absolute path of the module that exports `loadEnvironment`. */
  readonly entry: string;
  readonly digest: string;
}

/** The reference is not an environment; the message says why and what to do. */
export class NoEnvironmentPackage extends Error {
  override readonly name = "NoEnvironmentPackage";
}

const Manifest = z.object({
  name: z.string(),
  version: z.string().regex(/^\d+\.\d+\.\d+/, { error: 'must be like "0.1.0"' }),
  rollcall: z.object({ environment: z.string() }).optional(),
});

const LEGAL_ID = /^[a-z0-9][a-z0-9._-]{0,63}$/;

const NOT_COVERED = [
  /\.test\.ts$/,
  /\.md$/,
  /\.tgz$/,
  /^package\.json$/,
  /^package-lock\.json$/,
  /^tsconfig\.json$/,
  /^vitest\.config\.ts$/,
  /^examples\.jsonl$/,
];

/** Folders of tools and results, and hidden folders and files. */
const NOT_ENTERED = /^(node_modules|outputs|coverage|\..*)$/;

/** `./x`, `../x`, `.` and absolute paths are folders; everything else is a package name. */
export function isFolderReference(reference: string): boolean {
  return /^\.{1,2}([/\\]|$)/.test(reference) || isAbsolute(reference);
}

/** The package of a folder, or of `@scope/name@version` as Node finds it from `cwd`. Throws NoEnvironmentPackage. */
export function resolveEnvironmentPackage(reference: string, cwd: string): EnvironmentPackage {
  if (isFolderReference(reference)) return environmentPackage(resolve(cwd, reference));
  const found = findInstalledEnvironment(reference, cwd);
  if (found !== null) return found;
  throw new NoEnvironmentPackage(
    `the package ${reference} is not installed here: install it, or use its folder: ./${reference}`,
  );
}

/** The same for a package name; null if no such package is installed. */
export function findInstalledEnvironment(reference: string, cwd: string): EnvironmentPackage | null {
  const [, name, wanted] = /^((?:@[^/@]+\/)?[^/@]+)(?:@(.+))?$/.exec(reference) ?? [];
  if (name === undefined) return null;
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const candidate = join(folder, "node_modules", name);
    if (existsSync(join(candidate, "package.json"))) return installedVersion(candidate, name, wanted);
    if (folder === dirname(folder)) return null;
  }
}

function installedVersion(folder: string, name: string, wanted: string | undefined): EnvironmentPackage {
  const found = environmentPackage(folder);
  const { version } = found;
  if (wanted === undefined || version === wanted || version.startsWith(`${wanted}.`)) return found;
  throw new NoEnvironmentPackage(`${name}@${wanted} is not installed here; version ${version} is`);
}

/** The package in exactly this folder. */
export function environmentPackage(named: string): EnvironmentPackage {
  if (!existsSync(named)) throw new NoEnvironmentPackage(`the folder ${named} does not exist`);
  const folder = realpathSync(named);
  const { name, version, rollcall } = readManifest(folder);
  const module = rollcall?.environment;
  if (module === undefined) {
    throw new NoEnvironmentPackage(
      `${join(folder, "package.json")} has no environment; add "rollcall": { "environment": "./environment.ts" }`,
    );
  }
  const entry = join(folder, module);
  if (!existsSync(entry)) {
    throw new NoEnvironmentPackage(`${folder} has no ${module}, which is named in its package.json`);
  }
  return { id: idOf(name), version, folder, entry, digest: digestOf(folder, name, version) };
}

/** The packages directly in a folder, ordered by id. */
export function environmentPackagesIn(folder: string): EnvironmentPackage[] {
  return readdirSync(folder, { withFileTypes: true })
    .map((entry) => join(folder, entry.name))
    .filter((path) => existsSync(join(path, "package.json")))
    .map(environmentPackage)
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

function readManifest(folder: string): z.infer<typeof Manifest> {
  const file = join(folder, "package.json");
  if (!existsSync(file)) {
    throw new NoEnvironmentPackage(
      `${folder} has no package.json; create an environment with: ${COMMAND} env init <name>`,
    );
  }
  try {
    return Manifest.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : String(error);
    throw new NoEnvironmentPackage(`${file} cannot be used: ${why}`, { cause: error });
  }
}

function idOf(name: string): string {
  const id = name.replace(/^@[^/]+\//, "");
  if (LEGAL_ID.test(id)) return id;
  throw new NoEnvironmentPackage(
    `${JSON.stringify(id)} cannot be an environment's id: up to 64 of a-z, 0-9, ".", "_" and "-"; rename the package`,
  );
}

function digestOf(folder: string, name: string, version: string): string {
  const hash = createHash("sha256");
  hash.update(JSON.stringify([name, version]));
  for (const file of coveredFiles(folder)) {
    const content = readFileSync(join(folder, file));
    hash.update(`\n${JSON.stringify([file, content.length])}\n`).update(content);
  }
  return `sha256:${hash.digest("hex")}`;
}

function coveredFiles(folder: string): string[] {
  return filesBelow(folder)
    .map((file) => relative(folder, file).replaceAll(sep, "/"))
    .filter((file) => !NOT_COVERED.some((pattern) => pattern.test(file)))
    .sort();
}

/** A package's folder, and its subfolders that may contain files of the environment. */
export function foldersBelow(folder: string): string[] {
  const below = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !NOT_ENTERED.test(entry.name))
    .flatMap(({ name }) => foldersBelow(join(folder, name)));
  return [folder, ...below];
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (NOT_ENTERED.test(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(path);
    return entry.isFile() ? [path] : [];
  });
}
