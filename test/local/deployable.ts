/** The release's wrangler.toml for a deployment from another folder: with a database and absolute paths. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";

export const DATABASE_ID = "6f1d3c52-9a0e-4f0b-8f7e-2a1b3c4d5e6f";

/** `root` has the wrangler.toml. `changes`: each a text that must be in the file, and its replacement. */
export function configFor(root: string, changes: readonly (readonly [from: string, to: string])[] = []): string {
  const elsewhere = [
    ['main = "src/index.ts"', `main = "${join(root, "src/index.ts")}"`],
    ['migrations_dir = "migrations"', `migrations_dir = "${join(root, "migrations")}"`],
    ['directory = "dist/web"', `directory = "${join(root, "dist/web")}"`],
    ["npm run --silent build:page", `npm --prefix ${root} run --silent build:page`],
    ["00000000-0000-0000-0000-000000000000", DATABASE_ID],
  ] as const;
  return [...elsewhere, ...changes].reduce(
    (written, [from, to]) => {
      expect(written).toContain(from);
      return written.replace(from, () => to);
    },
    readFileSync(join(root, "wrangler.toml"), "utf8"),
  );
}
