/** Makes npm packages: .tgz files whose contents are below one folder. */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { packTar } from "modern-tar";
import { PACKAGE_FOLDER } from "../contract/package-files.ts";

/** Contents by path, without `package/`. */
export type PackageFiles = ReadonlyMap<string, Uint8Array>;

/** The same files give the same bytes. `programs`: the paths of those that can be run. */
export async function packFiles(
  files: PackageFiles,
  programs: readonly string[] = [],
): Promise<Uint8Array<ArrayBuffer>> {
  const sorted = [...files].sort(([a], [b]) => (a < b ? -1 : 1));
  const entries = sorted.map(([path, body]) => {
    const mode = programs.includes(path) ? 0o755 : 0o644;
    const fixed = { type: "file", mode, uid: 0, gid: 0, mtime: new Date(0) } as const;
    return { header: { name: PACKAGE_FOLDER + path, size: body.byteLength, ...fixed }, body };
  });
  return new Uint8Array(await promisify(gzip)(await packTar(entries), { level: 9 }));
}
