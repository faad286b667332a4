/** Compares the files of two packages. */
import { createTwoFilesPatch } from "diff";
import { CODE_FILE } from "../../contract/package-files.ts";
import type { PackageFiles } from "../../local/pack-files.ts";

export interface FileChange {
  readonly path: string;
  readonly change: "added" | "removed" | "changed";
  /** Null if the package does not have the file. */
  readonly bytes_before: number | null;
  readonly bytes_after: number | null;
  /** As a unified diff; null for a file that is not text, is large or is not written by people. */
  readonly patch: string | null;
}

const SHOWN_BYTES = 64 * 1024;
/** Lines that differ; the work grows with its square. */
const MOST_EDITS = 2000;

/** The files that differ, by path. */
export function diffPackages(before: PackageFiles, after: PackageFiles): FileChange[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths.flatMap((path) => {
    const [old, now] = [before.get(path), after.get(path)];
    if (old !== undefined && now !== undefined && Buffer.compare(old, now) === 0) return [];
    const change = old === undefined ? "added" : now === undefined ? "removed" : "changed";
    const bytes = { bytes_before: old?.byteLength ?? null, bytes_after: now?.byteLength ?? null };
    return [{ path, change, ...bytes, patch: patchOf(path, old, now) }];
  });
}

function patchOf(path: string, before: Uint8Array | undefined, after: Uint8Array | undefined): string | null {
  const [old, now] = [textOf(before), textOf(after)];
  if (path === CODE_FILE || old === null || now === null) return null;
  const [from, to] = [before === undefined ? "/dev/null" : path, after === undefined ? "/dev/null" : path];
  return createTwoFilesPatch(from, to, old, now, undefined, undefined, { maxEditLength: MOST_EDITS }) ?? null;
}

function textOf(bytes: Uint8Array | undefined): string | null {
  if (bytes === undefined) return "";
  if (bytes.byteLength > SHOWN_BYTES || bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    return null;
  }
}

export function diffText(changes: readonly FileChange[]): string {
  if (changes.length === 0) return "The files are the same.";
  const list = changes.map(({ path, change, bytes_before, bytes_after }) => {
    return `${change.padEnd(7)}  ${path}  ${[bytes_before, bytes_after].filter((size) => size !== null).join(" → ")} bytes`;
  });
  return [...list, ...changes.flatMap(({ patch }) => (patch === null ? [] : ["", patch.trimEnd()]))].join("\n");
}
