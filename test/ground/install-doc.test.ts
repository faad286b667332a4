/**
 * On the npm registry the name `rollcall` belongs to nobody or to a stranger: no command that people copy may install
 * it from there. Under its published name, or by the path or address of a tarball, it may.
 */
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { KINDS, scaffold } from "../../src/cli/commands/env-init.ts";
import { rollcallName } from "../../src/local/package-root.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const READ = ["*.md", "docs/**/*.md", "environments/**/*.md", "bin/*", "src/**/*.{ts,json,md,txt}"];
const TEXTS = new Map(globSync(READ, { cwd: ROOT }).map((file) => [file, readFileSync(join(ROOT, file), "utf8")]));

/** An installation by the bare name, or with a version; not by a path or a URL of a tarball. */
const FROM_REGISTRY =
  /\b(npm (i|install|add|exec|x|init|create)|(yarn|pnpm|bun) (add|i|install|dlx|create|x)|bunx|npx (-y|--yes))\b(?!( -\S+)* --package=(?!rollcall\b))( -\S+)* ["']?rollcall(@[^/\s"']+)?["']?(?=[\s`"']|$)/m;
/** Files whose commands run in a checkout; anywhere else npx would use the registry. */
const OF_THE_CHECKOUT = [
  ...["AGENTS.md", "CHANGELOG.md", "README.md", "docs/commands.md", "docs/deploy.md", "docs/operations.md"],
  ...["docs/from-a-loop.md", "docs/from-verifiers.md", "docs/reference/commands.md", "src/local/package-root.ts"],
];

test.each([
  ["npm install rollcall && npx rollcall env init my-env", true],
  ["npm i -D rollcall@0.2.0", true],
  ["pnpm dlx rollcall eval gsm8k", true],
  ["npx -y rollcall eval gsm8k", true],
  ["npm install --save-dev rollcall@./vendor/rollcall-rollcall-0.2.0.tgz", false],
  ["npm install rollcall@npm:@rollcall/rollcall @alice/guess-word", false],
  ["npm exec --package=rollcall -- rollcall --help", true],
  ["npm exec --package=/path/to/rollcall-rollcall-0.2.0.tgz -- rollcall --help", false],
  ["npx --yes @rollcall/rollcall eval gsm8k", false],
  ["npm install && rollcall eval .", false],
])("%j uses the name from the registry: %s", (text, taken) => {
  expect(FROM_REGISTRY.test(text)).toBe(taken);
});

test("no page, help, message or template installs `rollcall` from the npm registry", () => {
  expect(TEXTS.size).toBeGreaterThan(100);
  const found = [...TEXTS].filter(([, text]) => FROM_REGISTRY.test(text)).map(([file]) => file);
  expect(found).toEqual([]);
});

test("outside a checkout npx may only run installed packages, and the pages for a checkout mention that", () => {
  const found = [...TEXTS].filter(([, text]) => text.includes("npx rollcall"));
  expect(found.map(([file]) => file).filter((file) => !OF_THE_CHECKOUT.includes(file))).toEqual([]);
  for (const page of ["README.md", "docs/commands.md", "docs/authoring.md", "docs/ci.md"]) {
    expect(TEXTS.get(page)).toMatch(/npm run package[\s\S]*npx --no-install/);
  }
});

test.each(KINDS)("a new %s environment depends on this package at its own location", (kind) => {
  const files = scaffold("my-env", kind);
  const manifest = JSON.parse(files["package.json"] ?? "");
  expect(Object.keys(manifest.dependencies)).not.toContain(rollcallName());
  expect(manifest.devDependencies[rollcallName()]).toBe(`file:${ROOT}`);
  // npm fetches a missing peer, unless it is optional.
  expect(manifest.peerDependenciesMeta).toEqual({ [rollcallName()]: { optional: true } });
  const texts = Object.values(files).join("\n");
  expect(texts).not.toContain("npx rollcall");
  expect(texts).not.toMatch(FROM_REGISTRY);
});
