/** The gate of docs/style.md, which finds phrases that are hard to read. */
import { expect, test } from "vitest";
import { findDialect } from "../../scripts/check-style.ts";

test("a phrase that the style guide forbids is found with its line, unless the line gives a reason", () => {
  const text = ["// Runs of before members have none.", "const a = 1;", 'say("as many as may"); // style-ok: quoted'];
  expect(findDialect("src/a.ts", text.join("\n"))).toEqual([
    "src/a.ts:1: of before  → say from when: runs created before 0.2",
  ]);
  expect(findDialect("src/a.ts", "for (const row of before) use(row);")).toEqual([]);
});
