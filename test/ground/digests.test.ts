/** The digest file, made for a temporary environment by the real script. */
import { spawnSync } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const SCRIPT = resolve(import.meta.dirname, "../../scripts/digests.ts");
let root = "";
let dice = "";

function writeManifest(version: string, more: object = {}): void {
  const rollcall = { environment: "./environment.ts" };
  const manifest = { name: "dice", version, rollcall, ...more };
  writeFileSync(join(dice, "package.json"), JSON.stringify(manifest));
}

function digests(...flags: string[]): number | null {
  return spawnSync(process.execPath, [SCRIPT, "--root", root, ...flags]).status;
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "rollcall-digests-"));
  dice = join(root, "environments/dice");
  mkdirSync(dice, { recursive: true });
  writeFileSync(join(root, "environments/registry.ts"), "export {};\n");
  writeManifest("1.0.0");
  writeFileSync(join(dice, "environment.ts"), "export const sides = 6;\n");
  writeFileSync(join(dice, "README.md"), "# Dice\n");
  writeFileSync(join(dice, "environment.test.ts"), "\n");
});
afterEach(() => rmSync(root, { recursive: true }));

test("a missing or outdated file fails the check, and the check does not write it", () => {
  expect(digests("--check")).toBe(1);
  expect(digests("--check")).toBe(1);
});

test("a newly written file is up to date and names each environment once", () => {
  expect(digests()).toBe(0);
  expect(digests("--check")).toBe(0);
  const written = readFileSync(join(root, "environments/digests.ts"), "utf8");
  expect(written).toMatch(/= \{\n {2}dice: "sha256:[0-9a-f]{64}",\n\};\n$/);
});

test.each([
  ["environment.ts", "// edited\n", 1],
  ["rules/scoring.ts", "export {};\n", 1],
  ["README.md", "More prose.\n", 0],
  ["environment.test.ts", "// edited\n", 0],
])("a change of %s (adding %j) makes the check exit %i", (file, text, status) => {
  mkdirSync(join(dice, "rules"));
  digests();
  appendFileSync(join(dice, file), text);
  expect(digests("--check")).toBe(status);
});

test("a new version gives a new digest, another package field does not", () => {
  digests();
  writeManifest("1.0.0", { private: true });
  expect(digests("--check")).toBe(0);
  writeManifest("1.0.1");
  expect(digests("--check")).toBe(1);
});
