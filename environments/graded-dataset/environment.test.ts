import { type Reply, runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { loadEnvironment } from "./environment.ts";

const TEXTS = { input: "{{ sample.output_text }}", reference: "{{ item.answer }}" };
const SAME = { type: "string_check", name: "same", ...TEXTS, operation: "eq" };
const SIMILAR = {
  type: "text_similarity",
  name: "near",
  ...TEXTS,
  evaluation_metric: "fuzzy_match",
};

type Given = Record<string, unknown>;

async function play(args: Given, reply: Reply, task: Given = { question: "?", answer: "4" }) {
  const environment = await loadEnvironment.load(args);
  return await runRollout(environment, { task, model: scripted([reply]) });
}

async function score(grader: Given, reply: Reply, task?: Given) {
  return (await play({ graders: [{ ...SAME, ...grader }] }, reply, task)).reward;
}

async function refused(args: Given): Promise<[path: string, message: string]> {
  const issue = loadEnvironment.args.safeParse(args).error?.issues[0];
  return [issue?.path.join(".") ?? "", issue?.message ?? ""];
}

test.each([
  ["eq", "4", 1],
  ["eq", "four", 0],
  ["ne", "5", 1],
  ["ne", "4", 0],
  ["like", "it is 4.", 1],
  ["like", "it is 5.", 0],
])("string_check %s finds %j worth %d", async (operation, reply, worth) => {
  expect(await score({ operation }, reply)).toBe(worth);
});

test("like is case-sensitive, ilike is not", async () => {
  const task = { question: "?", answer: "Paris" };
  expect(await score({ operation: "like" }, "it is PARIS", task)).toBe(0);
  expect(await score({ operation: "ilike" }, "it is PARIS", task)).toBe(1);
});

test("a threshold adds a passed metric, and the reward is the mean of the graders, or weighted by their weights", async () => {
  const f1 = { type: "scorer", name: "f1", scorer: "f1", pass_threshold: 0.8 };
  const both = await play({ graders: [SAME, f1] }, "the cat sat", {
    question: "?",
    answer: "the cat sat down",
  });
  expect(both.metrics).toMatchObject({ same: 0, "f1.passed": 1 });
  expect(both.reward).toBeCloseTo(6 / 7 / 2, 9);
  const weighed = [
    { ...SAME, weight: 0 },
    { ...f1, weight: 2 },
  ];
  const { reward } = await play({ graders: weighed }, "the cat", {
    question: "?",
    answer: "the cat",
  });
  expect(reward).toBe(2);
});

test("a label is requested of the judge that is its model, and passes if it is among the passing ones", async () => {
  const environment = await loadEnvironment.load({
    testing_criteria: [
      {
        type: "label_model",
        name: "tone",
        model: "gpt-4o",
        input: [
          { role: "developer", content: "Judge the tone." },
          {
            role: "user",
            content: { type: "input_text", text: "{{item.question}}: {{sample.output_text}}" },
          },
        ],
        labels: ["rude", "neutral", "kind"],
        passing_labels: ["kind", "neutral"],
      },
    ],
  });
  expect(environment.rubric.judges).toEqual(["gpt-4o"]);
  const asked: string[] = [];
  const judge = (verdict: string) => ({
    "gpt-4o": ({ messages }: { readonly messages: readonly { content: unknown }[] }) => {
      asked.push(String(messages.at(-1)?.content));
      return `{"reason": "it shows", "verdict": "${verdict}"}`;
    },
  });
  const task = { question: "Hello", answer: "" };
  const worth = async (verdict: string) => {
    const model = scripted(["Good day {{item.question}}"]);
    return await runRollout(environment, { task, model, judge: judge(verdict) });
  };
  expect((await worth("kind")).reward).toBe(1);
  expect((await worth("rude")).reward).toBe(0);
  // Braces in a model's reply are not slots.
  expect(asked[0]).toBe("Hello: Good day {{item.question}}");
  const off = await worth("splendid");
  expect(off.reward).toBeNull();
});

test("criteria are accepted as OpenAI returns them: with ids, and with null for missing fields", async () => {
  const testing_criteria = [
    { ...SAME, id: "same-c4fdf789-2fa5-407f-8a41-a6f4f9afd482" },
    {
      type: "score_model",
      id: "taste-1",
      name: "taste",
      model: "o4-mini",
      input: [
        { type: "message", role: "system", content: { type: "input_text", text: "Grade it." } },
        { type: "message", role: "user", content: "{{ item.question }} {{ sample.output_text }}" },
      ],
      range: null,
      pass_threshold: 0.5,
      sampling_params: { max_completions_tokens: 100, temperature: null, seed: 42 },
    },
  ];
  const environment = await loadEnvironment.load({ testing_criteria });
  const { metrics } = await runRollout(environment, {
    task: { item: { question: "2 + 2?", answer: "4" } },
    model: scripted(["4"]),
    judge: { "o4-mini": scripted(['{"reason": "fine", "verdict": 0.75}']) },
  });
  expect(metrics).toMatchObject({ same: 1, taste: 0.75, "taste.passed": 1 });
});

test("a formula combines scores, its parts are metrics, and a formula without a value gives no score", async () => {
  const multi = (calculate_output: string) => ({
    graders: [
      {
        type: "multi",
        name: "all",
        graders: {
          exact: { ...SAME, name: "whatever it is called" },
          near: SIMILAR,
        },
        calculate_output,
      },
    ],
  });
  const task = { question: "?", answer: "kitten" };
  const report = await play(multi("0.25 * exact + max(near, 0.5) ^ 2"), "sitting", task);
  expect(report.reward).toBeCloseTo((8 / 13) ** 2, 9);
  expect(report.metrics).toMatchObject({ "all.exact": 0, "all.near": 8 / 13 });
  const none = await play(multi("near / exact"), "sitting", task);
  expect([none.reward, none.scoring_errors[0]?.error]).toEqual([null, expect.stringContaining("returned Infinity")]);
});

test.each([
  ['{"n": 9007199254740993}', "9007199254740993", 1],
  ['{"n": 9007199254740992}', "9007199254740993", 0],
  ['{"n": 9007199254740993.0}', "9007199254740993", 1],
  ['{"n": -9.007199254740993e15}', "-9007199254740993", 1],
  ['{"n": [12345678901234567890123, 1.0]}', "[12345678901234567890123,1]", 1],
  ['{"n": {"of": 18446744073709551615}}', '{"of":18446744073709551616}', 0],
  ['{"n": 9007199254740994}', "9007199254740994", 1],
])("a number in a reply that is parsed as JSON keeps its digits: %s", async (reply, reference, wanted) => {
  expect(await score({ input: "{{sample.output_json.n}}", operation: "eq", reference }, reply)).toBe(wanted);
});

test("graders read the reply as text, as JSON and as tool calls, which are recorded and never run", async () => {
  const json = { input: "{{sample.output_json.cities[1].name}}", reference: "Rome" };
  const reply = '{"cities": [{"name": "Paris"}, {"name": "Rome"}]}';
  expect(await score(json, reply)).toBe(1);
  // A model's text that is not JSON is an answer, and a wrong one.
  expect(await score(json, "Rome")).toBe(0);
  const called = {
    input: "{{sample.output_tools[0].function.name}} {{sample.output_tools[0].function.arguments}}",
    reference: '{{item.call}} {"city":"Rome"}',
  };
  const weather = {
    type: "function",
    function: { name: "weather", parameters: { type: "object" } },
  };
  const environment = await loadEnvironment.load({
    graders: [{ ...SAME, ...called }],
    tools: [weather],
  });
  const report = await runRollout(environment, {
    task: { question: "How is Rome?", call: "weather" },
    model: ({ tools, turn }) => {
      expect([turn, tools]).toEqual([0, [{ type: "function", function: { ...weather.function, description: "" } }]]);
      return { tool_calls: [{ name: "weather", arguments: '{"city":"Rome"}' }] };
    },
  });
  expect([report.reward, report.turns]).toEqual([1, 1]);
});

test.each([
  [{ template: "Q: {{item.question}}" }, { question: "a{{item.answer}}" }],
  [{ messages: [{ role: "user", content: "Q: {{item.question}}" }] }, { question: "a{{item.answer}}" }],
  [
    {
      input_messages: {
        type: "template",
        template: [
          {
            role: "user",
            type: "message",
            content: { type: "input_text", text: "Q: {{ item.question }}" },
          },
        ],
      },
    },
    { item: { question: "a{{item.answer}}" } },
  ],
  [
    { input_messages: { type: "item_reference", item_reference: "item.said" } },
    { item: { said: [{ role: "user", content: "Q: a{{item.answer}}" }] } },
  ],
  [{}, { prompt: [{ role: "user", content: "Q: a{{item.answer}}" }] }],
])("a prompt is made of %j", async (args, task) => {
  const environment = await loadEnvironment.load({
    ...args,
    graders: [{ ...SAME, reference: "yes" }],
  });
  const { reward } = await runRollout(environment, {
    task,
    model: ({ messages }) => {
      expect(messages).toEqual([{ role: "user", content: "Q: a{{item.answer}}" }]);
      return "yes";
    },
  });
  expect(reward).toBe(1);
});

test("an external scorer gets signed requests; its score counts, and any other reply gives no score", async () => {
  const http = {
    type: "http",
    name: "mine",
    url: "https://scorer.example/score",
    secret: "SCORER",
  };
  const environment = await loadEnvironment.load({ graders: [http] });
  expect(environment.needs).toEqual(["fetch:https://scorer.example/score", "secret:SCORER"]);
  const scored = async (status: number, text: string) => {
    const sent: unknown[] = [];
    const report = await runRollout(environment, {
      task: { question: "?", answer: "4" },
      model: scripted(["four"]),
      capabilities: {
        fetch: async (url, init) => {
          sent.push(url, init?.sign, init?.timeoutMs, JSON.parse(init?.body ?? ""));
          return { status, headers: new Map(), text: async () => text };
        },
      },
    });
    return { sent, reward: report.reward, errors: report.scoring_errors };
  };
  const good = await scored(200, '{"score": 0.25, "reason": "close"}');
  expect(good.reward).toBe(0.25);
  expect(good.sent).toEqual([
    "https://scorer.example/score",
    { secret: "SCORER", id: "rollout_mine" },
    10_000,
    expect.objectContaining({
      rollout_id: "rollout",
      grader: "mine",
      item: { question: "?", answer: "4" },
      sample: expect.objectContaining({ output_text: "four" }),
    }),
  ]);
  const bad: [status: number, text: string, error: string, retryable: boolean][] = [
    [503, "", "the scorer answered 503", true],
    [429, "", "the scorer answered 429", true],
    [304, "", "the scorer answered 304", false],
    [404, "", "the scorer answered 404", false],
    [200, "0.5", "did not answer", false],
    [200, '{"score": "good"}', "did not answer", false],
    [200, '{"score": 9007199254740993}', '{"score": 9007199254740993}', false],
    [200, '{"score": 1e400}', '{"score": 1e400}', false],
    [200, '{"score": null, "reason": "no idea"}', "no idea", false],
    [200, `{"score": 1, "reason": "${"x".repeat(70_000)}"}`, "more than 65536", false],
  ];
  for (const [status, text, error, retryable] of bad) {
    const { reward, errors } = await scored(status, text);
    expect(reward).toBeNull();
    expect(errors).toMatchObject([{ function: "mine", retryable }]);
    expect(errors[0]?.error).toContain(error);
  }
});

test("graders that cannot be computed are refused with the field's name", async () => {
  const second = (grader: Given) => refused({ graders: [SAME, grader] });
  const graders = (grader: Given) => second({ ...SAME, name: "b", ...grader });
  expect(await refused({})).toEqual(["graders", "say what scores the replies"]);
  expect(await graders({ operation: "similar" })).toEqual(["graders.1.operation", expect.anything()]);
  for (const name of ["same", "num_turns"]) {
    expect(await graders({ name })).toEqual(["graders.1.name", `two scores would be named ${name}`]);
  }
  const similar = { ...SIMILAR, pass_threshold: 0.5 };
  expect(await refused({ graders: [similar, { ...SAME, name: "near.passed" }] })).toEqual([
    "graders.1.name",
    "two scores would be named near.passed",
  ]);
  expect(await graders({ input: "{{ sample.output_text }" })).toEqual(["graders.1.input", "{{ without its }}"]);
  expect(await graders({ reference: "{{items.x}}" })).toEqual([
    "graders.1.reference",
    "{{items.x}}: a slot holds a path like item.answer",
  ]);
  expect((await graders({ input: "{{sample.text}}" }))[1]).toContain("of a sample there are output_text");
  expect(await graders({ type: "python", source: "…" })).toEqual([
    "graders.1.type",
    expect.stringContaining('{"type": "http"}'),
  ]);
  expect((await graders({ type: "vibes" }))[1]).toContain('no grader of type "vibes"');
  expect(await second({ ...SIMILAR, evaluation_metric: "jaccard" })).toEqual([
    "graders.1.evaluation_metric",
    expect.stringContaining('no metric "jaccard": it is one of fuzzy_match, bleu'),
  ]);
  const multi = { type: "multi", name: "all" };
  expect(await second({ ...multi, graders: { a: SAME }, calculate_output: "a + c" })).toEqual([
    "graders.1.calculate_output",
    "no grader is named c",
  ]);
  expect(await second({ ...multi, graders: [SAME], calculate_output: "same +" })).toEqual([
    "graders.1.calculate_output",
    "ends too early",
  ]);
  expect(await second({ ...multi, graders: { max: SAME }, calculate_output: "1" })).toEqual([
    "graders.1.graders.max",
    "a formula cannot name it",
  ]);
  expect(await refused({ graders: [SAME], testing_criteria: [SAME] })).toEqual([
    "testing_criteria",
    "give one of graders, testing_criteria",
  ]);
  expect(await refused({ graders: [SAME], template: "{{sample.output_text}}" })).toEqual([
    "template",
    "{{sample.output_text}}: only item can be named here",
  ]);
  const http = { type: "http", name: "n", secret: "S" };
  for (const url of ["ftp://scorer.example/", "scorer.example", "https://me:key@scorer.example/"]) {
    expect((await refused({ graders: [{ ...http, url }] }))[0]).toBe("graders.0.url");
  }
  const scorer = { type: "scorer", name: "n", scorer: "numeric", options: { tolerence: 1 } };
  expect((await refused({ graders: [scorer] }))[0]).toBe("graders.0.options");
});

test("a row without the members that the templates name is refused, and so are replies that come with the rows", async () => {
  const environment = await loadEnvironment.load({ template: "{{item.q}}", graders: [SAME] });
  const read = (row: Given) => environment.dataset.schema.safeParse(row).error?.issues[0];
  expect(read({ q: "?", answer: "4" })).toBeUndefined();
  expect(read({ item: { q: "?", answer: "4" } })).toBeUndefined();
  expect(read({ answer: "4" })?.path).toEqual(["q"]);
  expect(read({ item: { q: "?" } })?.path).toEqual(["item", "answer"]);
  expect(read({ item: { q: "?", answer: "4" }, sample: {} })?.path).toEqual(["sample"]);
});

test("a restart after every step changes nothing, and an unknown argument is refused", async () => {
  const environment = await loadEnvironment.load({ graders: [SAME] });
  const [straight, restarted] = await Promise.all(
    [false, true].map((restartAfterEachTurn) =>
      runRollout(environment, {
        task: { question: "?", answer: "4" },
        model: scripted(["4"]),
        restartAfterEachTurn,
      }),
    ),
  );
  expect(restarted).toEqual(straight);
  await expect(loadEnvironment.load({ graders: [SAME], rubric: {} })).rejects.toBeInstanceOf(z.ZodError);
});

const THOUGHT = [
  "<think>4? No.</think>\n",
  "4? No.\n</think>\n\n",
  "[THINK]4?[/THINK]",
  "<THOUGHT>a<think>4</think></THOUGHT>",
];

test.each(THOUGHT)("graders read the sample without %j, as OpenAI's do", async (thought) => {
  expect(await score({ operation: "eq" }, `${thought}4`)).toBe(1);
  expect(await score({ operation: "ne" }, `${thought}5`)).toBe(1);
  expect(await score({ operation: "like" }, `${thought}5`)).toBe(0);
  expect(await score({ input: "{{ sample.choices[0].message.content }}", operation: "ilike" }, `${thought}5`)).toBe(0);
  expect(await score({ input: "{{ sample.output_json.a }}", operation: "eq" }, `${thought}{"a": 4}`)).toBe(1);
  expect((await play({ graders: [SIMILAR] }, `${thought}4`)).reward).toBe(1);
  expect((await play({ graders: [{ type: "scorer", name: "n", scorer: "exact" }] }, `${thought}4`)).reward).toBe(1);
});

test("a sample of thoughts only is empty, and one that mentions a mark keeps it", async () => {
  expect(await score({ operation: "eq" }, "<think>4")).toBe(0);
  expect(await score({ operation: "eq" }, "use `<think>`", { question: "?", answer: "use `<think>`" })).toBe(1);
});
