import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DIGESTS } from "../../environments/digests.ts";
import {
  environmentPackagesIn,
  findInstalledEnvironment,
  resolveEnvironmentPackage,
} from "../../src/local/environment-package.ts";
import { loadEnvironmentModule, tryEnvironmentModule } from "../../src/local/load-environment.ts";
import { environmentExports, rollcallSpecifier } from "../../src/local/package-root.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const MODULE = `
import { dataset, defineEnvironment, SingleTurnEnv } from "rollcall";
import * as z from "zod";
const rows = [{ question: "Say yes.", answer: "yes" }];
export const loadEnvironment = defineEnvironment({
  args: z.strictObject({}),
  build: () => new SingleTurnEnv({
    dataset: dataset(z.object({ question: z.string(), answer: z.string() }), rows),
    rubric: { rewards: { right: ({ completion, answer }) => completion.at(-1)?.content === answer } },
  }),
});
`;

let base = "";

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "rollcall-environment-package-"));
});
afterEach(() => rmSync(base, { recursive: true }));

function write(file: string, text: string): void {
  const path = join(base, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function writePackage(folder: string, manifest: object = {}): void {
  const whole = {
    ...{ name: "dice", version: "1.2.3", rollcall: { environment: "./environment.ts" } },
    ...manifest,
  };
  write(`${folder}/package.json`, JSON.stringify(whole));
  write(`${folder}/environment.ts`, MODULE);
}

test("a folder and an installed name are the same package, from any subfolder", () => {
  writePackage("node_modules/@me/dice", { name: "@me/dice" });
  const found = resolveEnvironmentPackage("@me/dice", join(base, "deep/down"));
  expect(found).toMatchObject({ id: "dice", version: "1.2.3" });
  expect(found.entry).toMatch(/@me\/dice\/environment\.ts$/);
  expect(resolveEnvironmentPackage("./node_modules/@me/dice", base)).toEqual(found);
});

test("a linked package is its folder", () => {
  writePackage("dice");
  mkdirSync(join(base, "node_modules"));
  symlinkSync("../dice", join(base, "node_modules/dice"));
  expect(findInstalledEnvironment("dice", base)).toEqual(resolveEnvironmentPackage("./dice", base));
});

test.each([
  ["dice@1.2.3", "1.2.3"],
  ["dice@1.2", "1.2.3"],
  ["dice@1", "1.2.3"],
])("%s matches version 1.2.3", (reference, version) => {
  writePackage("node_modules/dice");
  expect(resolveEnvironmentPackage(reference, base)).toMatchObject({ version });
});

test.each([
  ["./nowhere", {}, "does not exist"],
  ["./empty", {}, "has no package.json; create an environment with: npx rollcall env init"],
  ["./dice", { rollcall: undefined }, 'add "rollcall": { "environment": "./environment.ts" }'],
  ["./dice", { rollcall: { environment: "./else.ts" } }, "has no ./else.ts"],
  ["./dice", { name: "Dice!" }, '"Dice!" cannot be an environment\'s id'],
  ["./dice", { version: 1 }, "cannot be used"],
  ["./dice", { version: "latest" }, 'must be like "0.1.0"'],
  ["dice@2", {}, "dice@2 is not installed here; version 1.2.3 is"],
  ["cards", {}, "the package cards is not installed here"],
])("%s with %j in its package.json is refused: %s", (reference, manifest, message) => {
  mkdirSync(join(base, "empty"));
  writePackage("dice", manifest);
  writePackage("node_modules/dice");
  expect(() => resolveEnvironmentPackage(reference, base)).toThrow(message);
});

test("the digests are the ones that the deployment pins", () => {
  const packages = environmentPackagesIn(join(ROOT, "environments"));
  expect(Object.fromEntries(packages.map(({ id, digest }) => [id, digest]))).toEqual(DIGESTS);
});

test("files that no rollout reads do not change the digest; code and rows do", () => {
  writePackage("dice");
  const digest = () => resolveEnvironmentPackage("./dice", base).digest;
  const before = digest();
  const untouched = ["README.md", "environment.test.ts", "node_modules/x/index.ts"];
  for (const file of [...untouched, ".rollcall/secret", "dice-1.2.3.tgz", "outputs/results.jsonl"])
    write(`dice/${file}`, "x");
  expect(digest()).toBe(before);
  write("dice/rows.jsonl", "{}");
  const withRows = digest();
  expect(withRows).not.toBe(before);
  write("dice/environment.ts", `${MODULE}// edited\n`);
  expect(digest()).not.toBe(withRows);
});

test("an installed module is loaded, with its types and own files", async () => {
  writePackage("node_modules/dice");
  write("node_modules/dice/names.ts", "export const names: string[] = [];");
  write("node_modules/dice/environment.ts", `import { names } from "./names.ts";\n${MODULE}names;`);
  const found = resolveEnvironmentPackage("dice", base);
  const { loadEnvironment } = await loadEnvironmentModule(found);
  expect((await loadEnvironment.load({})).dataset.kind).toBe("rows");
});

test.each([
  ["const one = ;", /environment\.ts:1:12/],
  ['import "./nowhere.ts";', /Could not resolve "\.\/nowhere\.ts"/],
  [
    "throw new Error('not today');",
    /\/dice\/environment\.ts throws an error while loading: Error: not today\n +at .*\/dice\/environment\.ts:1:7\)?$/,
  ],
  ["export const environment = 1;", /must export loadEnvironment/],
])("the module %j is refused with a message about its own file", async (module, message) => {
  writePackage("dice");
  write("dice/environment.ts", module);
  const found = resolveEnvironmentPackage("./dice", base);
  await expect(loadEnvironmentModule(found)).rejects.toThrow(message);
  await expect(tryEnvironmentModule(found)).rejects.toThrow(message);
});

test.each([
  ["for (;;) {}", 1500, /environment\.ts computes for more than 1\.5 s while loading/],
  ["process.exit(1);", 20_000, /environment\.ts ends its process while loading/],
])("the module %j is refused, and this process continues", async (module, ms, message) => {
  writePackage("dice");
  write("dice/environment.ts", module);
  const found = resolveEnvironmentPackage("./dice", base);
  await expect(tryEnvironmentModule(found, { ms })).rejects.toThrow(message);
  writePackage("dice");
  await tryEnvironmentModule(found);
});

test.each([
  ['import { readFileSync } from "node:fs";\nreadFileSync("x");', '"node:fs"'],
  ['import { env } from "cloudflare:workers";\nenv.DB;', '"cloudflare:workers"'],
  ['import { execSync } from "child_process";\nexecSync("true");', '"child_process"'],
  ['await import("node:net");', '"node:net"'],
])("the module %j is refused because of an import, with its file and line", async (module, name) => {
  writePackage("dice");
  write("dice/lower.ts", module);
  write("dice/environment.ts", `import "./lower.ts";\n${MODULE}`);
  const found = resolveEnvironmentPackage("./dice", base);
  for (const load of [loadEnvironmentModule, tryEnvironmentModule]) {
    const refused = await load(found).then(() => "loaded", String);
    expect(refused).toMatch(/\/dice\/lower\.ts imports /);
    expect(refused).toContain(name);
    expect(refused).toMatch(/dice\/lower\.ts:1:\d+/);
  }
});

test.each([
  [{ imports: { "#fs": "node:fs" } }, "#fs", "node:fs"],
  [{ imports: { "#any/*": "./*.ts", "#any/fs": { node: "fs", default: "./lower.ts" } } }, "#any/fs", "fs"],
  [{ imports: { "#net": ["node:net", "./lower.ts"] } }, "#net", "node:net"],
])("a module of Node is refused under a name in the package's imports: %j", async (manifest, name, target) => {
  writePackage("dice", manifest);
  write("dice/environment.ts", `import * as one from ${JSON.stringify(name)};\n${MODULE}one;`);
  const found = resolveEnvironmentPackage("./dice", base);
  for (const load of [loadEnvironmentModule, tryEnvironmentModule]) {
    const refused = await load(found).then(() => "loaded", String);
    expect(refused).toMatch(/\/dice\/environment\.ts imports /);
    expect(refused).toContain(
      `imports "${name}", which is "${target}": an environment must not import modules of Node`,
    );
    expect(refused).toMatch(/dice\/environment\.ts:1:\d+/);
  }
});

test("names in a package's imports for its own files are resolved", async () => {
  writePackage("dice", { imports: { "#names": "./names.ts", "#process": "node:process" } });
  write("dice/names.ts", "export const names: string[] = [];");
  write("dice/environment.ts", `import "#names";\nimport { version } from "#process";\n${MODULE}version;`);
  await tryEnvironmentModule(resolveEnvironmentPackage("./dice", base));
});

test("a module that is only tried sees no variables, reads no other files, writes and starts nothing", async () => {
  writePackage("dice");
  write("secret.txt", "x");
  const tries = [
    ...["Object.keys(process.env).length > 0", "fs.readFileSync(secret)", "fs.writeFileSync(secret, 'y')"],
    ...["fs.writeFileSync(import.meta.filename, 'y')", "start.spawnSync(process.execPath, ['-v']).status === 0"],
    "new threads.Worker('0', { eval: true })",
  ];
  const modules = `const [fs, start, threads] = ["fs", "child_process", "worker_threads"].map(process.getBuiltinModule);
    const secret = ${JSON.stringify(join(base, "secret.txt"))};`;
  for (const one of tries) {
    const code = `try { if (${one}) throw new Error("it could"); } catch (error) {
      if (error.code !== "ERR_ACCESS_DENIED") throw error;
    }`;
    write("dice/environment.ts", `${MODULE}${modules}${one.startsWith("Object") ? `if (${one}) throw 1;` : code}`);
    await tryEnvironmentModule(resolveEnvironmentPackage("./dice", base));
  }
});

test("a module that is only tried cannot signal a process, including the one that tries it", async () => {
  writePackage("dice");
  const tries = ["process.kill", "kill", "process._kill", "process._debugProcess", "process.binding"];
  const module = `import { kill } from "node:process";
    for (const one of [${tries}]) {
      try { one(process.ppid, 0); } catch (error) { if (error.code === "ERR_ACCESS_DENIED") continue; }
      throw new Error(one.name + " could");
    }`;
  write("dice/environment.ts", `${module}${MODULE}`);
  await tryEnvironmentModule(resolveEnvironmentPackage("./dice", base));
});

test.each([
  "process.send?.({ refused: null });",
  `fs.writeSync(3, ["null", process.argv[2] + "null", '{"refused":null}', ""].join("\\n"));`,
  'fs.writeSync(3, fs.readFileSync(0, "utf8") + "null\\n");',
  "JSON.stringify = () => 'null'; String.prototype.slice = Array.prototype.join = () => null;",
  "fs.writeSync = (fd) => real(fd, 'null\\n'); syncBuiltinESMExports();",
  "Object.prototype.toJSON = String.prototype.toJSON = () => null;",
])("a refused module cannot pretend to be accepted: %s", async (attempt) => {
  writePackage("dice");
  const names = `const fs = process.getBuiltinModule("fs"), real = fs.writeSync;
    const { syncBuiltinESMExports } = process.getBuiltinModule("module");\n`;
  write("dice/environment.ts", `${names}${attempt}\nexport const environment = 1;`);
  const tried = tryEnvironmentModule(resolveEnvironmentPackage("./dice", base), { ms: 20_000 });
  await expect(tried).rejects.toThrow(/must export loadEnvironment/);
});

test("waiting for a module that computes without end can be aborted", async () => {
  writePackage("dice");
  write("dice/environment.ts", "for (;;) {}");
  const found = resolveEnvironmentPackage("./dice", base);
  const stop = new AbortController();
  const tried = tryEnvironmentModule(found, { signal: stop.signal });
  stop.abort();
  await expect(tried).rejects.toThrow("aborted");
});

test("a new environment depends on the checkout, tarball or address that created it, never on the name of imports", () => {
  expect(rollcallSpecifier(ROOT)).toBe(`file:${ROOT}`);
  write("node_modules/rollcall/package.json", '{ "name": "rollcall", "version": "0.4.2" }');
  const installed = join(base, "node_modules/rollcall");
  expect(rollcallSpecifier(installed)).toBe(`file:${installed}`);
  const noted = (resolved: string) => {
    const packages = { "node_modules/rollcall": { resolved } };
    write("node_modules/.package-lock.json", JSON.stringify({ packages }));
  };
  noted("file:../rollcall-0.4.2.tgz");
  expect(rollcallSpecifier(installed)).toBe(`file:${resolve(base, "../rollcall-0.4.2.tgz")}`);
  noted("https://example.com/rollcall-0.4.2.tgz");
  expect(rollcallSpecifier(installed)).toBe("https://example.com/rollcall-0.4.2.tgz");
});

test("a package of npm's registry is depended on by its published name, whatever folder it is in", () => {
  const manifest = { name: "@rollcall/rollcall", importedAs: "rollcall", version: "0.4.2" };
  for (const place of ["node_modules/@rollcall/rollcall", "node_modules/rollcall"]) {
    write(`${place}/package.json`, JSON.stringify(manifest));
    const noted = (resolved: string) => {
      write("node_modules/.package-lock.json", JSON.stringify({ packages: { [place]: { resolved } } }));
      return rollcallSpecifier(join(base, place));
    };
    const registry = "https://registry.npmjs.org/@rollcall/rollcall/-/rollcall-0.4.2.tgz";
    expect(noted(registry)).toBe("npm:@rollcall/rollcall@^0.4.2");
    expect(noted("https://example.com/rollcall.tgz")).toBe("https://example.com/rollcall.tgz");
    expect([...environmentExports(join(base, place)).keys()]).toEqual(["rollcall", "rollcall/testing"]);
  }
});

test("under another package name, it is found and can be imported by that name", () => {
  write("node_modules/@acme/gym/package.json", '{ "name": "@acme/gym", "version": "0.4.2" }');
  const packages = { "node_modules/@acme/gym": { resolved: "https://example.com/gym.tgz" } };
  write("node_modules/.package-lock.json", JSON.stringify({ packages }));
  const installed = join(base, "node_modules/@acme/gym");
  expect(rollcallSpecifier(installed)).toBe("https://example.com/gym.tgz");
  expect([...environmentExports(installed).keys()]).toEqual(["@acme/gym", "@acme/gym/testing"]);
});
