import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { NoVerdictError } from "../../../packages/math-equivalence/budget.ts";
import { mathEqual } from "../../../packages/math-equivalence/equivalence.ts";

const README = join(import.meta.dirname, "../../../packages/math-equivalence/README.md");
const rows = [...readFileSync(README, "utf8").matchAll(/^\| `(.*?)` +\| `(.*?)` +\| `?(.*?)`? +\|/gm)].map((row) =>
  row.slice(1).map((cell) => cell.replaceAll("\\|", "|")),
);

function verdict(answer: string, target: string): string {
  try {
    return mathEqual(answer, target) ? "yes" : "no";
  } catch (thrown) {
    if (thrown instanceof NoVerdictError) return thrown.name;
    throw thrown;
  }
}

test("every row of the README's table is decided as it says", () => {
  expect(rows.length).toBeGreaterThan(15);
  expect(rows.map(([answer = "", target = ""]) => [answer, target, verdict(answer, target)])).toEqual(rows);
});
