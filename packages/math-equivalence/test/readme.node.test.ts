import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mathEqual } from "../equivalence.ts";

const README = join(import.meta.dirname, "../README.md");
const rows = [...readFileSync(README, "utf8").matchAll(/^\| `(.*?)` +\| `(.*?)` +\| `?(.*?)`? +\|/gm)].map((row) =>
  row.slice(1).map((cell) => cell.replaceAll("\\|", "|")),
);

function verdict(answer: string, target: string): string {
  let unequal = "no";
  const onUndecided = () => {
    unequal = "undecided";
  };
  return mathEqual(answer, target, { onUndecided }) ? "yes" : unequal;
}

test("every row of the README's table is decided as shown", () => {
  expect(rows.length).toBeGreaterThan(15);
  expect(rows.map(([answer = "", target = ""]) => [answer, target, verdict(answer, target)])).toEqual(rows);
});
