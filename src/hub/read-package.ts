/** Reads the npm package of an environment from a request. The package may be malicious, so everything in it is checked. */
import { unpackTar } from "modern-tar";
import * as z from "zod";
import { messageOf } from "../contract/errors.ts";
import { LIMITS } from "../contract/limits.ts";
import { CODE_FILE, EXAMPLES_FILE, PACKAGE_FOLDER } from "../contract/package-files.ts";
import { formatPath } from "../core/field-path.ts";
import { sha256Hex } from "../kernel/kit/secrets.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import { installedPart, PackageManifest } from "./package-format.ts";
import type { NpmListing } from "./tables.ts";

export interface ReadPackage {
  readonly manifest: PackageManifest;
  /** The module that is played, and its digest. */
  readonly code: string;
  readonly digest: string;
  readonly readme: string | null;
  readonly examples: readonly unknown[];
  readonly npm: NpmListing;
}

/** Of the whole package; `package` is the field at fault. */
export async function readPackage(bytes: Uint8Array<ArrayBuffer>): Promise<Result<ReadPackage>> {
  try {
    const files = await unpack(bytes);
    const manifest = manifestIn(files);
    const code = textOf(files, CODE_FILE, LIMITS.publishedCodeBytes);
    if (code === null) {
      throw new PackageFault(
        `it has no ${CODE_FILE}: make the package with \`rollcall env publish\` or \`rollcall env pack\``,
      );
    }
    const digest = `sha256:${sha256Hex(code)}`;
    const readme = textOf(files, "README.md", LIMITS.publishedReadmeBytes);
    const examples = examplesIn(files);
    return { ok: true, value: { manifest, code, digest, readme, examples, npm: await npmListingOf(manifest, bytes) } };
  } catch (thrown) {
    if (thrown instanceof PackageFault) return refuse("invalid_request", `package: ${thrown.message}`, "package");
    throw thrown;
  }
}

class PackageFault extends Error {}

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
  const hash = async (name: string) => [...new Uint8Array(await crypto.subtle.digest(name, bytes))];
  const sha512 = btoa(String.fromCharCode(...(await hash("SHA-512"))));
  const sha1 = (await hash("SHA-1")).map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { manifest: installed, integrity: `sha512-${sha512}`, shasum: sha1 };
}

function shown(text: string): string {
  return text.slice(0, LIMITS.publishedReasonCharacters);
}
