/** The cost limits of rows and arguments: beyond them there is no score, or no run. */
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import { loadEnvironment } from "./environment.ts";

const SAME = {
  ...{ type: "string_check", name: "same", operation: "eq" },
  ...{ input: "{{ sample.output_text }}", reference: "{{ item.answer }}" },
};

type Given = Record<string, unknown>;

async function play(args: Given, reply: string, task: Given) {
  const environment = await loadEnvironment.load(args);
  return await runRollout(environment, { task, model: scripted([reply]) });
}

function refused(args: Given): [path: string, message: string] {
  const issue = loadEnvironment.args.safeParse(args).error?.issues[0];
  return [issue?.path.join(".") ?? "", issue?.message ?? ""];
}

test("the size of a filled template is limited: beyond it a judge is not called, and a prompt fails its row", async () => {
  const task = { question: "?", answer: "x".repeat(2 ** 20), answers: ["x"] };
  const template = "{{ item.answer }}".repeat(5);
  const judged = {
    ...{ type: "score_model", name: "judged", model: "gpt" },
    input: [{ role: "user", content: template }],
  };
  const { reward, scoring_errors } = await play({ graders: [judged] }, "4", task);
  expect(reward).toBeNull();
  expect(scoring_errors[0]?.error).toContain("comes to more than 4,194,304 characters");
  const messages = Array.from({ length: 5 }, () => ({
    role: "user",
    content: "{{ item.answer }}",
  }));
  await expect(play({ messages, graders: [SAME] }, "4", task)).rejects.toThrow(/comes to more than/);
});

test("all graders of a scoring group share one work budget, and beyond it there is no score", async () => {
  // The work of a search counts as if every pair of characters were compared; here the first character decides.
  const [said, wanted] = ["ab".repeat(170_000), "c".repeat(190_000)];
  const graders = Array.from({ length: 20 }, (_, at) => {
    return { type: "scorer", name: `has${at}`, scorer: "includes" };
  });
  const { scoring_errors, metrics } = await play({ graders }, said, { question: "?", answer: wanted });
  expect(metrics["has17"]).toBe(0);
  expect(scoring_errors).toMatchObject([
    { function: "has18", error: expect.stringContaining("the scores of one scoring group") },
    { function: "has19" },
  ]);
});

test("patterns, schemas and numbers of graders that cost too much are refused with the field's name", () => {
  const options = (scorer: string, given: Given) =>
    refused({ graders: [{ type: "scorer", name: "s", scorer, options: given }] });
  expect(options("regex", { pattern: "a|".repeat(3000) })).toEqual([
    "graders.0.options.pattern",
    "the pattern has 6,000 characters, and the limit is 4,000",
  ]);
  const [path, message] = options("json_schema", { schema: { $ref: 5, pattern: "(?=a)" } });
  expect([path, message]).toEqual([
    "graders.0.options.schema",
    expect.stringContaining("the JSON Schema cannot be used"),
  ]);
  const part = { type: "scorer", scorer: "exact" };
  const multi = (count: number, name: string) => {
    const graders = Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, part]));
    return { type: "multi", name, graders, calculate_output: "p0" };
  };
  expect(refused({ graders: [multi(33, "m")] })).toEqual(["graders.0.graders", "has 32 at most"]);
  const three = ["a", "b", "c"].map((name) => multi(30, name));
  expect(refused({ graders: three })[1]).toMatch(/come to 90 with the parts of multi/);
});

test("the patterns of all graders together are checked within one work budget", async () => {
  const pattern = `(?i)${"[\u0100-\u{10FFFF}]".repeat(12)}`;
  const graders = Array.from({ length: 32 }, (_, at) => {
    return { type: "scorer", name: `r${at}`, scorer: "regex", options: { pattern } };
  });
  await expect(loadEnvironment.load({ graders: graders.slice(0, 1) })).resolves.toBeDefined();
  const beyond = /would exceed the limit of [\d,]+ steps of work for the arguments of an environment/;
  await expect((async () => await loadEnvironment.load({ graders }))()).rejects.toThrow(beyond);
});

test.each([
  ["json_diff", `[${"1e400,".repeat(5000)}1]`],
  ["one_of", JSON.stringify(Array.from({ length: 5000 }, (_, at) => at))],
])("so are references that are the same for every row: %s", async (scorer, reference) => {
  const graders = Array.from({ length: 32 }, (_, at) => ({ type: "scorer", name: `r${at}`, scorer, reference }));
  const beyond = /would exceed the limit of [\d,]+ steps of work for the arguments of an environment/;
  await expect((async () => await loadEnvironment.load({ graders }))()).rejects.toThrow(beyond);
});

test("a reply is parsed as JSON only if a template needs it, once, and the work is counted", async () => {
  const reply = `[${"1e400,".repeat(200_000)}1]`;
  const named = { type: "string_check", operation: "eq", input: "{{ sample.output_json[0] }}", reference: "1" };
  const { reward } = await play({ graders: [SAME] }, reply, { question: "?", answer: "no" });
  expect(reward).toBe(0);
  const { scoring_errors } = await play({ graders: [{ ...named, name: "first" }] }, reply, { question: "?" });
  expect(scoring_errors).toMatchObject([{ function: "first", error: expect.stringContaining("as JSON would exceed") }]);
});
