/** The questions that judges were asked, built again from the stored turns. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { JudgeQuestionList } from "../../../src/contract/turns.ts";
import { judgement, registerEssays, topics } from "../essays.ts";
import { segmentLines } from "../hand-made.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { registerTestEnvironments } from "../registered.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
  registerEssays();
  registerTestEnvironments();
});

async function questionsOf(id: string) {
  const reply = await platform.ask(`/v1/rollouts/${id}/questions`);
  expect(reply.status).toBe(200);
  return JudgeQuestionList.parse(await reply.json()).data;
}

const textsOf = ({ messages }: Awaited<ReturnType<typeof questionsOf>>[number]) =>
  messages?.map(({ role, content }) => `${role}: ${content.map(({ text }) => text).join()}`) ?? null;

test("the questions of a rollout are those that its judges were sent, also after its turns were moved", async () => {
  const judge = script([judgement("good")]);
  const target = { endpoint: { base_url: env.MODEL_URL }, model: judge };
  const { id: run } = await platform.finish({
    ...{ environment: "essays", environment_args: { strict: true }, dataset: topics(1) },
    model: script(["A short essay."]),
    judges: { default: target, strict: target },
  });
  const id = rolloutAt(run);
  const { judgements } = await platform.rollout(id);
  const questions = await questionsOf(id);
  expect(questions.map(({ key, judge: name }) => [key, name])).toEqual(
    judgements.map(({ key, judge: name }) => [key, name]),
  );
  expect(questions.map(({ judge: name }) => name).sort()).toEqual(["default", "strict"]);
  expect(questions.map(({ reply }) => reply)).toEqual([judgement("good"), judgement("good")]);
  const [quality] = questions.filter(({ judge: name }) => name === "default");
  expect(quality && textsOf(quality)?.join()).toMatch(/user: Topic: Topic 0\nEssay:\n```\nA short essay\.\n```/);
  const before = (await requestsOf(judge)).length;
  await segmentLines(platform, run);
  expect(await questionsOf(id)).toEqual(questions);
  expect((await requestsOf(judge)).length).toBe(before);
});

test("the question about a group is shown with the rollout that has its judgement", async () => {
  const judge = script([], {}, { ranks: true });
  const { id: run } = await platform.finish({
    ...{ environment: "ranked-essays", dataset: topics(1), rollouts_per_example: 3 },
    model: script([], {}, { slots: ["aa", "aaaa", "a"] }),
    judges: { default: { endpoint: { base_url: env.MODEL_URL }, model: judge } },
  });
  const all = (await Promise.all([0, 1, 2].map((slot) => questionsOf(rolloutAt(run, 0, slot))))).flat();
  expect(all).toHaveLength(2);
  for (const question of all) expect(textsOf(question)?.join()).toContain("aaaa");
});

test("a rollout without judges has no questions", async () => {
  const { id: run } = await platform.finish({
    ...{ environment: "short", model: script(["yes"]), num_examples: 1 },
  });
  expect(await questionsOf(rolloutAt(run))).toEqual([]);
});
