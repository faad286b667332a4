/**
 * Fails if the schema differs from the migrations: drizzle-kit generates into a copy of the migrations and must find
 * nothing to write. Fails too if the code names another migration as the newest. The project's own folder does not
 * change.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import config from "../drizzle.config.ts";
import { isLevelStale } from "./schema-level.ts";

const ROOT = resolve(import.meta.dirname, "..");
// The only sign of success: it exits with 0 also after it wrote a migration, and if it cannot ask whether a column was
// renamed.
const FRESH = "No schema changes";

function generateInto(folder: string): string {
  // drizzle-kit prefixes "./" to --out, so an absolute path would land inside the project.
  const out = relative(ROOT, folder);
  const args = ["generate", "--dialect", config.dialect, "--schema", String(config.schema)];
  const drizzleKit = join(ROOT, "node_modules/.bin/drizzle-kit");
  const { stdout, stderr } = spawnSync(drizzleKit, [...args, "--out", out], {
    cwd: ROOT,
    encoding: "utf8",
  });
  return stdout + stderr;
}

const copy = mkdtempSync(join(tmpdir(), "rollcall-migrations-"));
try {
  cpSync(resolve(ROOT, config.out ?? "migrations"), copy, { recursive: true });
  const output = generateInto(copy);
  if (!output.includes(FRESH)) {
    process.stderr.write(`${output}\nThe schema has no migration yet: npm run generate\n`);
    process.exitCode = 1;
  }
  if (isLevelStale()) {
    process.stderr.write("src/kernel/db/schema-level.ts does not name the newest migration: npm run generate\n");
    process.exitCode = 1;
  }
} finally {
  rmSync(copy, { recursive: true });
}
