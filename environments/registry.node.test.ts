/** Read from disk: a new environment is a folder and one line of the registry, and none of a list here. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ENVIRONMENTS } from "./registered.ts";

test("the registry lists each package under its own name and version, in order of name", () => {
  const packages = globSync("*/package.json", { cwd: import.meta.dirname })
    .map((file): unknown => JSON.parse(readFileSync(join(import.meta.dirname, file), "utf8")))
    .map((manifest) => manifest as { readonly name: string; readonly version: string })
    .map(({ name, version }) => ({ id: name, version }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  expect(ENVIRONMENTS.map(({ id, version }) => ({ id, version }))).toEqual(packages);
});
