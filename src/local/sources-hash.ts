/** What a Worker is made of, as one number: two with the same are the same code. Apart from bundle.ts, which takes a second to load. */
import { createHash, type Hash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

/** What the Worker can import, and what decides how it is bundled. The command line and its parts are not in it. */
const SOURCES = [
  "src/index.ts",
  "src/{contract,core,db,clients,runtime,api,web}/**/*",
  "packages/math-equivalence/**/*.ts",
  "environments/**/*.{ts,json,md,jsonl}",
  "wrangler.toml",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
];

/** Same sources, same hash, wherever `root` is. */
export function sourcesHash(root: string): string {
  const files = globSync(SOURCES, { cwd: root, withFileTypes: true, exclude: ["**/node_modules"] })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
  return hashFiles(createHash("sha256"), root, files);
}

export function hashFiles(hash: Hash, folder: string, files: readonly string[]): string {
  for (const file of files) {
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(folder, file)))
      .update("\0");
  }
  return hash.digest("hex");
}
