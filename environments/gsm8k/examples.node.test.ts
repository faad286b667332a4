/** Whole files of rows. They are read from disk, so these tests run in Node only. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { loadEnvironment } from "./environment.ts";

const Row = z.object({ question: z.string(), answer: z.string() });
const handWritten = join(import.meta.dirname, "examples.jsonl");
/** The path of the original test set, if it is available. */
const original = process.env["GSM8K_TEST"];

function rowsOf(file: string) {
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line.trim() !== "").map((line) => Row.parse(JSON.parse(line)));
}

/** Increases the final number by one; the right one still occurs earlier in the text. */
function spoil(solution: string): string {
  const at = solution.lastIndexOf("####");
  const right = Number(solution.slice(at + 4).replaceAll(",", ""));
  return `${solution.slice(0, at)}#### ${right + 1}`;
}

async function rewardsOf(rows: z.infer<typeof Row>[], reply: (solution: string) => string) {
  const environment = await loadEnvironment();
  const rewards: (number | null)[] = [];
  for (const task of rows) {
    const model = scripted([reply(task.answer)]);
    rewards.push((await runRollout(environment, { task, model })).reward);
  }
  return new Set(rewards);
}

test("every hand-written reference solution scores 1, and every altered one 0", async () => {
  const rows = rowsOf(handWritten);
  expect(rows).toHaveLength(12);
  expect(await rewardsOf(rows, (solution) => solution)).toEqual(new Set([1]));
  expect(await rewardsOf(rows, spoil)).toEqual(new Set([0]));
});

test.skipIf(original === undefined)("so does every row of the original test set", async () => {
  const rows = rowsOf(original ?? "");
  expect(rows).toHaveLength(1319);
  expect(await rewardsOf(rows, (solution) => solution)).toEqual(new Set([1]));
  expect(await rewardsOf(rows, spoil)).toEqual(new Set([0]));
});
