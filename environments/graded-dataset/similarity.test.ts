/** The metrics of `text_similarity`: those of the texts alone, and the one with an embedding model. */
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import { loadEnvironment } from "./environment.ts";

const comparing = (evaluation_metric: string) =>
  loadEnvironment.load({
    graders: [
      {
        type: "text_similarity",
        name: "near",
        input: "{{ sample.output_text }}",
        reference: "{{ item.answer }}",
        evaluation_metric,
        pass_threshold: null,
      },
    ],
  });

test.each([
  ["fuzzy_match", "kitten", "sitting", 8 / 13],
  ["fuzzy_match", "this is a test", "this is a test!", 28 / 29],
  ["fuzzy_match", "", "", 1],
  ["rouge_1", "the cat sat", "the cat sat down", 6 / 7],
  ["rouge_2", "the cat sat", "the cat sat down", 4 / 5],
  ["rouge_l", "the cat sat", "the cat sat down", 6 / 7],
  ["bleu", "the cat sat on the mat", "the cat sat on the mat", 1],
  ["gleu", "the cat", "the cat", 1],
  ["meteor", "the cats sat", "the cat sat", 1 - 0.5 / 27],
])("text_similarity by %s of %j and %j", async (evaluation_metric, reply, answer, worth) => {
  const environment = await comparing(evaluation_metric);
  const task = { question: "?", answer };
  const { reward } = await runRollout(environment, { task, model: scripted([reply]) });
  expect(reward).toBeCloseTo(worth, 9);
});

test.each<[reply: string, answer: string, vectors: string | null, worth: number | null]>([
  ["a lion", "a tiger", "[[3, 4], [4, 3]]", 0.96],
  ["yes", "no", "[[1, 0], [-1, 0]]", 0],
  ["yes", "yes", "[[0.1, 0.7, 0.3], [0.1, 0.7, 0.3]]", 1],
  ["yes", "no", "[[1, 0], [0, 0]]", null],
  ["yes", "no", "[[1, 0], [1, 0, 0]]", null],
  ["yes", "no", "[[1, 0]]", null],
  // An embedding model refuses a blank text.
  [" ", "no", null, 0],
  [" ", "", null, 1],
])(
  "the cosine of %j and %j by the vectors %s of the judge named embedding is %s",
  async (reply, answer, vectors, worth) => {
    const environment = await comparing("cosine");
    expect(environment.rubric.judges).toEqual(["embedding"]);
    const asked: unknown[] = [];
    const { reward } = await runRollout(environment, {
      task: { question: "?", answer },
      model: scripted([reply]),
      judge: {
        embedding: ({ messages }) => {
          asked.push(messages);
          return vectors ?? expect.unreachable();
        },
      },
    });
    if (worth === null) expect(reward).toBeNull();
    else expect(reward).toBeCloseTo(worth, 9);
    const texts = [reply, answer].map((content) => ({ role: "user", content }));
    expect(asked).toEqual(vectors === null ? [] : [texts]);
  },
);
