/**
 * The install scripts that the lockfiles allow, and the sources of their packages. docs/security.md has the reason for
 * each.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as z from "zod";

const Lockfile = z.object({
  packages: z.record(
    z.string(),
    z.object({
      hasInstallScript: z.boolean().optional(),
      resolved: z.string().optional(),
      integrity: z.string().optional(),
      link: z.boolean().optional(),
      inBundle: z.boolean().optional(),
    }),
  ),
});
const installed = ["package-lock.json", "scripts/node/package-lock.json"].flatMap((file) => {
  const { packages } = Lockfile.parse(JSON.parse(readFileSync(file, "utf8")));
  return Object.entries(packages).filter(([path, { link }]) => path.includes("node_modules/") && !link);
});

test("only packages that docs/security.md names run a script when they are installed", () => {
  const scripts = installed.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path);
  expect(scripts.sort()).toEqual([
    "node_modules/@esbuild-kit/core-utils/node_modules/esbuild",
    "node_modules/drizzle-kit/node_modules/esbuild",
    "node_modules/esbuild",
    "node_modules/workerd",
  ]);
});

test("every package comes from npm's configured registry, and has a hash", () => {
  const others = installed.filter(
    ([, { resolved, integrity = "", inBundle }]) =>
      !inBundle && (resolved !== undefined || !integrity.startsWith("sha512-")),
  );
  expect(others.map(([path]) => path)).toEqual([]);
});
