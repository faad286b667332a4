/** Runs the output of `rollcall env init` as its author would: its types, its tests, its validation. */
import { execFile } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { KINDS, makeEnvironment, PINS, scaffold } from "../../src/cli/commands/env-init.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import * as singleTurn from "../../src/cli/templates/single-turn/environment.ts";
import * as stateful from "../../src/cli/templates/stateful/environment.ts";
import * as withTool from "../../src/cli/templates/tool/environment.ts";
import { codeOf } from "../../src/core/protocol/in-process.ts";
import { validateEnvironment } from "../../src/core/validation/validate.ts";
import { environmentPackage } from "../../src/local/environment-package.ts";
import { rollcall } from "./run-rollcall.ts";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "rollcall-init-"));
const run = promisify(execFile);

beforeAll(() => {
  // In place of `npm install`: the versions are those of the scaffold.
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  for (const kind of KINDS) makeEnvironment(`my-${kind}`, kind, folder);
  const environments = join(folder, "checkout/environments");
  cpSync(join(root, "environments"), environments, { recursive: true });
  makeEnvironment("my-first", "tool", environments);
  const line = 'export { loadEnvironment as "my-first" } from "./my-first/environment.ts";\n';
  appendFileSync(join(environments, "registry.ts"), line);
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

test("it makes a package with an environment, and prints the next steps", async () => {
  const argv = ["env", "init", "@me/another", "--kind", "tool", "--json"];
  const { code, stdout, stderr } = await rollcall(argv, {}, undefined, folder);
  expect([code, JSON.parse(stdout)]).toEqual([
    0,
    {
      name: "@me/another",
      kind: "tool",
      folder: join(folder, "another"),
      files: Object.keys(scaffold("another", "tool")),
      next: ["cd another && npm install", "npm test", "npm run validate"],
    },
  ]);
  expect(stderr).toContain("Next:\n  cd another && npm install\n");
  expect(environmentPackage(join(folder, "another"))).toMatchObject({
    id: "another",
    version: "0.1.0",
    entry: expect.stringMatching(/environment\.ts$/),
  });
  expect(readFileSync(join(folder, "another/README.md"), "utf8")).toMatch(/^# @me\/another\n/);
});

test("its versions are those that this Rollcall is tested with", () => {
  const { dependencies, devDependencies } = manifest;
  expect({ ...dependencies, ...devDependencies }).toMatchObject(PINS);
});

test("its output has no type errors", async () => {
  const config = { extends: "./my-tool/tsconfig.json", include: ["my-*/*.ts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  await expect(run(process.execPath, [tsc], { cwd: folder })).resolves.toMatchObject({
    stdout: "",
  });
});

test("in this repository its digest is missing until it is generated", async () => {
  const digests = (...flags: string[]) => {
    const argv = [join(root, "scripts/digests.ts"), "--root", join(folder, "checkout"), ...flags];
    return run(process.execPath, argv);
  };
  await expect(digests("--check")).rejects.toMatchObject({ code: 1 });
  await digests();
  await digests("--check");
});

test("its own tests pass, and this repository needs only one folder and one line of the registry", async () => {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  // Variables of the surrounding test run must not reach this one.
  const { VITEST: _, VITEST_POOL_ID: __, VITEST_WORKER_ID: ___, ...env } = process.env;
  const options = { cwd: folder, env: { ...env, NO_COLOR: "1", FORCE_COLOR: undefined } };
  const { stdout } = await run(process.execPath, [vitest, "run", "--no-isolate", "my-", "registry"], options);
  expect(stdout).toMatch(/Test Files +6 passed \(6\)\s+Tests +16 passed \(16\)/);
});

test("`rollcall env validate` has no findings", async () => {
  const at = join(folder, "my-stateful");
  const { code, stdout } = await rollcall(["env", "validate", at, "--json"]);
  expect([code, JSON.parse(stdout)]).toMatchObject([
    0,
    { environment: "my-stateful", version: "0.1.0", policies: { gold: { mean: 1, n: 20 } } },
  ]);
});

test.each([
  ["single-turn", singleTurn, null],
  ["tool", withTool, null],
  ["stateful", stateful, stateful.goldPolicy],
] as const)("a new %s environment passes every check", async (_kind, module, goldPolicy) => {
  const [code, secondInstance] = [codeOf(await module.loadEnvironment()), codeOf(await module.loadEnvironment())];
  const { checks } = await validateEnvironment(
    { code, secondInstance, goldPolicy, later: (again) => again() },
    { examples: 20, uploaded: [], unmet: [] },
  );
  expect(checks.filter(({ status }) => status === "warning" || status === "error")).toEqual([]);
});

test.each([
  ["Upper", "is not a valid package name"],
  [".hidden", "is not a valid package name"],
  ["../elsewhere", "is not a valid package name"],
  ["fs", "is a module of Node"],
  ["node_modules", "is not allowed by npm"],
  ["vitest", "is a package that the environment needs"],
  ["@me/gsm8k", "is a built-in environment of Rollcall"],
  ["my-tool", "exists and is not empty"],
])("%s is refused, and nothing is written", (name, why) => {
  const files = () => globSync("*/*", { cwd: folder, exclude: ["node_modules"] }).sort();
  const before = files();
  expect(() => makeEnvironment(name, "stateful", folder)).toThrow(why);
  expect(files()).toEqual(before);
});

test("an existing file of the name does not change", () => {
  writeFileSync(join(folder, "taken"), "mine");
  expect(() => makeEnvironment("taken", "tool", folder)).toThrow("is a file: choose another");
  expect(readFileSync(join(folder, "taken"), "utf8")).toBe("mine");
});

test("an empty folder of the name is used", () => {
  mkdirSync(join(folder, "empty"));
  expect(makeEnvironment("empty", "tool", folder).files).toContain("environment.ts");
});

test("an unknown kind is refused", async () => {
  const init = COMMANDS.find(({ name }) => name === "env init");
  await expect(init?.run(["other", "--kind", "chess"])).rejects.toThrow("chess is not one of");
});
