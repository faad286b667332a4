/**
 * A copy of the sources in which one edit is made at a time.
 *
 * Invariants. The working tree is read and never written. What is copied is all that the edits' tests need; the packages are linked, since nobody writes there.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Edit } from "./edit.ts";

const ROOT = join(import.meta.dirname, "../..");
/** From the root. */
export const COPIED = [
  "environments",
  "migrations",
  "package.json",
  "packages",
  "src",
  "test/api",
  "test/clients",
  "test/conformance",
  "test/contract",
  "test/core",
  "test/fakes",
  "test/fixtures",
  "test/local",
  "test/mutate",
  "test/packages",
  "test/runtime",
  "tsconfig.json",
  "vitest.config.ts",
  "wrangler.toml",
];

export class CopiedTree {
  readonly folder = mkdtempSync(join(tmpdir(), "rollcall-mutate-"));

  constructor() {
    for (const path of COPIED) cpSync(join(ROOT, path), join(this.folder, path), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(this.folder, "node_modules"));
  }

  /** With the edit in place while `run` runs. Throws when it does not apply. */
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

/** The file's text with the edit. Throws unless what it replaces stands there exactly once. */
export function applied({ file, old, new: edited }: Edit, text: string): string {
  const [before, after, ...more] = text.split(old);
  if (before !== undefined && after !== undefined && more.length === 0) {
    return before + edited + after;
  }
  const times = after === undefined ? "not" : `${more.length + 1} times`;
  throw new Error(`stale edit: ${JSON.stringify(old)} stands ${times} in ${file}; write it anew`);
}

/** The first edit that does not apply to the working tree, in words; null when all do. */
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
