/** Read from disk: a new environment needs a folder and one line of the registry, and no change here. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ENVIRONMENTS } from "./registered.ts";

test("the registry lists each package under its own name and version, sorted by name", () => {
  const packages = globSync("*/package.json", { cwd: import.meta.dirname })
    .map((file): unknown => JSON.parse(readFileSync(join(import.meta.dirname, file), "utf8")))
    .map((manifest) => manifest as { readonly name: string; readonly version: string })
    .map(({ name, version }) => ({ id: name, version }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  expect(ENVIRONMENTS.map(({ id, version }) => ({ id, version }))).toEqual(packages);
});
