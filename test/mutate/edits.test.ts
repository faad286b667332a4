/** The list of edits `npm run mutate` makes: what it says must be true of the sources as they stand. */
import { existsSync } from "node:fs";
import { join, matchesGlob } from "node:path";
import { expect, test } from "vitest";
import { applied, isCopied, staleEdit } from "./copied-tree.ts";
import { CUT_POINT_EDITS } from "./cut-point-edits.ts";
import { EDITS } from "./edits.ts";
import { isInWorkerd } from "./test-run.ts";
import inNode from "./vitest.config.ts";

const ROOT = join(import.meta.dirname, "../..");

test("there are at least thirty edits, over at least ten files of core", () => {
  expect(EDITS.length).toBeGreaterThanOrEqual(30);
  expect(new Set(EDITS.map(({ file }) => file)).size).toBeGreaterThanOrEqual(10);
});

test("every edit applies to the sources as they stand, once", () => {
  expect(staleEdit(EDITS)).toBeNull();
});

test("there are at least forty edits where something falls in between, over at least ten files of the runtime", () => {
  expect(CUT_POINT_EDITS.length).toBeGreaterThanOrEqual(40);
  const files = new Set(CUT_POINT_EDITS.map(({ file }) => file));
  expect([...files].filter((file) => !file.startsWith("src/runtime/"))).toEqual([]);
  expect(files.size).toBeGreaterThanOrEqual(10);
});

test("every edit puts one token in, takes one out, changes one, or lets two statements change places", () => {
  const tokens = (text: string) => text.match(/"[^"]*"|[\w.]+|[^\s\w]/g) ?? [];
  const wide = EDITS.filter((edit) => {
    const [before, after] = [tokens(edit.old), tokens(edit.new)];
    if (before.toSorted().join(" ") === after.toSorted().join(" ")) return false;
    const start = before.findIndex((token, at) => token !== after[at]);
    const tail = Math.min(before.length, after.length) - start;
    const same = before
      .slice(start)
      .reverse()
      .findIndex((token, at) => token !== after.at(-1 - at));
    const kept = same === -1 ? tail : Math.min(same, tail);
    return Math.max(before.length, after.length) - start - kept > 2;
  });
  expect(wide).toEqual([]);
});

test("the tests that must notice an edit exist", () => {
  const named = new Set(EDITS.flatMap(({ tests }) => tests));
  expect([...named].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test("the tests that must notice an edit are copied, and run where the edit is made", () => {
  const named = new Set(EDITS.flatMap(({ tests }) => tests));
  const run = (path: string) =>
    isInWorkerd(path) || (inNode.test?.include ?? []).some((glob) => matchesGlob(path, glob));
  expect([...named].filter((path) => !run(path) || !isCopied(path))).toEqual([]);
});

test("an edit whose text is gone, or stands twice, is stale and says so", () => {
  const edit = { file: "src/a.ts", old: "x < 1", new: "x < 2", tests: [] };
  expect(applied(edit, "if (x < 1) {}")).toBe("if (x < 2) {}");
  expect(() => applied(edit, "if (x > 1) {}")).toThrow(/stands not in src\/a.ts/);
  expect(() => applied(edit, "x < 1 || x < 1")).toThrow(/stands 2 times/);
});
