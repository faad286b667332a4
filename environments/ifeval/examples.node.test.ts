/** The example rows. They are read from disk, so this runs in Node only. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import { loadEnvironment } from "./environment.ts";

const REPLIES = [
  "The boats lie side by side in the calm water of the harbour while gulls sit on every pole and wait for fish.",
  "* A rope\n* A knife\n* A map",
  "<<The Sea>>\nIt is wide.\n***\nIt is deep.",
  "Ein Leuchtturm ist ein Turm an der Küste und zeigt den Schiffen den Weg.",
  '{"depth": 12}',
  "ships float because they push away water that weighs more than they do.",
];

test("a good reply to each of the examples scores 1, and that to the next one 0", async () => {
  const lines = readFileSync(join(import.meta.dirname, "examples.jsonl"), "utf8")
    .trim()
    .split("\n");
  expect(lines).toHaveLength(REPLIES.length);
  const environment = await loadEnvironment();
  for (const [at, line] of lines.entries()) {
    const rewards = [at, (at + 1) % REPLIES.length].map(async (which) => {
      const model = scripted([REPLIES[which] ?? ""]);
      return (await runRollout(environment, { task: JSON.parse(line), model })).reward;
    });
    expect(await Promise.all(rewards), line).toEqual([1, 0]);
  }
});
