/** Every access to D1 goes through src/kernel/db/scoped.ts, and queries without an owner are listed here. */
import { globSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const SOURCES = globSync(
  [
    "src/{accounts,backup,billing,kernel,fleets,operator,retention,reviews,sharing,telemetry,triggers,webhooks}/**/*.ts",
    "src/*.ts",
  ],
  {
    cwd: ROOT,
  },
).sort();

function read(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

function matchesIn(files: readonly string[], pattern: RegExp): string[] {
  return files.flatMap((file) => [...read(file).matchAll(pattern)].map(([all, what]) => `${file}: ${what ?? all}`));
}

test("no source calls a method of the database itself: it is passed to functions of src/kernel/db", () => {
  expect(matchesIn(SOURCES, /\.(?:prepare|withSession|dump)\(/g)).toEqual([]);
  expect(matchesIn(SOURCES, /\b(?:DB|database|d1)\??\.\s*(?:exec|batch)\b/g)).toEqual([]);
});

test("no query of src/kernel/db is raw SQL text", () => {
  const queries = SOURCES.filter((file) => file.startsWith("src/kernel/db/"));
  expect(matchesIn(queries, /\bsql\.raw\b/g)).toEqual([]);
});

test("these queries have no owner, and no others", () => {
  expect(matchesIn(SOURCES, /\bunscoped\((?:[^()"]|\([^()]*(?:\([^()]*\))?[^()]*\))+, ("[^"]+")\)/g)).toEqual([
    'src/accounts/queries/invitations.ts: "invitation by hash"',
    'src/accounts/queries/invitations.ts: "invitation by hash"',
    'src/accounts/queries/keys.ts: "key by hash"',
    ...Array<string>(2).fill('src/accounts/queries/organizations.ts: "operator"'),
    'src/accounts/queries/organizations.ts: "bootstrap"',
    'src/accounts/queries/organizations.ts: "bootstrap"',
    'src/accounts/queries/organizations.ts: "operator"',
    ...Array<string>(3).fill('src/accounts/queries/people.ts: "person by e-mail"'),
    // People belong to no organisation: those who are in no other are deleted with it.
    ...Array<string>(3).fill('src/accounts/queries/people.ts: "operator"'),
    'src/accounts/queries/web-sessions.ts: "session by hash"',
    'src/accounts/queries/web-sessions.ts: "sign-in code by hash"',
    ...Array<string>(2).fill('src/backup/queries.ts: "operator"'),
    ...Array<string>(3).fill('src/billing/queries/price-lists.ts: "prices"'),
    'src/kernel/db/runs.ts: "operator"',
    'src/kernel/db/schema-level.ts: "operator"',
    'src/kernel/db/seals.ts: "operator"',
    'src/kernel/db/seals.ts: "operator"',
    'src/kernel/db/totals.ts: "operator"',
    'src/kernel/db/trainer-tokens.ts: "trainer token by hash"',
    'src/operator/queries.ts: "operator"',
    'src/retention/deletion-queries.ts: "operator"',
    'src/sharing/queries.ts: "report link by hash"',
    ...Array<string>(3).fill('src/telemetry/queries.ts: "operator"'),
    // A delivery names only the trigger that it is for.
    'src/triggers/queries.ts: "trigger by id"',
  ]);
  const calls = matchesIn(SOURCES, /\bunscoped\(/g).length;
  const declared = 1;
  expect(calls - declared).toBe(34);
});

test("the scope test covers every file with a function that takes a database", () => {
  const asked = read("test/kernel/db/scope.test.ts");
  const files = SOURCES.filter((file) =>
    /^export (?:async )?function \w+(?:<[^(]*>)?\(\s*database\b/m.test(read(file)),
  );
  const missing = files.filter(
    (file) => file !== "src/kernel/db/scoped.ts" && !asked.includes(`"${join("../../..", file)}"`),
  );
  expect(missing.map((file) => basename(file))).toEqual([]);
});
