/**
 * The names by which this repository's packages import each other, for Vite: the product's exports and those of
 * packages/*. Vite does not resolve a package's import of its own name. Also, a copy of the tree, whose node_modules
 * link to the original, must import its own files.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as z from "zod";

const Manifest = z.object({ name: z.string(), exports: z.record(z.string(), z.string()) });

interface Alias {
  readonly find: RegExp;
  readonly replacement: string;
}

export function packageNames(root: string): Alias[] {
  return ["package.json", ...globSync("packages/*/package.json", { cwd: root })].flatMap((file) => {
    const { name, exports } = Manifest.parse(JSON.parse(readFileSync(join(root, file), "utf8")));
    return Object.entries(exports).map(([entry, source]) => ({
      find: new RegExp(`^${name}${entry.slice(1).replace("*", "(.+)")}$`),
      replacement: join(root, dirname(file), source).replace("*", "$1"),
    }));
  });
}
