/** The example rows. They are read from disk, so this runs in Node only. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { loadEnvironment } from "./environment.ts";

const Row = z.object({ question: z.string(), answer: z.string() });

test("every solution of the examples scores 1, and the next row's scores 0", async () => {
  const lines = readFileSync(join(import.meta.dirname, "examples.jsonl"), "utf8")
    .trim()
    .split("\n");
  const rows = lines.map((line) => Row.parse(JSON.parse(line)));
  expect(rows).toHaveLength(12);
  const environment = await loadEnvironment();
  for (const [at, task] of rows.entries()) {
    const other = rows[(at + 1) % rows.length] ?? task;
    const rewards = [task.answer, other.answer].map(async (reply) => {
      return (await runRollout(environment, { task, model: scripted([reply]) })).reward;
    });
    expect(await Promise.all(rewards)).toEqual([1, 0]);
  }
});
