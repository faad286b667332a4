/** The example rows. They are read from disk, so this runs in Node only. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import { loadEnvironment } from "./environment.ts";

test("exactly one letter is right for each of the examples", async () => {
  const lines = readFileSync(join(import.meta.dirname, "examples.jsonl"), "utf8")
    .trim()
    .split("\n");
  expect(lines).toHaveLength(6);
  const environment = await loadEnvironment.load({ style: "gpqa" });
  for (const line of lines) {
    const rewards = Array.from("ABCDE", async (letter) => {
      const model = scripted([`The answer is (${letter}).`]);
      return (await runRollout(environment, { task: JSON.parse(line), model })).reward ?? 0;
    });
    expect(
      (await Promise.all(rewards)).reduce((sum, reward) => sum + reward, 0),
      line,
    ).toBe(1);
  }
});
