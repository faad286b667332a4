/**
 * Reads the wheel of a Python environment from a request: its METADATA, and every other file once, to check it. The wheel
 * may be malicious.
 */
import { type Entry, type FileEntry, ZipReader } from "@zip.js/zip.js/lib/zip-core-reader.js";
import { messageOf } from "../contract/errors.ts";
import { LIMITS } from "../contract/limits.ts";
import { nameKeyOf } from "../contract/published-environment.ts";
import { sha256Hex } from "../kernel/kit/secrets.ts";
import { PackageFault, shown } from "./package-fault.ts";
import { lineOf, type Metadata, parseMetadata } from "./python-metadata.ts";
import { parseWheelName } from "./python-names.ts";
import type { WheelListing } from "./tables.ts";

export interface ReadWheel {
  readonly metadata: Metadata;
  /** The text of METADATA. */
  readonly text: string;
  /** The program that made it, as it says. */
  readonly builder: string | null;
  readonly listing: WheelListing;
  /** Of the wheel. */
  readonly digest: string;
}

/** `file`: its name, which must agree with what it contains. Throws PackageFault. */
export async function readWheel(bytes: Uint8Array<ArrayBuffer>, file: string): Promise<ReadWheel> {
  const named = parseWheelName(file);
  if (named === null) {
    throw new PackageFault(
      `file: ${shown(file)} is not the name of a wheel, such as guess_word-1.0.0-py3-none-any.whl`,
    );
  }
  const { folder, files } = await unpack(bytes);
  const text = textOf(files, `${folder}METADATA`);
  const metadata = parseMetadata(text);
  const [name = "", version = ""] = folder.replace(/\.dist-info\/$/, "").split("-");
  for (const [where, other] of [
    ["its file name", named],
    [folder, { name, version }],
  ] as const) {
    if (nameKeyOf(other.name) !== nameKeyOf(metadata.name) || other.version !== metadata.version) {
      const [one, two] = [`${other.name} ${other.version}`, `${metadata.name} ${metadata.version}`];
      throw new PackageFault(`${where} is of ${shown(one)}, but its METADATA of ${shown(two)}`);
    }
  }
  const wheel = textOf(files, `${folder}WHEEL`);
  if (!/^Wheel-Version: *1\.\d+\s*$/m.test(wheel))
    throw new PackageFault("WHEEL: Wheel-Version: must be 1.0 or the like");
  return {
    ...{ metadata, text, builder: lineOf("Generator", /^Generator: *(.+)$/m.exec(wheel)?.[1]) },
    listing: {
      ...{ file, bytes: bytes.byteLength, metadata: sha256Hex(text) },
      requires_python: metadata.requiresPython,
    },
    digest: `sha256:${sha256Hex(bytes)}`,
  };
}

interface Unpacked {
  /** `….dist-info/`. */
  readonly folder: string;
  /** Only METADATA and WHEEL. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

async function unpack(bytes: Uint8Array<ArrayBuffer>): Promise<Unpacked> {
  const files = new Map<string, Uint8Array>();
  const names = new Set<string>();
  const room = { bytes: LIMITS.publishedUnpackedBytes };
  const options = { strictness: "strict", checkSignature: true, checkOverlappingEntry: true } as const;
  // The archive is in memory, and the decompression is that of the runtime.
  const reader = new ZipReader(new Blob([bytes]).stream(), { ...options, useWebWorkers: false });
  try {
    for await (const entry of reader.getEntriesGenerator()) {
      checkEntry(entry, names);
      if (entry.directory) continue;
      const content = await read(entry, room);
      if (/^[^/]+\.dist-info\/(?:METADATA|WHEEL)$/.test(entry.filename)) files.set(entry.filename, content);
    }
  } catch (thrown) {
    if (thrown instanceof PackageFault) throw thrown;
    throw new PackageFault(`it is not a valid zip file: ${shown(messageOf(thrown))}`);
  } finally {
    await reader.close();
  }
  const folders = new Set([...names].flatMap((name) => /^[^/]+\.dist-info\//.exec(name) ?? []));
  const [folder, ...others] = folders;
  if (folder !== undefined && others.length === 0) {
    if (!names.has(`${folder}RECORD`)) throw new PackageFault(`it has no ${shown(`${folder}RECORD`)}`);
    return { folder, files };
  }
  throw new PackageFault(`it has ${folders.size} folders *.dist-info, not one`);
}

/** `names`: of the entries before; its own is added. */
function checkEntry({ filename, symlink, encrypted }: Entry, names: Set<string>): void {
  if (names.has(filename)) throw new PackageFault(`it has ${shown(filename)} twice`);
  names.add(filename);
  if (names.size > LIMITS.publishedFiles) throw new PackageFault(`it has more than ${LIMITS.publishedFiles} files`);
  if (!isInside(filename)) throw new PackageFault(`${shown(filename)} is a path out of the wheel`);
  if (symlink || encrypted) throw new PackageFault(`${shown(filename)} is not a plain file`);
}

/** The bytes of METADATA or WHEEL; of other files nothing is kept. `room`: how much all files may still have. */
async function read(entry: FileEntry, room: { bytes: number }): Promise<Uint8Array> {
  const isKept = entry.uncompressedSize <= LIMITS.publishedReadmeBytes;
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  await entry.getData(
    new WritableStream<Uint8Array<ArrayBuffer>>({
      write(piece) {
        room.bytes -= piece.byteLength;
        if (room.bytes < 0) throw new PackageFault(`it has more than ${LIMITS.publishedUnpackedBytes} bytes unpacked`);
        if (isKept) pieces.push(piece);
      },
    }),
  );
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}

function isInside(name: string): boolean {
  const parts = name.replace(/\/$/, "").split("/");
  return parts.every((part) => !["", ".", ".."].includes(part)) && !/[\\\0:]/.test(name);
}

function textOf(files: ReadonlyMap<string, Uint8Array>, name: string): string {
  const bytes = files.get(name);
  if (bytes === undefined) throw new PackageFault(`it has no ${shown(name)}`);
  if (bytes.byteLength === 0) {
    throw new PackageFault(`${shown(name)} is empty, or has more than ${LIMITS.publishedReadmeBytes} bytes`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    throw new PackageFault(`${shown(name)} is not UTF-8 text`);
  }
}
