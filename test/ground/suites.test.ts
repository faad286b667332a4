/** Every test file belongs to a command, so that moving a folder does not drop its tests from all commands. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, matchesGlob, resolve } from "node:path";
import { expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { AT_LENGTH, NODE, WORKERD } from "../suites.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const files = globSync("{src,packages,environments,test,bench,scripts}/**/*.test.ts", {
  cwd: ROOT,
  exclude: ["**/node_modules/**"],
});
const isAmong = (file: string, globs: readonly string[]) => globs.some((glob) => matchesGlob(file, glob));
const belongsTo = (file: string, { include, exclude }: typeof NODE) =>
  isAmong(file, include) && !isAmong(file, exclude);

test("every test file runs in Node or in workerd, or its folder has a command of its own", () => {
  const withoutCommand = files.filter(
    (file) => ![NODE, WORKERD].some((suite) => belongsTo(file, suite)) && !hasCommand(dirname(file)),
  );
  expect(withoutCommand).toEqual([]);
});

/** The tests of templates are copied into new environments, and run there. */
function hasCommand(folder: string): boolean {
  return existsSync(resolve(ROOT, folder, "vitest.config.ts")) || folder.startsWith("src/cli/templates/");
}

test("what npm test leaves out exists, and what it leaves out of workerd runs in Node or is named in the list", () => {
  const missing = [...AT_LENGTH.node, ...AT_LENGTH.workerd].filter(
    (glob) => !files.some((file) => matchesGlob(file, glob)),
  );
  expect(missing).toEqual([]);
  const nowhere = files.filter(
    (file) =>
      belongsTo(file, WORKERD) &&
      isAmong(file, AT_LENGTH.workerd) &&
      !(belongsTo(file, NODE) && !isAmong(file, AT_LENGTH.node)),
  );
  expect(nowhere.filter((file) => !AT_LENGTH.workerd.includes(file))).toEqual([]);
});

test("CONTRIBUTING.md lists every suite and benchmark of package.json, and no other command", () => {
  const page = readFileSync(resolve(ROOT, "CONTRIBUTING.md"), "utf8");
  const listed = Array.from(page.matchAll(/^ {4}npm run ([\w:-]+)/gm), ([, name = ""]) => name);
  const scripts = Object.keys(manifest.scripts);
  const suites = scripts.filter((name) => /^(?:test|bench)(?::|$)/.test(name) && name !== "test");
  expect(suites.filter((name) => !listed.includes(name))).toEqual([]);
  expect(listed.filter((name) => !scripts.includes(name))).toEqual([]);
});
