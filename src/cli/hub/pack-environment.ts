/**
 * Makes the npm package of a version that is published: the files that `npm pack` takes, the bundle of the code, the
 * lockfile and the example rows, and in package.json where it was built. The same folder gives the same bytes.
 */
import { type ExecFileException, execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { CODE_FILE, EXAMPLES_FILE } from "../../contract/package-files.ts";
import { PublishedName, PublishedOwner } from "../../contract/published-environment.ts";
import { bundleEnvironment } from "../../local/environment-bundle.ts";
import { type EnvironmentPackage, environmentPackage } from "../../local/environment-package.ts";
import { type PackageFiles, packFiles } from "../../local/pack-files.ts";
import { rollcallVersion } from "../../local/package-root.ts";
import { usageError } from "../exit.ts";
import { unpackFiles } from "./package-files.ts";

export interface PackedEnvironment {
  /** `owner/name@1.0.0`. */
  readonly id: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Number of files. */
  readonly files: number;
  /** The commit with `-dirty` if files have changed since; null without git. */
  readonly commit: string | null;
}

export interface PackOptions {
  /** Default: the scope in package.json's name. */
  readonly owner: string | undefined;
  /** Arguments with which the platform validates it. Default: those in package.json. */
  readonly args: Readonly<Record<string, unknown>> | undefined;
}

const Manifest = z.looseObject({
  name: z.string(),
  repository: z.unknown().optional(),
  devDependencies: z.record(z.string(), z.string()).optional(),
  rollcall: z.looseObject({}),
});
type Manifest = z.infer<typeof Manifest>;

/** Files that npm does not take by itself. */
const ADDED = ["package-lock.json", EXAMPLES_FILE];

const run = promisify(execFile);

/** Throws a usage error if the folder is not an environment that can be published. */
export async function packEnvironment(folder: string, { owner, args }: PackOptions): Promise<PackedEnvironment> {
  const found = environmentPackage(folder);
  const manifest = Manifest.parse(JSON.parse(readFileSync(join(found.folder, "package.json"), "utf8")));
  const name = nameOf(found, manifest, owner);
  const code = await bundle(found);
  const { repository, commit } = await readGit(found.folder);
  const rollcall = { ...manifest.rollcall, commit, builder: `rollcall ${rollcallVersion()}`, ...(args && { args }) };
  const published = {
    ...{ ...manifest, name: `@${name}`, repository: manifest.repository ?? repository, rollcall },
    devDependencies: withoutPaths(manifest.devDependencies),
  };
  const added = ADDED.filter((file) => existsSync(join(found.folder, file)));
  const files: PackageFiles = new Map([
    ...(await filesOfNpm(found.folder)),
    ...added.map((file): [string, Uint8Array] => [file, readFileSync(join(found.folder, file))]),
    ["package.json", Buffer.from(`${JSON.stringify(published, null, 2)}\n`)],
    [CODE_FILE, Buffer.from(code)],
  ]);
  const bytes = await packFiles(files);
  if (bytes.byteLength > LIMITS.publishedBytes) {
    const message = `the package has ${bytes.byteLength} bytes, and the maximum is ${LIMITS.publishedBytes}: list fewer files in "files" of package.json`;
    throw usageError(message, "folder");
  }
  return { id: `${name}@${found.version}`, bytes, files: files.size, commit: commit ?? null };
}

function nameOf({ id, folder }: EnvironmentPackage, manifest: Manifest, given: string | undefined): string {
  const owner = given ?? /^@([^/]+)\//.exec(manifest.name)?.[1];
  if (owner === undefined) {
    const file = join(folder, "package.json");
    throw usageError(
      `--owner: the name under which your organisation publishes is required: --owner NAME, or "name": "@NAME/${id}" in ${file}`,
      "owner",
    );
  }
  const checked = PublishedOwner.safeParse(owner);
  if (!checked.success) throw usageError(`--owner: ${owner} ${checked.error.issues[0]?.message}`, "owner");
  const name = PublishedName.safeParse(`${owner}/${id}`);
  if (name.success) return name.data;
  throw usageError(`${owner}/${id}: ${name.error.issues[0]?.message}: rename the package`, "owner");
}

async function bundle({ entry, folder }: EnvironmentPackage): Promise<string> {
  try {
    return (await bundleEnvironment(entry)).text;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw usageError(`${folder} cannot be bundled: ${why}`, "folder");
  }
}

/** Paths on this machine mean nothing to others. */
function withoutPaths(dependencies: Manifest["devDependencies"]): Manifest["devDependencies"] {
  const kept = Object.entries(dependencies ?? {}).filter(([, from]) => !/^(file|link):/.test(from));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

async function filesOfNpm(folder: string): Promise<PackageFiles> {
  const target = mkdtempSync(join(tmpdir(), "rollcall-pack-"));
  try {
    // Scripts of the package could run anything; the code is not built by them.
    await run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", target], { cwd: folder });
    const [file] = readdirSync(target);
    if (file === undefined) throw usageError(`npm pack wrote no package of ${folder}`, "folder");
    return await unpackFiles(readFileSync(join(target, file)));
  } catch (error) {
    if (!isExecError(error)) throw error;
    const why = error.code === "ENOENT" ? "npm is not installed" : error.stderr?.trim() || error.message;
    throw usageError(`npm pack failed in ${folder}: ${why}`, "folder");
  } finally {
    rmSync(target, { recursive: true });
  }
}

/** Undefined fields: the folder is not in a git repository, or the repository has no public address. */
async function readGit(folder: string): Promise<{ readonly repository?: string; readonly commit?: string }> {
  const git = async (...words: readonly string[]): Promise<string | null> => {
    try {
      return (await run("git", words, { cwd: folder })).stdout.trim();
    } catch (error) {
      if (isExecError(error)) return null;
      throw error;
    }
  };
  // A folder that the repository ignores is not part of its commits.
  if ((await git("ls-files", "--error-unmatch", "package.json")) === null) return {};
  const [commit, changes, remote] = await Promise.all([
    git("rev-parse", "HEAD"),
    git("status", "--porcelain", "--", "."),
    git("remote", "get-url", "origin"),
  ]);
  if (commit === null) return {};
  const repository = publicAddress(remote ?? "");
  return { commit: changes === "" ? commit : `${commit}-dirty`, ...(repository !== null && { repository }) };
}

/** Without a user name and password; null for a path on this machine. */
function publicAddress(remote: string): string | null {
  if (/^[\w.-]+@[\w.-]+:/.test(remote)) return remote;
  if (!/^(https?|ssh|git):/.test(remote) || !URL.canParse(remote)) return null;
  const { protocol, host, pathname } = new URL(remote);
  return `${protocol}//${host}${pathname}`;
}

function isExecError(error: unknown): error is ExecFileException {
  return error instanceof Error && "code" in error && "cmd" in error;
}
