/** Results of hooks that are too long or too many are kept within the storage limits. */
import { dataset, MultiTurnEnv } from "rollcall";
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { LIMITS } from "../../../src/contract/limits.ts";

const rows = dataset(z.object({ question: z.string() }), "uploaded");
const played = () => ({ task: { question: "q" }, model: scripted(["hello"]) });

test("if more cleanup handlers fail than are listed, the first are listed and the others counted", async () => {
  const broken = () => {
    throw new Error("b".repeat(1_000_000));
  };
  const names = Array.from({ length: 50 }, (_, at) => `handler_${String(at).padStart(2, "0")}`);
  const environment = new MultiTurnEnv({
    dataset: rows,
    maxTurns: 1,
    cleanup: Object.fromEntries(names.map((name) => [name, broken])),
    rubric: {},
  });
  const { cleanup_errors } = await runRollout(environment, played());
  expect(cleanup_errors[0]?.message).toMatch(/^cleanup handler_00: bbb.*… \[cut\]$/);
  expect(cleanup_errors.at(-1)?.message).toBe(`${50 - cleanup_errors.length + 1} more handlers failed`);
  expect(JSON.stringify(cleanup_errors).length).toBeLessThan(2 * LIMITS.errorListCharacters);
});

test("a thrown value without a text fails its rollout like any other", async () => {
  const environment = new MultiTurnEnv({
    dataset: rows,
    envResponse: () => {
      throw Object.create(null);
    },
    rubric: {},
  });
  const report = await runRollout(environment, played());
  expect(report.error).toMatchObject({
    error: "EnvError",
    message: "envResponse: no message (object)",
  });
});

test("the name of a stop condition has a maximal length, since it is stored with every rollout", () => {
  const long = "s".repeat(LIMITS.nameCharacters + 1);
  const stops = { [long]: () => false };
  expect(() => new MultiTurnEnv({ dataset: rows, stops, rubric: {} })).toThrow(
    `a name has at most ${LIMITS.nameCharacters} characters`,
  );
});
