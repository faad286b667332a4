/** The house's lint rules, proved by breaking each one in a throw-away tree that carries the project's biome.json. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const PRINTS = 'console.log("here");\n';
const BARREL = 'export { later } from "./promises.ts";\n';
/** Six loops, one inside the other: 1 + 2 + … + 6 points of complexity, and 15 are allowed. */
const TANGLE = `export function tangle(ok: boolean) {\n${"while (ok) {".repeat(6)}${"}".repeat(6)}\n}\n`;
const long = (lines: number) => "  step();\n".repeat(lines);

/** A file, its source, and the rule that must refuse it (null: none may). */
const CASES: [string, string, string | null][] = [
  ["src/core/any.ts", "export const loose: any = 1;\n", "suspicious/noExplicitAny"],
  ["src/core/bang.ts", "export const sure = (a?: string) => a!.length;\n", "style/noNonNullAssertion"],
  ["src/core/promises.ts", "export async function later() {\n  return 1;\n}\n", null],
  ["src/core/floating.ts", 'import { later } from "./promises.ts";\n\nlater();\n', "nursery/noFloatingPromises"],
  ["src/core/empty.ts", 'try {\n  JSON.parse("");\n} catch {}\n', "suspicious/noEmptyBlockStatements"],
  ["src/core/enum.ts", "export enum Side {\n  Left = 0,\n}\n", "style/noEnum"],
  ["src/core/BadName.ts", "export const a = 1;\n", "style/useFilenamingConvention"],
  ["src/core/locale.ts", 'import { z } from "zod";\n\nexport const A = z.string();\n', "style/noRestrictedImports"],
  ["src/core/long.ts", "step();\n".repeat(401), "style/noExcessiveLinesPerFile"],
  ["src/core/short.ts", `export function shortEnough() {\n${long(55)}}\n`, null],
  ["src/core/tall.ts", `export function tall() {\n${long(61)}}\n`, "complexity/noExcessiveLinesPerFunction"],
  ["src/core/tangle.ts", TANGLE, "complexity/noExcessiveCognitiveComplexity"],
  ["test/core/tall.test.ts", `export function tall() {\n${long(61)}}\n`, null],
  ["src/core/prints.ts", PRINTS, "suspicious/noConsole"],
  ["environments/dice/environment.ts", PRINTS, "suspicious/noConsole"],
  ["src/cli/prints.ts", PRINTS, null],
  ["src/local/prints.ts", PRINTS, null],
  ["src/core/barrel.ts", BARREL, "performance/noBarrelFile"],
  ["src/core/entry.ts", BARREL, null],
  ["src/core/star.ts", 'export * from "./promises.ts";\n', "performance/noReExportAll"],
];

interface Diagnostic {
  category: string;
  location: { path: string | { file: string } };
}
let tree = "";
let diagnostics: Diagnostic[] = [];

beforeAll(() => {
  tree = mkdtempSync(join(tmpdir(), "rollcall-lint-"));
  symlinkSync(join(ROOT, "node_modules"), join(tree, "node_modules"));
  cpSync(join(ROOT, "biome.json"), join(tree, "biome.json"));
  for (const [path, source] of CASES) {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), source);
  }
  const biome = join(ROOT, "node_modules/.bin/biome");
  const args = ["lint", "--reporter=json", "--max-diagnostics=none"];
  const { stdout } = spawnSync(process.execPath, [biome, ...args], {
    cwd: tree,
    encoding: "utf8",
  });
  diagnostics = JSON.parse(stdout).diagnostics;
});

afterAll(() => rmSync(tree, { recursive: true, force: true }));

function rulesAgainst(path: string): string[] {
  return diagnostics
    .filter(({ location }) => JSON.stringify(location.path).includes(path))
    .map(({ category }) => category.replace("lint/", ""));
}

test.each(CASES)("%s is judged by its rule", (path, _source, rule) => {
  const rules = rulesAgainst(path);
  if (rule === null) expect(rules).toEqual([]);
  else expect(rules).toContain(rule);
});
