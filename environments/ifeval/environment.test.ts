import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { loadEnvironment } from "./environment.ts";
import { INSTRUCTION_IDS } from "./instructions.ts";

const task = {
  key: 7,
  prompt: "Describe a harbour in at least 5 words, without commas.",
  instruction_id_list: ["length_constraints:number_words", "punctuation:no_comma"],
  kwargs: [
    { num_words: 5, relation: "at least", keywords: null },
    { num_words: null, relation: null },
  ],
};

async function scoresFor(reply: string, row: object = task) {
  const environment = await loadEnvironment();
  const { reward, metrics } = await runRollout(environment, { task: row, model: scripted([reply]) });
  return { reward, ...metrics };
}

test("there are 25 kinds of instructions", () => {
  expect(INSTRUCTION_IDS).toHaveLength(25);
});

test("a reply scores by every instruction, strictly and forgiving", async () => {
  expect(await scoresFor("The boats lie in the harbour.")).toMatchObject({
    ...{ reward: 1, prompt_strict: 1, prompt_loose: 1 },
    ...{ instructions: 2, instructions_strict: 2, instructions_loose: 2 },
  });
  expect(await scoresFor("Sure, here it is:\nThe boats lie in the harbour.")).toMatchObject({
    ...{ reward: 0, prompt_strict: 0, prompt_loose: 1 },
    ...{ instructions: 2, instructions_strict: 1, instructions_loose: 2 },
  });
  expect(await scoresFor("Boats, boats.")).toMatchObject({ reward: 0, instructions_strict: 0, instructions_loose: 0 });
});

test("an empty reply follows no instruction, and thoughts are not part of the reply", async () => {
  expect(await scoresFor("")).toMatchObject({ reward: 0, instructions_strict: 0, instructions_loose: 0 });
  expect(await scoresFor("<think>One, two.</think>The boats lie in the harbour.")).toMatchObject({ reward: 1 });
});

test("the prompt is sent alone, unless an argument adds a system prompt", async () => {
  const sent: unknown[] = [];
  for (const args of [{}, { system_prompt: "Be exact." }]) {
    const environment = await loadEnvironment.load(args);
    const model = ({ messages }: { messages: unknown }) => {
      sent.push(messages);
      return "x";
    };
    await runRollout(environment, { task, model });
  }
  const user = { role: "user", content: task.prompt };
  expect(sent).toEqual([[user], [{ role: "system", content: "Be exact." }, user]]);
});

test.each([
  [["keywords:unknown"], [{}], "keywords:unknown: not an instruction of IFEval"],
  [["length_constraints:number_words"], [{ num_words: 5 }], "length_constraints:number_words: relation: "],
  [["length_constraints:number_words"], [], "length_constraints:number_words: num_words: "],
  [["keywords:existence"], [{ keywords: ["a".repeat(201)] }], "keywords.0: "],
  [["keywords:forbidden_words"], [{ forbidden_words: Array(51).fill("a") }], "forbidden_words: "],
  [["keywords:letter_frequency"], [{ letter: "ab", let_frequency: 1, let_relation: "at least" }], "letter: "],
])("a row with %j and %j is refused", async (instruction_id_list, kwargs, message) => {
  await expect(scoresFor("x", { prompt: "p", instruction_id_list, kwargs })).rejects.toThrow(message);
});

const paragraph =
  "## The harbour\n\n* **Boats** lie in *rows* and Dr. Smith's gulls wait at 5 p.m. for fish!\n1. It is calm (and deep).\n\n";
const long = paragraph.repeat(Math.ceil(20_000 / paragraph.length)).slice(0, 20_000);
const keywords = (count: number) => Array.from({ length: count }, (_, at) => `word${at}`.padEnd(200, "x"));

test.each([
  [
    ["keywords:existence", "length_constraints:number_sentences", "punctuation:no_comma"],
    [{ keywords: ["boats", "gulls", "fish", "rows"] }, { num_sentences: 5, relation: "at least" }, {}],
  ],
  [
    ["language:response_language", "length_constraints:number_sentences", "change_case:capital_word_frequency"],
    [
      { language: "en" },
      { num_sentences: 5, relation: "at least" },
      { capital_frequency: 9000, capital_relation: "less than" },
    ],
  ],
])("a Markdown reply of 20,000 characters is scored by %j, strictly and forgiving", async (ids, kwargs) => {
  expect(await scoresFor(long, { prompt: "p", instruction_id_list: ids, kwargs })).toMatchObject({
    ...{ prompt_strict: 1, prompt_loose: 1, instructions_strict: 3, instructions_loose: 3 },
  });
});

test("the work of every keyword on every form counts: a score that would exceed its limit is missing", async () => {
  const row = {
    prompt: "p",
    instruction_id_list: ["keywords:forbidden_words"],
    kwargs: [{ forbidden_words: keywords(50) }],
  };
  expect(await scoresFor("A boat.", row)).toMatchObject({ prompt_strict: 1, prompt_loose: 1 });
  expect(await scoresFor(long.repeat(2), row)).toMatchObject({ prompt_strict: 1, prompt_loose: null });
  const more = {
    ...row,
    instruction_id_list: Array(25).fill("keywords:forbidden_words"),
    kwargs: Array(25).fill(row.kwargs[0]),
  };
  expect(await scoresFor(long, more)).toMatchObject({ prompt_strict: null, prompt_loose: null });
});

test("a keyword is a text, whatever signs it has", async () => {
  const row = {
    prompt: "p",
    instruction_id_list: ["keywords:existence", "keywords:forbidden_words"],
    kwargs: [{ keywords: ["C++ (new)"] }, { forbidden_words: ["a.b", "x|y"] }],
  };
  expect(await scoresFor("I like c++ (NEW) and a-b.", row)).toMatchObject({ reward: 1 });
  expect(await scoresFor("I like c++ (NEW) and a.b.", row)).toMatchObject({ reward: 0 });
  expect(await scoresFor("I like C.", row)).toMatchObject({ reward: 0 });
});

test("a restart after every step changes nothing", async () => {
  const environment = await loadEnvironment();
  const [straight, restarted] = await Promise.all(
    [false, true].map((restartAfterEachTurn) =>
      runRollout(environment, { task, model: scripted(["The boats lie in the harbour."]), restartAfterEachTurn }),
    ),
  );
  expect(restarted).toEqual(straight);
});

test("an unknown argument is refused", async () => {
  await expect(loadEnvironment.load({ systemprompt: "x" })).rejects.toBeInstanceOf(z.ZodError);
});
