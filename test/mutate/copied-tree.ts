/**
 * A copy of the sources in which one edit is made at a time.
 *
 * Invariants: the working tree is read and never written. All sources are copied, because the tests' settings read more
 * than the tests; the packages are linked, because nothing writes there.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import type { Edit } from "./edit.ts";

const ROOT = join(import.meta.dirname, "../..");
/** Generated or installed folders, at any depth; hidden ones are left out as well. */
const LEFT_OUT = ["node_modules", "dist"];

/** Whether this path, relative to the root, is copied. */
function isCopied(path: string): boolean {
  return path.split(sep).every((name) => !LEFT_OUT.includes(name) && !name.startsWith("."));
}

export class CopiedTree {
  readonly folder = mkdtempSync(join(tmpdir(), "rollcall-mutate-"));

  constructor() {
    cpSync(ROOT, this.folder, { recursive: true, filter: (from) => isCopied(relative(ROOT, from)) });
    symlinkSync(join(ROOT, "node_modules"), join(this.folder, "node_modules"));
  }

  /** Applies the edit while `run` runs. Throws if it does not apply. */
  async edited<T>(edit: Edit, run: () => Promise<T>): Promise<T> {
    const path = join(this.folder, edit.file);
    const before = readFileSync(path, "utf8");
    writeFileSync(path, applied(edit, before));
    try {
      return await run();
    } finally {
      writeFileSync(path, before);
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The file's text with the edit. Throws unless the text to replace occurs exactly once. */
function applied({ file, old, new: edited }: Edit, text: string): string {
  const [before, after, ...more] = text.split(old);
  if (before !== undefined && after !== undefined && more.length === 0) {
    return before + edited + after;
  }
  const times = after === undefined ? "not" : `${more.length + 1} times`;
  throw new Error(`stale edit: ${JSON.stringify(old)} stands ${times} in ${file}; write it anew`);
}

/** A message about the first edit that does not apply to the working tree; null if all do. */
export function staleEdit(edits: readonly Edit[]): string | null {
  for (const edit of edits) {
    try {
      applied(edit, readFileSync(join(ROOT, edit.file), "utf8"));
    } catch (thrown) {
      return thrown instanceof Error ? thrown.message : String(thrown);
    }
  }
  return null;
}
