import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeLines } from "../../src/cli/json-lines.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rollcall-lines-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

test("a file gets its name once it has every row; until then the old file stays", async () => {
  const file = join(folder, "rows.jsonl");
  writeFileSync(file, "before");
  const seen: unknown[] = [];
  const rows = async function* () {
    yield { row: 1 };
    seen.push(readFileSync(file, "utf8"), readdirSync(folder).toSorted());
    yield { row: 2 };
  };
  expect(await writeLines(rows(), file, "output")).toBe(2);
  expect(seen).toEqual(["before", ["rows.jsonl", "rows.jsonl.partial"]]);
  expect(readFileSync(file, "utf8")).toBe('{"row":1}\n{"row":2}\n');
  expect(readdirSync(folder)).toEqual(["rows.jsonl"]);
});

test("rows that break off leave no file that looks complete", async () => {
  const file = join(folder, "rows.jsonl");
  const rows = async function* () {
    yield { row: 1 };
    await Promise.reject(new Error("the platform has stopped"));
  };
  await expect(writeLines(rows(), file, "output")).rejects.toThrow("the platform has stopped");
  expect(readdirSync(folder)).toEqual(["rows.jsonl.partial"]);
});

test("a device is written directly", async () => {
  const rows = async function* () {
    yield { row: 1 };
  };
  expect(await writeLines(rows(), "/dev/null", "output")).toBe(1);
});
