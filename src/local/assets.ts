/**
 * The static assets of a deployment: the page, and the package of this Rollcall itself, which the deployment serves to npm
 * clients.
 *
 * An installed package is packed again from its own files, which `PACKED_LIST` names, once for each installation. In a
 * checkout the package is the tarball that `npm run package` made; without one, the deployment has no package.
 */
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { unpackTar } from "modern-tar";
import * as z from "zod";
import { LIBRARY_FOLDER, LIBRARY_LISTING, LIBRARY_TARBALL, LibraryListing } from "../contract/library-file.ts";
import { PACKAGE_FOLDER } from "../contract/package-files.ts";
import { readIfThere } from "./directory-lock.ts";
import { packFiles } from "./pack-files.ts";
import { publishedName, rollcallVersion } from "./package-root.ts";
import { bundlePage } from "./page-bundle.ts";

const Installed = z.object({ bin: z.record(z.string(), z.string()) });

/** The list of the files of an installed package, one a line. `npm run package` writes it. */
export const PACKED_LIST = "dist/.files";

/** The folder of up-to-date assets. `log`: prints why the package is not among them, if it should be. */
export async function bundleAssets(root: string, log: (line: string) => void): Promise<string> {
  const assets = await bundlePage(root);
  try {
    await addLibrary(root, assets);
  } catch (error) {
    // A file error, such as a read-only folder, must not stop the platform: only npm clients need the package.
    if (!(error instanceof Error && "code" in error)) throw error;
    log(`npm clients do not get the package of Rollcall from this platform: ${error.message}`);
  }
  return assets;
}

/** Puts the package of `root` into the folder of the assets, or takes it out if there is none. */
export async function addLibrary(root: string, assets: string): Promise<void> {
  const folder = join(assets, LIBRARY_FOLDER);
  const before = readListing(folder);
  const list = readIfThere(join(root, PACKED_LIST));
  if (list !== null && before?.manifest.version === rollcallVersion(root)) return;
  // Packing takes seconds, and must not be in vain at each start.
  if (list !== null) accessSync(assets, constants.W_OK);
  const bytes = list === null ? readTarball(root) : await packInstalled(root, list.split("\n"));
  if (bytes !== null && before?.integrity !== integrityOf(bytes)) await write(bytes, folder);
  if (bytes !== null || before === null) return;
  // The listing stays: a running platform cannot read an asset that disappears.
  writeFileSync(join(folder, LIBRARY_LISTING), "null");
  rmSync(join(folder, LIBRARY_TARBALL));
}

function readListing(folder: string): LibraryListing | null {
  return LibraryListing.parse(JSON.parse(readIfThere(join(folder, LIBRARY_LISTING)) ?? "null"));
}

/** Null if `npm run package` has not been run. */
function readTarball(root: string): Buffer | null {
  // As npm pack names it.
  const name = publishedName(root).replace(/^@/, "").replace("/", "-");
  const file = join(root, "dist", `${name}-${rollcallVersion(root)}.tgz`);
  return existsSync(file) ? readFileSync(file) : null;
}

/** Installers may leave the modes of files as they are in the package, so its programs have theirs. */
function packInstalled(root: string, paths: readonly string[]): Promise<Uint8Array> {
  const files = new Map(paths.map((path) => [path, readFileSync(join(root, path))]));
  const { bin } = Installed.parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));
  return packFiles(files, Object.values(bin));
}

/** The listing is the last to be moved into place: with it, the tarball is there. */
async function write(bytes: Uint8Array, folder: string): Promise<void> {
  const listing: LibraryListing = {
    manifest: await manifestIn(bytes),
    integrity: integrityOf(bytes),
    shasum: createHash("sha1").update(bytes).digest("hex"),
    made_at: Date.now(),
  };
  // Not inside the assets, which another command may be listing now.
  const draft = join(dirname(dirname(folder)), `.library-${process.pid}`);
  mkdirSync(draft, { recursive: true });
  try {
    writeFileSync(join(draft, LIBRARY_TARBALL), bytes);
    writeFileSync(join(draft, LIBRARY_LISTING), JSON.stringify(listing));
    mkdirSync(folder, { recursive: true });
    for (const name of [LIBRARY_TARBALL, LIBRARY_LISTING]) renameSync(join(draft, name), join(folder, name));
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** The package is served under the name by which environments import it. */
async function manifestIn(bytes: Uint8Array): Promise<LibraryListing["manifest"]> {
  const wanted = `${PACKAGE_FOLDER}package.json`;
  const [found] = await unpackTar(gunzipSync(bytes), { filter: ({ name }) => name === wanted });
  const manifest = JSON.parse(Buffer.from(found?.data ?? []).toString());
  return { ...manifest, name: manifest.importedAs ?? manifest.name };
}

function integrityOf(bytes: Uint8Array): string {
  return `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
}
