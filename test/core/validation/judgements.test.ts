import { dataset, defineEnvironment, GroupJudgeRubric, JudgeRubric, Rubric, SingleTurnEnv } from "rollcall";
import { expect, test } from "vitest";
import * as z from "zod";
import { loadEnvironment as judgedQa } from "../../../environments/judged-qa/environment.ts";
import type { RubricOptions } from "../../../src/core/rubrics/rubric.ts";
import type { PlayedJudgement } from "../../../src/core/validation/judgements.ts";
import { named, rows, said, Task, validated } from "./validated.ts";

type Rubrics = ConstructorParameters<typeof SingleTurnEnv>[0]["rubric"];

async function judged(rubric: Rubrics) {
  const build = () => new SingleTurnEnv({ dataset: rows, rubric });
  const found = await validated(defineEnvironment({ args: z.strictObject({}), build }));
  return { ...found, said: named(found.checks), given: rewardsOf(found.judgements) };
}

function rewardsOf(judgements: readonly PlayedJudgement[]) {
  return judgements.map(({ judge, judgement, reward }) => [judge, judgement, reward]);
}

test("gold plays are judged as well as possible and others as badly, and each label has its reward", async () => {
  const uploaded = [{ question: "Who wrote Frankenstein?", answer: "Mary Shelley" }];
  for (const passes of [1, 3]) {
    const build = () => judgedQa({ passes });
    const found = await validated(defineEnvironment({ args: z.strictObject({}), build }), { uploaded });
    expect(found).toMatchObject({ result: "ready", ok: true, rewards: { least: 0, most: 1 }, deterministic: true });
    expect(found.policies).toMatchObject({ gold: { mean: 1, n: 1 }, null: { mean: 0, n: 1 }, echo: { mean: 0, n: 1 } });
    expect(rewardsOf(found.judgements)).toEqual([
      ["default", "wrong", 0],
      ["default", "partial", 0.5],
      ["default", "right", 1],
    ]);
    expect(named(found.checks)).toMatchObject({
      gold: ["ok", "every gold play scores 1 or more"],
      judges: ["ok", "asked: default"],
      judgements: ["ok", "3 judgements were played"],
      unjudged: ["ok", "without a judgement there is no score"],
    });
  }
});

test("labels whose best one is listed first are played by their rewards, not by their order", async () => {
  const choices = { good: 1, bad: 0 };
  const { result, policies } = await judged(new JudgeRubric({ name: "kind", prompt: "{response}", choices }));
  expect([result, policies.gold.mean, policies.null.mean]).toEqual(["ready", 1, 0]);
});

test("each judgement of two judges has the best reward that the other one allows", async () => {
  const { result, given, policies } = await judged([
    new JudgeRubric({ name: "right", judge: "strict", prompt: "{response}", choices: { no: 0, yes: 1 }, weight: 0.75 }),
    new Rubric({
      judges: ["style"],
      rewards: {
        style: {
          weight: 0.25,
          fn: async ({ judge }) => (await judge("How?", { judge: "style", range: [0, 10] })) / 10,
        },
      },
    }),
  ]);
  expect([result, policies.gold.mean, policies.null.mean]).toEqual(["ready", 1, 0]);
  expect(given).toEqual([
    ["strict", "no", 0.25],
    ["strict", "yes", 1],
    ["style", "0", 0.75],
    ["style", "5", 0.875],
    ["style", "10", 1],
  ]);
});

test("a judge that changes the reward only together with others is not without effect", async () => {
  const { result, policies } = await judged({
    judges: ["default"],
    rewards: {
      majority: async ({ judge }) => {
        const asked = ["One?", "Two?", "Three?"].map((prompt) => judge(prompt, { labels: ["no", "yes"] }));
        return (await Promise.all(asked)).filter((label) => label === "yes").length >= 2;
      },
    },
  });
  expect([result, policies.gold.mean, policies.null.mean]).toEqual(["ready", 1, 0]);
});

test("a question that follows another judgement is played, too", async () => {
  const { result, given } = await judged({
    judges: ["default"],
    rewards: {
      twice: async ({ judge }) => {
        if ((await judge("Is it right?", { labels: ["no", "yes"] })) === "no") return 0;
        return (await judge("Is it polite?", { labels: ["rude", "polite"] })) === "polite" ? 1 : 0.5;
      },
    },
  });
  expect(result).toBe("ready");
  expect(given).toEqual([
    ["default", "no", 0],
    ["default", "yes", 1],
    ["default", "rude", 0.5],
    ["default", "polite", 1],
  ]);
});

const grade = (reply: string): number => {
  const score = { "GRADE: C": 1, "GRADE: P": 0.5, "GRADE: I": 0 }[reply];
  if (score === undefined) throw new Error(`no grade in ${JSON.stringify(reply)}`);
  return score;
};

function grading(more: Partial<Pick<RubricOptions, "judgements">> = {}): RubricOptions {
  return { judges: ["default"], ...more, rewards: { graded: async ({ judge }) => grade(await judge("Grade it.")) } };
}

test("replies that the environment reads itself are played if it declares them", async () => {
  const { result, given, policies } = await judged(grading({ judgements: { default: ["GRADE: I", "GRADE: C"] } }));
  expect([result, policies.gold.mean, policies.null.mean]).toEqual(["ready", 1, 0]);
  expect(given).toEqual([
    ["default", "GRADE: I", 0],
    ["default", "GRADE: C", 1],
  ]);
});

test("without a declaration usual words are tried, their errors prove nothing, and the result is never ready", async () => {
  const { result, ok, said: checks } = await judged(grading());
  expect([result, ok, checks["rewards"]?.[0], checks["gold"]?.[0]]).toEqual(["unchecked", true, "ok", "unchecked"]);
  const advice =
    "the environment reads the replies of the judge default itself: declare them in the rubric's judgements";
  expect(checks["judges"]).toEqual(["unchecked", advice]);
  const found = await judged({
    judges: ["default"],
    rewards: { right: async ({ judge }) => (await judge("Is it right?")) === "yes", said },
  });
  expect([found.result, found.policies.gold.mean, found.policies.null.mean]).toEqual(["unchecked", 2, 0]);
});

test("a declared judgement without which the function would give a score is named with its error", async () => {
  const { result, said } = await judged(grading({ judgements: { default: ["GRADE: I", "GRADE: X", "GRADE: C"] } }));
  expect(result).toBe("faulty");
  expect(said["judgements"]).toEqual([
    "error",
    expect.stringMatching(/^the judgement "GRADE: X" of the judge default: graded: .*no grade in "GRADE: X"$/),
  ]);
  expect(said["rewards"]?.[0]).toBe("ok");
});

test("a judge whose judgement no score depends on is an error, and one of a metric is not", async () => {
  const ask: Rubrics = {
    judges: ["default"],
    rewards: { said },
    metrics: { polite: async ({ judge }) => ((await judge("Polite?", { labels: ["no", "yes"] })) === "yes" ? 1 : 0) },
  };
  expect((await judged(ask)).result).toBe("ready");
  const ignored = await judged({
    judges: ["default"],
    rewards: {
      right: async ({ judge, completion, answer }) => {
        await judge("Right?", { labels: ["no", "yes"] });
        return said({ completion, answer });
      },
    },
  });
  expect(ignored.said["judgements"]).toEqual(["error", "no judgement of the judge default (no | yes) changes a score"]);
});

test("without a gold play nothing shows that a judgement has no effect", async () => {
  const bare = dataset(Task, [{ question: "Sing.", answer: "" }]);
  const rubric: RubricOptions = {
    judges: ["default"],
    rewards: {
      sung: async ({ judge, completion }) => {
        const label = await judge("Well?", { labels: ["no", "yes"] });
        return completion.at(-1)?.content === "la la" && label === "yes";
      },
    },
  };
  const found = await validated(
    defineEnvironment({ args: z.strictObject({}), build: () => new SingleTurnEnv({ dataset: bare, rubric }) }),
  );
  const why = "no judgement of the judge default (no | yes) changes a score, and no gold play shows that it would";
  expect(named(found.checks)).toMatchObject({ judges: ["unchecked", why], judgements: ["ok", expect.any(String)] });
  expect([found.result, found.ok]).toEqual(["unchecked", true]);
});

test("a judge that is never asked could not be checked", async () => {
  const { result, said: checks } = await judged({ judges: ["default"], rewards: { said } });
  expect([result, checks["judges"], checks["judgements"]]).toEqual([
    "unchecked",
    ["unchecked", "the judge default was never asked"],
    ["skipped", "no judge was asked"],
  ]);
});

test("a function that scores a reply without a judgement is warned of", async () => {
  const { result, said: checks } = await judged({
    judges: ["default"],
    rewards: { right: ({ judge }) => judge("Right?", { range: [0, 1] }).catch(() => 0) },
  });
  expect(result).toBe("ready");
  expect(checks["unjudged"]).toEqual([
    "warning",
    "a reply of the judge default without a judgement has the reward 0; a function must not catch the error of a judge",
  ]);
});

test("a group judge compares the plays of a row", async () => {
  const {
    result,
    said: checks,
    given,
    policies,
  } = await judged(new GroupJudgeRubric({ name: "best", criteria: "The right number." }));
  expect([result, policies.gold.mean, policies.null.mean]).toEqual(["ready", 1, 0]);
  expect(checks["variety"]).toEqual(["ok", "rewards go from 0 to 1"]);
  expect(given).toContainEqual(["default", "0.5 for all", expect.any(Number)]);
});

test("of many labels some are played, and the rest could not be checked", async () => {
  const labels = Array.from({ length: 50 }, (_, at) => `label ${at}`);
  const {
    result,
    given,
    policies,
    said: checks,
  } = await judged({
    judges: ["default"],
    rewards: { index: async ({ judge }) => labels.indexOf(await judge("Which?", { labels })) / 49 },
  });
  expect([result, policies.gold.mean, policies.null.mean]).toEqual(["unchecked", 1, 0]);
  expect(given).toHaveLength(30);
  expect(given.at(-1)).toEqual(["default", "label 49", 1]);
  const why = "it asks more questions, or has more judgements, than a validation plays";
  expect(checks["judges"]).toEqual(["unchecked", why]);
});

test("many questions are played on the first rows, and the other rows with the best and the worst judgements", async () => {
  const questions = Array.from({ length: 6 }, (_, at) => `Question ${at}?`);
  const { result, given, policies } = await judged({
    judges: ["default"],
    rewards: {
      mean: async ({ judge }) => {
        const labels = await Promise.all(questions.map((prompt) => judge(prompt, { labels: ["no", "yes"] })));
        return labels.filter((label) => label === "yes").length / questions.length;
      },
    },
  });
  expect([result, policies.gold, policies.null]).toEqual(["ready", { mean: 1, n: 2 }, { mean: 0, n: 2 }]);
  expect(given).toHaveLength(12);
});

test("a function that asks another question each time ends, and could not be checked", async () => {
  let asked = 0;
  const { result, said: checks } = await judged({
    judges: ["default"],
    rewards: {
      restless: ({ judge }) => {
        asked += 1;
        return judge(`Question ${asked}?`, { range: [0, 1] });
      },
    },
  });
  expect([result, checks["judges"]?.[0], checks["rewards"]?.[0]]).toEqual(["faulty", "unchecked", "error"]);
});

test.each([
  [{ strict: ["yes"] }, "judgements.strict: the rubric has no such judge"],
  [{ default: [] }, "judgements.default: must be a list of 1 to 20 replies"],
  [{ default: ["yes", " "] }, "judgements.default: each reply must be a text of 1 to 32768 characters"],
])("the declaration %j is refused with the reason", (judgements, why) => {
  expect(() => new Rubric({ judges: ["default"], judgements })).toThrow(why);
});
