/** The package math-equivalence alone: packed, installed in an empty folder, and used by plain Node. */
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { succeedIn } from "../local/in-a-folder.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const USE = `import { extractMathAnswer, mathEqual, NoVerdictError } from "@rollcall/math-equivalence";

const answer: string | null = extractMathAnswer("So it is \\\\(\\\\boxed{\\\\frac{1}{2}}\\\\).");
const facts: boolean[] = [mathEqual(answer ?? "", "0.5"), mathEqual("x+1", "x-1")];
try {
  mathEqual("1", "");
} catch (error) {
  facts.push(error instanceof NoVerdictError);
}
console.log(facts.join());
`;

const base = mkdtempSync(join(tmpdir(), "rollcall-math-"));
const user = join(base, "user");

beforeAll(async () => {
  const script = join(ROOT, "scripts/package.ts");
  const tarball = await succeedIn(ROOT, [process.execPath, script, "--out", base, "--only", "math-equivalence"]);
  mkdirSync(user);
  writeFileSync(join(user, "use.mts"), USE);
  await succeedIn(user, ["npm", "install", "--offline", "--no-audit", "--no-fund", tarball.trim()]);
});

afterAll(() => rm(base, { recursive: true }));

test("it depends on no other package, and compares in plain Node", async () => {
  expect(readdirSync(join(user, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["@rollcall"]);
  expect(readdirSync(join(user, "node_modules/@rollcall"))).toEqual(["math-equivalence"]);
  expect(await succeedIn(user, [process.execPath, "use.mts"])).toBe("true,false,true\n");
});

test("it has types", async () => {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const types = ["--types", "node", "--typeRoots", join(ROOT, "node_modules/@types")];
  const flags = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2024", ...types];
  await succeedIn(user, [process.execPath, tsc, ...flags, "use.mts"]);
});
