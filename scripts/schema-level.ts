/** Writes the name of the newest migration into src/kernel/db/schema-level.ts. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "..");
const FILE = join(ROOT, "src/kernel/db/schema-level.ts");

/** The text that the file must have. */
function wantedText(): string {
  const migrations = readdirSync(join(ROOT, "migrations")).filter((name) => name.endsWith(".sql"));
  return presentText().replace(/(?<=SCHEMA_LEVEL = ")[^"]*/, migrations.sort().at(-1) ?? "");
}

function presentText(): string {
  return readFileSync(FILE, "utf8");
}

export function isLevelStale(): boolean {
  return presentText() !== wantedText();
}

if (import.meta.main) writeFileSync(FILE, wantedText());
