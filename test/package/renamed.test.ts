/**
 * The product with another package name: a copy of this tree is renamed and packed, and the installed package makes and
 * plays an environment.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, relative, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { copyPackages, succeedIn, unpackedPackages } from "../local/in-a-folder.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const NAME = "@acme/gym";
const INSTALL = ["npm", "install", "--prefer-offline", "--no-audit", "--no-fund"] as const;

const base = mkdtempSync(join(tmpdir(), "rollcall-renamed-"));
const tree = join(base, "tree");
const author = join(base, "author");
const environment = join(author, "my-env");

beforeAll(async () => {
  const isCopied = (path: string) => !["node_modules", "dist", ".git"].includes(basename(path));
  cpSync(ROOT, tree, { recursive: true, filter: (from) => relative(ROOT, from) === "" || isCopied(from) });
  await succeedIn(tree, ["npm", "run", "--silent", "rename", "--", NAME]);
  await copyPackages(ROOT, tree);
  await succeedIn(tree, [...INSTALL, "--no-save"]);
  await succeedIn(tree, [process.execPath, "scripts/digests.ts"]);
  const pack = [process.execPath, "scripts/package.ts", "--out", base] as const;
  const tarball = (await succeedIn(tree, pack)).trim();
  mkdirSync(author);
  await unpackedPackages(ROOT, author);
  await succeedIn(author, [...INSTALL, tarball]);
  await succeedIn(author, ["npx", "rollcall", "env", "init", "my-env"]);
  await unpackedPackages(ROOT, environment);
  await succeedIn(environment, INSTALL);
});

afterAll(() => rm(base, { recursive: true }));

test("a new environment depends on the new name and imports by it", () => {
  const manifest = JSON.parse(readFileSync(join(environment, "package.json"), "utf8"));
  expect(Object.keys(manifest.peerDependencies)).toEqual([NAME]);
  expect(Object.keys(manifest.devDependencies)).toContain(NAME);
  expect(readFileSync(join(environment, "environment.ts"), "utf8")).toContain(`from "${NAME}"`);
});

test("it passes its own tests, its types and its validation, and is played", async () => {
  expect(await succeedIn(environment, ["npm", "test"])).toMatch(/Tests +\d+ passed/);
  await succeedIn(environment, ["npm", "run", "check"]);
  const validate = ["npm", "run", "--silent", "validate", "--", "--json"] as const;
  expect(JSON.parse(await succeedIn(environment, validate))).toMatchObject({ environment: "my-env", ok: true });
  const play = ["npx", "rollcall", "eval", ".", "--force", "-n", "2", "--json"] as const;
  expect(JSON.parse(await succeedIn(environment, play))).toMatchObject({
    status: "completed",
    counts: { scored: 2 },
  });
});
