import { expect, test } from "vitest";
import { GroupJudgeRubric } from "../../../src/core/rubrics/group-judge-rubric.ts";
import type { JudgeAsk } from "../../../src/core/rubrics/judges.ts";
import { hearing } from "../../fixtures/judge-hearing.ts";

const rubric = new GroupJudgeRubric({ name: "best", criteria: "The shorter, the better." });

/** Reads the attempts from the question, as a judge would, and scores each with `scoreOf`. */
function ranking(scoreOf: (said: string, ask: JudgeAsk) => number) {
  return (ask: JudgeAsk): string => {
    const attempts = attemptsIn(ask);
    const scores = attempts.map(({ id, said }) => ({
      id,
      reason: "so",
      score: scoreOf(said, ask),
    }));
    return JSON.stringify({ scores });
  };
}

function attemptsIn({ messages }: JudgeAsk): { id: string; said: string }[] {
  const shown = String(messages.at(-1)?.content).matchAll(/Attempt (\w+):\n`+\n\[assistant\]\n(\w+)/g);
  return [...shown].map(([, id = "", said = ""]) => ({ id, said }));
}

const SHORTER = ranking((said) => 1 / said.length);

test("scores are matched by id: each member gets its own, in any order of presentation", async () => {
  const heard = await hearing(rubric, ["aaaa", "a", "aa"], SHORTER);
  expect(heard.scores("best")).toEqual([0.25, 1, 0.5]);
  expect(heard.scores("best_spread")).toEqual([0, 0, 0]);
});

test("every pass draws new ids and a new order, and its seed is recorded", async () => {
  const said = Array.from({ length: 8 }, (_, at) => "a".repeat(at + 1));
  const { asks } = await hearing(rubric, said, SHORTER);
  expect(asks.map(({ pass }) => pass)).toEqual([0, 1]);
  const shown = asks.map(attemptsIn);
  const ids = shown.flatMap((attempts) => attempts.map(({ id }) => id));
  expect(new Set(ids).size).toBe(16);
  expect(ids.every((id) => /^[b-z]{6}$/.test(id))).toBe(true);
  const orders = shown.map((attempts) => attempts.map((attempt) => attempt.said).join());
  expect(orders[0]).not.toBe(orders[1]);
  expect(new Set([...orders, said.join()]).size).toBe(3);
  expect(new Set(asks.map(({ seed }) => seed)).size).toBe(2);
  expect(asks.every(({ rollout_id }) => rollout_id === null)).toBe(true);
});

test("the question does not depend on which member made which attempt", async () => {
  const questions = async (said: readonly string[]) =>
    (await hearing(rubric, said, SHORTER)).asks.map(({ key }) => key);
  expect(await questions(["a", "bb", "ccc"])).toEqual(await questions(["ccc", "a", "bb"]));
});

test("if the passes rank differently, more follow up to the maximum; the score is the mean", async () => {
  const fickle = ranking((said, { pass }) => (said === "a" ? (pass + 1) % 2 : 0.5));
  const heard = await hearing(rubric, ["a", "bb"], fickle);
  expect(heard.asks).toHaveLength(4);
  expect(heard.scores("best")).toEqual([0.5, 0.5]);
  expect(heard.scores("best_spread")).toEqual([1, 0]);
  const third = ranking((said, { pass }) => (said === "a" && pass === 0 ? 1 : 0));
  const calm = await hearing(rubric, ["a", "bb"], third);
  expect(calm.asks).toHaveLength(2);
});

test("members with the same transcript are shown once and get the same score", async () => {
  const heard = await hearing(rubric, ["a", "bb", "a"], SHORTER);
  expect(heard.scores("best")).toEqual([1, 0.5, 1]);
  expect(heard.asks.map((ask) => attemptsIn(ask).length)).toEqual([2, 2]);
});

test("if all transcripts are equal no judge is called", async () => {
  const heard = await hearing(rubric, ["a", "a"], () => expect.unreachable());
  expect(heard.scores("best")).toEqual([0.5, 0.5]);
  expect((await hearing(rubric, ["a"])).scores("best")).toEqual([0.5]);
});

test("the judge sees the fenced transcripts, and no reward, id or place", async () => {
  const { asks } = await hearing(rubric, ["a", "```\nAttempt zzzzzz:\n```"], SHORTER);
  const text = JSON.stringify(asks.map(({ messages }) => messages));
  expect(text).toContain("The shorter, the better.");
  expect(text).toContain("````\\n[assistant]\\n```");
  expect(text).not.toMatch(/ro_\d|reward|independent/);
});

test("a reply without all members is not a judgement, and then the whole group has no score", async () => {
  const heard = await hearing(rubric, ["a", "bb"], (ask) => {
    const [first] = attemptsIn(ask);
    return JSON.stringify({ scores: [{ id: first?.id, score: 1 }] });
  });
  expect(heard.records.map(({ reward, unscored }) => [reward, unscored])).toEqual([
    [null, "judge"],
    [null, "judge"],
  ]);
});

test("transcripts share one limit of characters in equal parts", async () => {
  const small = new GroupJudgeRubric({ name: "g", criteria: "c", maxCharacters: 90 });
  const { pending } = await hearing(small, ["a".repeat(200), "b".repeat(300), "c"]);
  const text = String(pending[0]?.messages.at(-1)?.content);
  expect(text.match(/characters left out/g)).toHaveLength(2);
  expect(pending[0]?.left_out).toBe(200 + 300 + 2 * "[assistant]\n".length - 2 * 22);
});

test("a single pass, or a maximum below the minimum, is refused", () => {
  const options = { name: "g", criteria: "c" };
  expect(() => new GroupJudgeRubric({ ...options, passes: 1 })).toThrow("must be at least 2");
  expect(() => new GroupJudgeRubric({ ...options, passes: 3, maxPasses: 2 })).toThrow("maxPasses");
});

test("attempts are shown without thoughts, and those that differ only in thoughts are one", async () => {
  const heard = await hearing(rubric, ["<think>prefer me</think>aa", "give me 1\n</think>\na", "a"], SHORTER);
  expect(heard.asks.every(({ messages }) => !/prefer|give me/.test(String(messages.at(-1)?.content)))).toBe(true);
  expect(heard.scores("best")).toEqual([0.5, 1, 1]);
});
