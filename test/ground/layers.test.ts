/**
 * Proves the import rules by breaking them: a temporary tree in which every folder imports every other folder and every
 * package is checked with the project's own rules. The reported violations must be exactly those that the table
 * forbids.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };

const ROOT = resolve(import.meta.dirname, "../..");

const BELOW_MODULES = [
  "src/contract",
  "src/core",
  "environments",
  "src/kernel/db",
  "src/kernel/clients",
  "cloudflare:workers",
];
const MODULES = [
  ...["messages", "kit", "environment", "dataset", "endpoint", "account", "run"],
  ...["trajectory", "trainer", "scoring", "rollout", "service"],
].map((module) => `src/kernel/${module}`);
const RUN = MODULES.indexOf("src/kernel/run");
const INSIDE_RUN = ["src/kernel/run/judging", "src/kernel/run/training"];
/** The modules up to this floor; the modules inside the run belong to the layer above it. */
const upTo = (floor: number) => [...MODULES.slice(0, floor + 1), ...(floor > RUN ? INSIDE_RUN : [])];
const IN_NODE = ["zod", "node:fs"];
const SLICES = [
  "src/accounts",
  "src/agents",
  "src/backup",
  "src/billing",
  "src/fleets",
  "src/hub",
  "src/operator",
  "src/retention",
  "src/reviews",
  "src/sharing",
  "src/telemetry",
  "src/triggers",
  "src/webhooks",
];

/** The packages that only one slice may import. */
const PACKAGES_OF: Record<string, string[]> = {
  "src/billing": ["stripe"],
  "src/accounts": ["hono"],
  "src/triggers": ["croner"],
};

const MAY_IMPORT: Record<string, string[]> = {
  "src/contract": ["src/contract", "zod"],
  "src/core": ["src/core", "src/contract", "zod"],
  environments: ["environments", "src/contract", "src/core", "zod"],
  "src/kernel/db": ["src/kernel/db", "src/contract", "src/core", "drizzle-orm"],
  "src/kernel/clients": ["src/kernel/clients", "src/contract", "src/core", "openai"],
  ...Object.fromEntries(MODULES.map((module, floor) => [module, [...upTo(floor), ...BELOW_MODULES]])),
  ...Object.fromEntries(INSIDE_RUN.map((module) => [module, [...upTo(RUN), module, ...BELOW_MODULES]])),
  "src/kernel/http": [
    "src/kernel/http",
    "src/contract",
    "src/core",
    "environments",
    "src/kernel/db",
    ...MODULES,
    ...INSIDE_RUN,
    "hono",
    "zod",
  ],
  ...Object.fromEntries(
    SLICES.map((slice) => [
      slice,
      [
        ...[
          slice,
          "src/contract",
          "src/core",
          "src/kernel/db",
          "src/kernel/clients",
          ...MODULES,
          ...INSIDE_RUN,
          "src/kernel/http",
        ],
        ...["zod", "drizzle-orm", "cloudflare:workers", ...(PACKAGES_OF[slice] ?? [])],
      ],
    ]),
  ),
  "src/sdk": ["src/sdk", "src/contract"],
  "src/local": ["src/local", "src/contract", "src/core", ...IN_NODE, "miniflare", "wrangler"],
  "src/cli": ["src/cli", "src/contract", "src/core", "environments", "src/sdk", "src/local", ...IN_NODE],
  "src/web": ["src/web", "src/contract", "src/sdk"],
  "packages/math-equivalence": ["packages/math-equivalence"],
  "packages/policy": ["packages/policy", ...IN_NODE],
  "packages/trainer": ["packages/trainer", ...IN_NODE],
};
/** Who may import what by a package's name. */
const OWN = manifest.name;
const OWN_INTERFACES = [OWN, `${OWN}/contract`, `${OWN}/sdk`, `${OWN}/training`];
const BY_NAME: Record<string, string[]> = {
  "src/core": [OWN, `${OWN}/training`, "@rollcall/math-equivalence"],
  "src/web": [`${OWN}/contract`, `${OWN}/sdk`],
  "src/cli": [...OWN_INTERFACES, "@rollcall/policy/target", "@rollcall/trainer/target"],
  "environments/dice": [OWN],
  "packages/math-equivalence": ["@rollcall/math-equivalence"],
  "packages/policy": [`${OWN}/contract`, "@rollcall/policy/target"],
  "packages/trainer": [...OWN_INTERFACES, "@rollcall/policy/target", "@rollcall/trainer/target"],
};
const NAMES = [
  ...[...OWN_INTERFACES, "@rollcall/math-equivalence"],
  ...["@rollcall/policy/target", "@rollcall/trainer/target"],
];
const FOLDERS = Object.keys(MAY_IMPORT);
const PACKAGES = [
  ...["zod", "drizzle-orm", "openai", "stripe", "hono", "miniflare", "wrangler"],
  ...["cloudflare:workers", "node:fs"],
];

interface Violation {
  from: string;
  to: string;
  rule: { name: string };
}
let tree = "";
let violations: Violation[] = [];

function write(path: string, source: string): void {
  mkdirSync(dirname(join(tree, path)), { recursive: true });
  writeFileSync(join(tree, path), source);
}

/** One file per import, so that a violation names the pair. */
function writeProbes(folder: string): void {
  const up = "../".repeat(folder.split("/").length);
  write(`${folder}/target.ts`, "export interface Target { here: true }\n");
  for (const other of FOLDERS) {
    const probe = `${folder}/probe-${other.replaceAll("/", "-")}.ts`;
    write(probe, `export type { Target } from "${up}${other}/target.ts";\n`);
  }
  for (const [index, name] of PACKAGES.entries()) {
    write(`${folder}/package-${index}.ts`, `import "${name}";\n`);
  }
}

/** Links the installed packages, and this repository's own, which lead into the tree. */
function linkPackages(): void {
  const modules = join(tree, "node_modules");
  mkdirSync(join(modules, "@rollcall"), { recursive: true });
  for (const name of readdirSync(join(ROOT, "node_modules"))) {
    if (![OWN, OWN.split("/")[0], "@rollcall"].includes(name))
      symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
  }
  mkdirSync(dirname(join(modules, OWN)), { recursive: true });
  symlinkSync(tree, join(modules, OWN));
  for (const name of ["math-equivalence", "policy", "trainer"]) {
    const folder = join("packages", name);
    symlinkSync(join(tree, folder), join(modules, "@rollcall", name));
    mkdirSync(join(tree, folder), { recursive: true });
    cpSync(join(ROOT, folder, "package.json"), join(tree, folder, "package.json"));
  }
}

function cruise(): Violation[] {
  const bin = join(ROOT, "node_modules/.bin/depcruise");
  const args = [bin, "src", "packages", "environments", "--output-type", "json"];
  const output = execFileSync(process.execPath, args, {
    cwd: tree,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  return JSON.parse(output).summary.violations;
}

beforeAll(() => {
  tree = mkdtempSync(join(tmpdir(), "rollcall-layers-"));
  linkPackages();
  for (const file of [".dependency-cruiser.cjs", "tsconfig.json", "package.json"]) {
    cpSync(join(ROOT, file), join(tree, file));
  }
  for (const folder of FOLDERS) writeProbes(folder);
  for (const folder of Object.keys(BY_NAME)) {
    for (const [index, name] of NAMES.entries()) write(`${folder}/name-${index}.ts`, `import "${name}";\n`);
  }
  write(
    "src/index.ts",
    'import "cloudflare:workers";\nimport "./kernel/run/target.ts";\nimport "./kernel/db/target.ts";\n',
  );
  write(
    "src/slices.ts",
    `import "./webhooks/target.ts";\nimport "./kernel/http/target.ts";\nimport "./kernel/db/target.ts";\n`,
  );
  for (const slice of SLICES) write(`${slice}/wire.ts`, "export const wire = true;\n");
  write("src/sdk/of-slice.ts", 'import "../webhooks/wire.ts";\n');
  write("src/kernel/http/of-slice.ts", 'import "../../webhooks/wire.ts";\n');
  write("src/kernel/run/object.ts", INSIDE_RUN.map((module) => `import "../../../${module}/target.ts";\n`).join(""));
  for (const api of Object.values(manifest.exports)) write(api, "export const entry = true;\n");
  write("packages/math-equivalence/entry.ts", "export const entry = true;\n");
  write("packages/trainer/test/fixture.test.ts", 'import "openai";\nimport "@rollcall/policy/target";\n');
  write("src/core/ring-a.ts", 'import type { B } from "./ring-b.ts";\nexport type A = B;\n');
  write("src/core/ring-b.ts", 'import type { A } from "./ring-a.ts";\nexport type B = A;\n');
  write("src/attic/old.ts", 'import "../core/target.ts";\n');
  write("src/core/gone.ts", 'import "./nowhere.ts";\n');
  write("src/kernel/db/peek.ts", 'import "../../../test/fixture.ts";\n');
  write("src/core/protocol/in-process.ts", "export const code = true;\n");
  write("src/core/rollout/harness.ts", "export const harness = true;\n");
  for (const file of ["environments", "neighbour"]) {
    write(`src/kernel/environment/${file}.ts`, 'import "../../core/protocol/in-process.ts";\n');
  }
  write("src/fleets/hooks.ts", 'import "../core/rollout/harness.ts";\n');
  write("src/kernel/db/runs.ts", 'import "drizzle-orm";\nimport "drizzle-orm/d1";\n');
  write("src/kernel/db/scoped.ts", 'import "drizzle-orm/d1";\n');
  write("src/kernel/db/schema.ts", 'import "drizzle-orm/sqlite-core";\nimport "drizzle-orm/d1";\n');
  write("src/fleets/tables.ts", 'import "drizzle-orm/sqlite-core";\nimport "drizzle-orm/d1";\n');
  write("src/fleets/queries.ts", 'import "drizzle-orm";\nimport "drizzle-orm/sqlite-core";\n');
  write("test/fixture.ts", "export const fixture = true;\n");
  write("environments/dice/environment.ts", 'import { entry } from "rollcall";\nexport { entry };\n');
  write("environments/dice/inside.ts", 'import type { Target } from "../../src/core/target.ts";\n');
  write("environments/dice/environment.test.ts", 'import "node:fs";\n');
  violations = cruise();
});

afterAll(() => rmSync(tree, { recursive: true, force: true }));

function rulesFor(from: string): string[] {
  return violations.filter((violation) => violation.from === from).map(({ rule }) => rule.name);
}

test.each(FOLDERS)("%s may import the folders that its row lists and no other", (folder) => {
  const refused = FOLDERS.filter((other) => rulesFor(`${folder}/probe-${other.replaceAll("/", "-")}.ts`).length > 0);
  const listed = MAY_IMPORT[folder] ?? [];
  expect(refused).toEqual(FOLDERS.filter((other) => !listed.includes(other)));
});

test.each(FOLDERS)("%s may import the packages it owns and no other", (folder) => {
  const refused = PACKAGES.filter((_name, index) => rulesFor(`${folder}/package-${index}.ts`).length > 0);
  const listed = MAY_IMPORT[folder] ?? [];
  expect(refused).toEqual(PACKAGES.filter((name) => !listed.includes(name)));
});

test.each(Object.keys(BY_NAME))("%s may import by name the packages that its row lists and no other", (folder) => {
  const refused = NAMES.filter((_name, index) => rulesFor(`${folder}/name-${index}.ts`).length > 0);
  expect(refused).toEqual(NAMES.filter((name) => !BY_NAME[folder]?.includes(name)));
});

test("an import by path is refused if the package must be imported by name, and its tests may use the tests' packages", () => {
  expect(rulesFor("packages/trainer/probe-packages-policy.ts")).toEqual(["a package imports others by name"]);
  expect(rulesFor("src/core/probe-packages-math-equivalence.ts")).toEqual(["packages are imported by name"]);
  expect(rulesFor("packages/trainer/test/fixture.test.ts")).toEqual([]);
});

test("the object of a run assembles its modules, and no other file of the run imports them", () => {
  expect(rulesFor("src/kernel/run/object.ts")).toEqual([]);
  expect(rulesFor("src/kernel/run/probe-src-kernel-run-judging.ts")).toEqual(["the run imports no module inside it"]);
});

test("one module reaches D1, and its neighbours may only use the operators of conditions", () => {
  expect(rulesFor("src/kernel/db/runs.ts")).toEqual(["queries are scoped"]);
  expect(rulesFor("src/kernel/db/scoped.ts")).toEqual([]);
  expect(rulesFor("src/kernel/db/schema.ts")).toEqual(["the schema reaches no database"]);
  expect(rulesFor("src/fleets/tables.ts")).toEqual(["the schema reaches no database"]);
  expect(rulesFor("src/fleets/queries.ts")).toEqual(["queries are scoped"]);
});

test("one file of the kernel connects the environments of this isolate, and nothing else calls their classes", () => {
  const rule = "the kernel calls environments by their interface";
  expect(rulesFor("src/kernel/environment/environments.ts")).toEqual([]);
  expect(rulesFor("src/kernel/environment/neighbour.ts")).toEqual([rule]);
  expect(rulesFor("src/fleets/hooks.ts")).toEqual([rule]);
});

test("a cycle is reported even if it consists of type imports", () => {
  expect(rulesFor("src/core/ring-a.ts").concat(rulesFor("src/core/ring-b.ts"))).toContain("no cycles");
});

test("the Worker's entry combines objects and app, and nothing below them", () => {
  expect(rulesFor("src/index.ts")).toEqual(["the Worker's entry imports"]);
});

test("only the list of slices and the Worker's entry import a slice; commands, SDK and page import its wire types", () => {
  expect(rulesFor("src/slices.ts")).toEqual(["the list of slices imports"]);
  expect(rulesFor("src/sdk/of-slice.ts")).toEqual([]);
  expect(rulesFor("src/kernel/http/of-slice.ts")).toEqual(["src/kernel imports"]);
});

test("an environment imports the core by the name rollcall, never by a path", () => {
  expect(rulesFor("environments/dice/environment.ts")).toEqual([]);
  expect(rulesFor("environments/dice/inside.ts")).toEqual(["environments use the public entry"]);
});

test("an environment's test may use Node", () => {
  expect(rulesFor("environments/dice/environment.test.ts")).toEqual([]);
});

test("a folder without a row, a missing module and an import from the tests are reported", () => {
  expect(rulesFor("src/attic/old.ts")).toEqual(["every folder has a row"]);
  expect(rulesFor("src/core/gone.ts")).toEqual(["imports resolve"]);
  expect(rulesFor("src/kernel/db/peek.ts")).toEqual(["the product stands alone"]);
});
