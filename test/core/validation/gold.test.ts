import { dataset, EnvGroup, MaybeThinkParser, SingleTurnEnv, ThinkParser, ToolEnv, tool, XMLParser } from "rollcall";
import { expect, test } from "vitest";
import * as z from "zod";
import type { GoldPolicy } from "../../../src/core/validation/policies.ts";
import { checksOf, rows, said, Task } from "./validated.ts";

test("a right answer below 1 is an error, and with tools or turns a warning", async () => {
  const rubric = { rewards: { half: { weight: 0.5, fn: said } } };
  const single = await checksOf(() => new SingleTurnEnv({ dataset: rows, rubric }));
  expect(single["gold"]).toEqual([
    "error",
    "row 0, gold play: the reward is 0.5, below 1 (and 1 more); correct the rubric, or the row's answer, " +
      "or export goldPolicy(task) that answers in the form the rubric expects",
  ]);
  const ping = tool({
    name: "ping",
    description: "Ping.",
    parameters: z.object({}),
    run: () => "",
  });
  const tools = await checksOf(() => new ToolEnv({ dataset: rows, tools: [ping], rubric }));
  expect(tools["gold"]?.[0]).toBe("warning");
  const gold: GoldPolicy = () => ["nothing"];
  const exported = await checksOf(() => new ToolEnv({ dataset: rows, tools: [ping], rubric }), {
    gold,
  });
  expect(exported["gold"]?.[0]).toBe("error");
});

test.each([
  ["as it is", "2"],
  ["boxed", "\\boxed{2}"],
  ["after ####", "#### 2"],
])("an answer that is expected %s is found", async (_form, expected) => {
  const one = dataset(Task, [{ question: "1 + 1?", answer: "2" }]);
  const rewards = {
    right: ({ completion }: { completion: readonly { content: unknown }[] }) => completion.at(-1)?.content === expected,
  };
  const checks = await checksOf(() => new SingleTurnEnv({ dataset: one, rubric: { rewards } }));
  expect(checks["gold"]).toEqual(["ok", "every gold play scores 1 or more"]);
});

test.each([
  ["an XMLParser", new XMLParser(["think", "answer"])],
  ["a ThinkParser", new ThinkParser()],
  ["a MaybeThinkParser", new MaybeThinkParser()],
])("an answer that %s finds is found", async (_name, parser) => {
  const checks = await checksOf(
    () =>
      new SingleTurnEnv({
        dataset: rows,
        parser,
        rubric: {
          rewards: { right: (said) => said.parser.parseAnswer(said.completion) === said.answer },
        },
      }),
  );
  expect(checks["gold"]?.[0]).toBe("ok");
});

test("a gold policy that throws is an error of the rollouts", async () => {
  const gold: GoldPolicy = () => {
    throw new Error("no such key");
  };
  const checks = await checksOf(() => new SingleTurnEnv({ dataset: rows, rubric: { rewards: { said } } }), { gold });
  expect(checks["rollouts"]).toEqual(["error", "row 0, gold play: no such key (and 1 more)"]);
});

test("the error for a gold policy that returns neither replies nor a model names what to return", async () => {
  // A module without types might return this.
  const gold: GoldPolicy = () => Object(Promise.resolve(["2"]));
  const checks = await checksOf(() => new SingleTurnEnv({ dataset: rows, rubric: { rewards: { said } } }), { gold });
  expect(checks["rollouts"]?.[1]).toContain("goldPolicy returned [object Promise]: return a list of replies");
});

test("a group is validated through its members: each row is played by its own environment", async () => {
  const single = () => new SingleTurnEnv({ dataset: rows, rubric: { rewards: { said } } });
  const ping = tool({
    name: "ping",
    description: "Ping.",
    parameters: z.object({}),
    run: () => "",
  });
  const tools = () => new ToolEnv({ dataset: rows, tools: [ping], rubric: { rewards: { said } } });
  const checks = await checksOf(() => new EnvGroup({ single: single(), tools: tools() }));
  expect(checks["rows"]).toEqual(["ok", "4 fit the schema and are JSON"]);
  expect(checks["tools"]).toEqual(["ok", "described: ping"]);
  for (const name of ["reset", "rollouts", "restarts", "rewards", "variety", "gold"]) {
    expect([name, checks[name]?.[0]]).toEqual([name, "ok"]);
  }
});

test("a failing teardown is an error, and without a failure there is no check", async () => {
  const teardown = {
    close: () => {
      throw new Error("still busy");
    },
  };
  const rubric = { rewards: { said }, teardown };
  const checks = await checksOf(() => new SingleTurnEnv({ dataset: rows, rubric }));
  expect(checks["teardown"]).toEqual(["error", "teardown close: still busy (and 1 more)"]);
  const rest = await checksOf(() => new SingleTurnEnv({ dataset: rows, rubric: { rewards: { said } } }));
  expect(rest["teardown"]).toBeUndefined();
});
