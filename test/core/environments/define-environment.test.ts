import { dataset, defineEnvironment, MultiTurnEnv } from "rollcall";
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";

const load = defineEnvironment({
  args: z.strictObject({ turns: z.int().positive().default(1) }),
  needs: ["secret:WORD"],
  build: ({ turns }) =>
    new MultiTurnEnv({
      dataset: dataset(z.object({ question: z.string() }), "uploaded"),
      setupState: (_state, { secret }) => ({ letters: secret("WORD").length }),
      envResponse: () => "go on",
      maxTurns: turns,
      rubric: { rewards: { letters: ({ state }) => state.letters } },
    }),
});

test("a loader fills in defaults and has the schema and needs", async () => {
  expect((await load()).players[0]?.maxTurns).toBe(1);
  expect((await load({ turns: 4 })).players[0]?.maxTurns).toBe(4);
  expect(load.needs).toEqual(["secret:WORD"]);
  expect(z.toJSONSchema(load.args).properties).toHaveProperty("turns");
});

test("bad arguments are a ZodError with the field", async () => {
  const refused = await load.load({ turns: 0, turn: 1 }).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(z.ZodError);
  expect(JSON.stringify(refused)).toContain("turns");
  await expect(load.load(7)).rejects.toBeInstanceOf(z.ZodError);
});

test("a rollout gets the declared needs", async () => {
  const capabilities = { secret: (name: string) => (name === "WORD" ? "ab" : "") };
  const options = { task: { question: "q" }, model: scripted(["a"]), capabilities };
  expect((await runRollout(await load(), options)).reward).toBe(2);
});
