import { globSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import * as entry from "../../src/wire.ts";

const FOLDER = join(import.meta.dirname, "../../src");

test("rollcall/contract exports every schema of the contract, of accounts and of billing that the OpenAPI document names", async () => {
  const modules = globSync(["contract/*.ts", "{accounts,billing}/wire.ts"], { cwd: FOLDER });
  const named = new Map<string, unknown>();
  for (const file of modules) {
    const exported: Record<string, unknown> = await import(join(FOLDER, file));
    for (const [name, value] of Object.entries(exported)) {
      if (value instanceof z.ZodType && value.meta()?.id !== undefined) named.set(name, value);
    }
  }
  expect(named.size).toBeGreaterThan(100);
  expect(Object.fromEntries([...named.keys()].map((name) => [name, Reflect.get(entry, name)]))).toEqual(
    Object.fromEntries(named),
  );
});
