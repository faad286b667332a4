import { expect, test } from "vitest";
import * as z from "zod";
import { LIMITS } from "../../../src/contract/limits.ts";
import { dataset, fenced, SingleTurnEnv, textOf } from "../../../src/core/entry.ts";
import { Rubric } from "../../../src/core/rubrics/rubric.ts";
import { runRollout, scripted } from "../../../src/core/testing.ts";
import { hearing, said } from "../../fixtures/judge-hearing.ts";

function asking(fn: ConstructorParameters<typeof Rubric>[0]): Rubric {
  return new Rubric({ judges: ["default", "strict"], ...fn });
}

test("a function may request a label, a number, or the unparsed reply", async () => {
  const rubric = asking({
    rewards: {
      label: async ({ judge }) => ((await judge("label?", { labels: ["no", "yes"] })) === "yes" ? 1 : 0),
      number: ({ judge }) => judge("number?", { range: [0, 10] }),
      text: async ({ judge }) => (await judge("text?")).length,
    },
  });
  const heard = await hearing(rubric, ["a"], ({ messages }) => {
    const question = String(messages.at(-1)?.content);
    return question === "text?" ? "four" : said(question === "label?" ? "yes" : 7);
  });
  expect(["label", "number", "text"].map((name) => heard.scores(name)[0])).toEqual([1, 7, 4]);
});

test("an embedding model gets two texts unchanged, and its cosine is separate from a judgement on the same messages", async () => {
  const rubric = asking({
    rewards: { near: ({ judge }) => judge(["one", "two"], { judge: "strict", cosine: true }) },
    metrics: { said: async ({ judge }) => (await judge("one", { judge: "strict" })).length },
  });
  const heard = await hearing(rubric, ["a"], ({ menu }) => (menu.kind === "cosine" ? "[[3, 4], [4, 3]]" : "four"));
  expect(heard.asks.map(({ messages }) => messages.map(({ content }) => content))).toEqual([["one", "two"], ["one"]]);
  expect(heard.scores("near")).toEqual([expect.closeTo(0.96, 12)]);
});

test("a function whose question depends on a judgement runs again, and requests each judgement once", async () => {
  let runs = 0;
  const rubric = asking({
    rewards: {
      deep: async ({ judge }) => {
        runs += 1;
        const first = await judge("first");
        const second = await judge(`then ${first}`, { judge: "strict" });
        return second.length;
      },
    },
  });
  const heard = await hearing(rubric, ["a"], ({ judge, messages }) => `${judge} ${messages[0]?.content}`);
  expect(heard.asks.map(({ judge }) => judge)).toEqual(["default", "strict"]);
  expect(heard.scores("deep")).toEqual(["strict then default first".length]);
  expect(runs).toBe(3);
});

test("the questions of all functions and members are collected in one pass", async () => {
  const ask = ({
    judge,
    completion,
  }: {
    judge: (prompt: string) => Promise<string>;
    completion: readonly { content: unknown }[];
  }) => judge(String(completion[0]?.content)).then(() => 1);
  const { pending } = await hearing(asking({ rewards: { one: ask }, metrics: { two: ask } }), ["a", "b"]);
  expect(pending.map(({ rollout_id, messages }) => [rollout_id, messages[0]?.content])).toEqual([
    ["ro_0", "a"],
    ["ro_1", "b"],
  ]);
});

test("a failed judgement rejects, and a function may catch the rejection", async () => {
  const rubric = asking({
    rewards: { sure: ({ judge }) => judge("?", { range: [0, 1] }).catch(() => 0.5) },
    metrics: { unsure: ({ judge }) => judge("?", { range: [0, 1] }) },
  });
  const heard = await hearing(rubric, ["a"], () => "garbage");
  expect([heard.scores("sure"), heard.scores("unsure")]).toEqual([[0.5], [null]]);
  expect(heard.records[0]).toMatchObject({
    reward: 0.5,
    scoring_errors: [{ function: "unsure", retryable: true }],
  });
});

test("a judge that the rubric does not list is not called", async () => {
  const heard = await hearing(
    asking({ rewards: { f: ({ judge }) => judge("?", { judge: "nobody", range: [0, 1] }) } }),
    ["a"],
    () => expect.unreachable(),
  );
  expect(heard.records[0]).toMatchObject({
    unscored: "judge",
    scoring_errors: [{ error: expect.stringContaining('has no judge "nobody"') }],
  });
});

test("a function that asks a new question each time is stopped", async () => {
  let asked = 0;
  const rubric = asking({
    rewards: { f: ({ judge }) => judge(`${asked++}`, { range: [0, 1] }) },
  });
  const heard = await hearing(rubric, ["a"], () => said(1));
  expect(heard.records[0]?.scoring_errors[0]?.error).toContain("more than 64 judgements");
});

test("the same text with another pass, menu or sampling is another question", async () => {
  const rubric = asking({
    rewards: {
      f: async ({ judge }) => {
        const range = [0, 1] as const;
        const asks = [
          judge("?", { range }),
          judge("?", { range, pass: 1 }),
          judge("?", { range: [0, 2] }),
          judge("?", { range, sampling: { temperature: 0 } }),
        ];
        return (await Promise.all(asks)).length;
      },
    },
  });
  expect((await hearing(rubric, ["a"])).pending).toHaveLength(4);
});

test("the rubric options of an environment may ask judges by name, and its tests script them", async () => {
  const environment = new SingleTurnEnv({
    dataset: dataset(z.object({ question: z.string() }), [{ question: "q" }]),
    rubric: {
      judges: ["default", "strict"],
      rewards: {
        polite: async ({ judge, completion }) =>
          (await judge(fenced(textOf(completion.at(-1))), { labels: ["no", "yes"] })) === "yes",
        deep: ({ judge, question }) => judge(question, { judge: "strict", range: [0, 1] }),
      },
    },
  });
  const judge = { default: scripted([said("yes")]), strict: scripted([said(0.25)]) };
  const task = { question: "q" };
  const report = await runRollout(environment, { task, model: scripted(["Please."]), judge });
  expect(report).toMatchObject({ reward: 1.25, metrics: { polite: 1, deep: 0.25 } });
  const alone = await runRollout(environment, { task, model: scripted(["Please."]) });
  expect(alone.scoring_errors).toMatchObject([{ function: "polite" }, { function: "deep" }]);
});

test("a question that is too long is not sent, and its score is null with the limit in the error", async () => {
  const question = "q".repeat(LIMITS.askCharacters + 1);
  const rubric = asking({
    rewards: {
      long: async ({ judge }) => (await judge(question)).length,
      short: async ({ judge }) => (await judge("q")).length,
    },
  });
  const heard = await hearing(rubric, ["a"], () => "four");
  expect(heard.asks.map(({ messages }) => messages)).toEqual([[{ role: "user", content: "q" }]]);
  expect([heard.scores("long"), heard.scores("short")]).toEqual([[null], [4]]);
  expect(JSON.stringify(heard.records)).toContain(`the limit is ${LIMITS.askCharacters}`);
});

test("questions that are too large together are asked in several passes, each as large as allowed", async () => {
  const numbers = [0, 1, 2, 3, 4];
  const reward = (number: number) => [
    `s${number}`,
    async ({ judge }: { judge: (prompt: string) => Promise<string> }) =>
      (await judge(`${number}`.repeat(LIMITS.scoringGroupAskCharacters / 4))).length,
  ];
  const rubric = asking({ rewards: Object.fromEntries(numbers.map(reward)) });
  const heard = await hearing(rubric, ["a"], () => "four");
  expect(numbers.map((number) => heard.scores(`s${number}`)[0])).toEqual([4, 4, 4, 4, 4]);
  expect(heard.rounds).toEqual([4, 1]);
});
