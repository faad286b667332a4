/** Reads the package of an environment from a request. The package may be malicious, so everything in it is checked. */
import { unpackTar } from "modern-tar";
import * as z from "zod";
import { messageOf } from "../contract/errors.ts";
import { LIMITS } from "../contract/limits.ts";
import { CODE_FILE, EXAMPLES_FILE, PACKAGE_FOLDER } from "../contract/package-files.ts";
import { nameKeyOf, PublishedName } from "../contract/published-environment.ts";
import { formatPath } from "../core/field-path.ts";
import { sha256Hex } from "../kernel/kit/secrets.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import { PackageFault, shown } from "./package-fault.ts";
import { installedPart, PackageManifest } from "./package-format.ts";
import { versionOfPython } from "./python-names.ts";
import { readWheel } from "./read-wheel.ts";
import type { NpmListing, WheelListing } from "./tables.ts";

/** What versions of both kinds have. */
interface Shared {
  /** `owner/name`. */
  readonly name: string;
  readonly version: string;
  readonly description: string | null;
  readonly license: string | null;
  readonly repository: string | null;
  readonly builder: string | null;
  /** Of the code that is played, or of the wheel. */
  readonly digest: string;
  readonly readme: string | null;
  /** SHA-512 of the package, as npm writes it. */
  readonly integrity: string;
}

export interface ReadNpmPackage extends Shared {
  readonly kind: "javascript";
  readonly manifest: PackageManifest;
  /** The module that is played. */
  readonly code: string;
  readonly examples: readonly unknown[];
  readonly npm: NpmListing;
}

export interface ReadPythonPackage extends Shared {
  readonly kind: "python";
  /** The text of METADATA. */
  readonly metadata: string;
  readonly wheel: WheelListing;
}

export type ReadPackage = ReadNpmPackage | ReadPythonPackage;

/** What a wheel does not say. */
export interface AboutWheel {
  readonly owner: () => Promise<string | null>;
  readonly file: string | null;
}

/** Of the whole package, an npm package or a wheel; `package` is the field at fault. */
export async function readPackage(bytes: Uint8Array<ArrayBuffer>, about: AboutWheel): Promise<Result<ReadPackage>> {
  const isZip = [0x50, 0x4b, 3, 4].every((byte, at) => bytes[at] === byte);
  try {
    return isZip || about.file?.endsWith(".whl")
      ? await readPython(bytes, about)
      : { ok: true, value: await readNpm(bytes) };
  } catch (thrown) {
    if (thrown instanceof PackageFault) return refuse("invalid_request", `package: ${thrown.message}`, "package");
    throw thrown;
  }
}

async function readNpm(bytes: Uint8Array<ArrayBuffer>): Promise<ReadNpmPackage> {
  const files = await unpack(bytes);
  const manifest = manifestIn(files);
  const code = textOf(files, CODE_FILE, LIMITS.publishedCodeBytes);
  if (code === null) {
    throw new PackageFault(`it has no ${CODE_FILE}, which \`rollcall env publish\` makes`);
  }
  const npm = await npmListingOf(manifest, bytes);
  const { name, version, description = null, license = null, repository = null, rollcall } = manifest;
  return {
    ...{ kind: "javascript", name, version, description, license, repository, builder: rollcall?.builder ?? null },
    ...{ digest: `sha256:${sha256Hex(code)}`, readme: textOf(files, "README.md", LIMITS.publishedReadmeBytes) },
    ...{ manifest, code, examples: examplesIn(files), npm, integrity: npm.integrity },
  };
}

async function readPython(
  bytes: Uint8Array<ArrayBuffer>,
  { owner: ownerOf, file }: AboutWheel,
): Promise<Result<ReadPythonPackage>> {
  if (file === null) return refuse("invalid_request", "file: is required for a wheel: its file name", "file");
  const owner = await ownerOf();
  if (owner === null) return refuse("invalid_request", "owner: is required for the first wheel of an owner", "owner");
  const { metadata, text, builder, listing, digest } = await readWheel(bytes, file);
  const named = PublishedName.safeParse(`${owner}/${nameKeyOf(metadata.name)}`);
  if (!named.success) throw new PackageFault(`METADATA: Name: ${named.error.issues[0]?.message}`);
  const { summary, license, repository, readme } = metadata;
  return {
    ok: true,
    value: {
      ...{ kind: "python", name: named.data, version: versionOfPython(metadata.version) ?? "" },
      ...{ description: summary, license, repository, builder, digest, readme, metadata: text, wheel: listing },
      integrity: await integrityOf(bytes),
    },
  };
}

type Files = ReadonlyMap<string, Uint8Array>;

async function unpack(bytes: Uint8Array<ArrayBuffer>): Promise<Files> {
  const wanted = [CODE_FILE, EXAMPLES_FILE, "README.md", "package.json"].map((name) => PACKAGE_FOLDER + name);
  let count = 0;
  const files = new Map<string, Uint8Array>();
  try {
    const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).pipeThrough(capped());
    const entries = await unpackTar(inflated, {
      strict: true,
      filter: ({ name, type }) => {
        count += 1;
        if (count > LIMITS.publishedFiles) throw new PackageFault(`it has more than ${LIMITS.publishedFiles} files`);
        if (type !== "file" && type !== "directory") throw new PackageFault(`${shown(name)} is not a plain file`);
        if (!isInside(name)) throw new PackageFault(`${shown(name)} is not below ${PACKAGE_FOLDER}`);
        return type === "file" && wanted.includes(name);
      },
    });
    for (const { header, data } of entries)
      files.set(header.name.slice(PACKAGE_FOLDER.length), data ?? new Uint8Array());
    return files;
  } catch (thrown) {
    if (thrown instanceof PackageFault) throw thrown;
    throw new PackageFault(`it is not a .tgz file as npm makes it: ${shown(messageOf(thrown))}`);
  }
}

function isInside(name: string): boolean {
  const parts = name.replace(/\/$/, "").split("/");
  return (
    `${parts[0]}/` === PACKAGE_FOLDER && parts.every((part) => !["", ".", ".."].includes(part)) && !/[\\\0]/.test(name)
  );
}

/** Ends the stream with a fault once more came out of it than a package may have. */
function capped(): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  return new TransformStream({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      if (bytes <= LIMITS.publishedUnpackedBytes) controller.enqueue(chunk);
      else throw new PackageFault(`it has more than ${LIMITS.publishedUnpackedBytes} bytes unpacked`);
    },
  });
}

function textOf(files: Files, name: string, most: number): string | null {
  const bytes = files.get(name);
  if (bytes === undefined) return null;
  if (bytes.byteLength > most) throw new PackageFault(`${name} has more than ${most} bytes`);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    throw new PackageFault(`${name} is not UTF-8 text`);
  }
}

function manifestIn(files: Files): PackageManifest {
  const text = textOf(files, "package.json", LIMITS.publishedReadmeBytes);
  if (text === null) throw new PackageFault("it has no package.json");
  const parsed = PackageManifest.safeParse(jsonOf(text, "package.json"));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new PackageFault(
    `package.json: ${formatPath(issue?.path ?? [])}: ${shown(issue?.message ?? z.prettifyError(parsed.error))}`,
  );
}

function examplesIn(files: Files): unknown[] {
  const lines = (textOf(files, EXAMPLES_FILE, LIMITS.publishedReadmeBytes) ?? "").split("\n");
  return lines.filter((line) => line.trim() !== "").map((line) => jsonOf(line, EXAMPLES_FILE));
}

function jsonOf(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new PackageFault(`${name} is not valid JSON`);
  }
}

async function npmListingOf(manifest: PackageManifest, bytes: Uint8Array<ArrayBuffer>): Promise<NpmListing> {
  const installed = installedPart(manifest);
  if (JSON.stringify(installed).length > LIMITS.publishedNpmCharacters) {
    const most = LIMITS.publishedNpmCharacters;
    throw new PackageFault(`package.json: its dependencies and the like have more than ${most} characters of JSON`);
  }
  const shasum = (await hash("SHA-1", bytes)).map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { manifest: installed, integrity: await integrityOf(bytes), shasum };
}

async function integrityOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return `sha512-${btoa(String.fromCharCode(...(await hash("SHA-512", bytes))))}`;
}

async function hash(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<number[]> {
  return [...new Uint8Array(await crypto.subtle.digest(name, bytes))];
}
