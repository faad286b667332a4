/** Reads the npm package of an environment, and writes its files. A downloaded package may be malicious, so its paths are checked. */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { unpackTar } from "modern-tar";
import { LIMITS } from "../../contract/limits.ts";
import { PACKAGE_FOLDER } from "../../contract/package-files.ts";
import type { PublishedVersion } from "../../contract/published-environment.ts";
import type { PackageFiles } from "../../local/pack-files.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { CommandError, EXIT, usageError } from "../exit.ts";

/** The version that a name, a range or a tag means. Throws a usage error for an environment that is not published. */
export async function publishedVersion(
  client: RollcallClient,
  id: string,
  signal: AbortSignal,
): Promise<PublishedVersion> {
  const { published } = await client.environments.get(id, { signal });
  if (published !== null) return published;
  throw usageError(`${id} comes with the platform: it has no package`, "environment");
}

/** The bytes of one version, `owner/name@1.0.1`. Throws if they are not those that were published. */
export async function downloadPackage(
  client: RollcallClient,
  { id, package: { integrity } }: Pick<PublishedVersion, "id" | "package">,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await client.environments.package(id, { signal });
  const found = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  if (found === integrity) return bytes;
  throw faulty(`the package of ${id} has the hash ${found}, not ${integrity}: its bytes were changed on the way`);
}

/** The files of a package that was downloaded; the wheel itself for a Python environment. */
export async function filesIn(
  { kind, package: { file } }: Pick<PublishedVersion, "kind" | "package">,
  bytes: Uint8Array,
): Promise<PackageFiles> {
  if (kind === "javascript") return await unpackFiles(bytes);
  if (file === undefined || !/^[\w.!+-]+\.whl$/.test(file)) throw faulty(`${file} is not the name of a wheel`);
  return new Map([[file, bytes]]);
}

/** Refuses a package that the platform would refuse, too: see src/hub/read-package.ts. */
export async function unpackFiles(bytes: Uint8Array): Promise<PackageFiles> {
  const files = new Map<string, Uint8Array>();
  for (const { header, data } of await unpackTar(inflate(bytes), { strict: true })) {
    if (header.type === "directory") continue;
    const path = header.name.slice(PACKAGE_FOLDER.length);
    const parts = path.split("/");
    const inside = header.name.startsWith(PACKAGE_FOLDER) && parts.every((part) => !["", ".", ".."].includes(part));
    if (header.type !== "file" || !inside || /[\\\0:]/.test(path)) {
      throw faulty(`${JSON.stringify(header.name)} in the package is not a plain file below ${PACKAGE_FOLDER}`);
    }
    files.set(path, data ?? new Uint8Array());
    if (files.size > LIMITS.publishedFiles) throw faulty(`the package has more than ${LIMITS.publishedFiles} files`);
  }
  return files;
}

function inflate(bytes: Uint8Array): Uint8Array {
  try {
    return gunzipSync(bytes, { maxOutputLength: LIMITS.publishedUnpackedBytes });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw faulty(`the package cannot be unpacked into at most ${LIMITS.publishedUnpackedBytes} bytes: ${why}`);
  }
}

/** Throws a usage error if the folder exists and is not empty. */
export function refuseUsedFolder(folder: string): void {
  const there = statSync(folder, { throwIfNoEntry: false });
  if (there === undefined) return;
  if (there.isDirectory() && readdirSync(folder).length === 0) return;
  throw usageError(`${folder} exists and is not an empty folder: choose another folder, or move it away`, "folder");
}

/** Writes the files into a new or empty folder. */
export function writeFiles(files: PackageFiles, folder: string): void {
  refuseUsedFolder(folder);
  mkdirSync(folder, { recursive: true });
  for (const [path, body] of files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, body, { flag: "wx" });
  }
}

function faulty(message: string): CommandError {
  return new CommandError(EXIT.bad, { code: "bad_package", message, type: "package_error" });
}
