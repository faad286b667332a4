import { expect, test } from "vitest";
import * as z from "zod";
import type { Messages } from "../../../src/contract/messages.ts";
import type { TaskRow } from "../../../src/core/environments/contract.ts";
import { dataset } from "../../../src/core/environments/dataset.ts";
import { buildTask, exampleAt, parseRow, RowError, rowAt, taskKey } from "../../../src/core/rollout/task.ts";

const Question = z.object({ question: z.string(), level: z.int().default(1) });
const uploaded = dataset(Question, "uploaded");

function refusalOf(call: () => unknown): { index: number; path: string; message: string } {
  try {
    call();
  } catch (thrown) {
    if (thrown instanceof RowError) {
      const { index, path, message } = thrown;
      return { index, path, message };
    }
    throw thrown;
  }
  throw new Error("nothing was refused");
}

test("a dataset has its kind and, if it is finite and available, its length", () => {
  const rows = [{ question: "a" }, { question: "b" }];
  expect(uploaded).toMatchObject({ kind: "uploaded", length: null });
  expect(dataset(Question, rows)).toMatchObject({ kind: "rows", length: 2 });
  const generated = dataset(Question, (index) => ({ question: String(index) }));
  expect(generated).toMatchObject({ kind: "generated", length: null });
});

test("no row is made before it is needed, and then only that one", () => {
  const asked: number[] = [];
  const endless = dataset(Question, (index) => {
    asked.push(index);
    return { question: `q${index}` };
  });
  expect(asked).toEqual([]);
  expect(rowAt(endless, 1_000_000, 0)).toEqual({ question: "q1000000", level: 1 });
  expect(asked).toEqual([1_000_000]);
});

test("a generated row depends on seed and index alone", () => {
  const endless = dataset(Question, (_index, random) => ({ question: String(random()) }));
  const late = rowAt(endless, 9, 7);
  rowAt(endless, 8, 7);
  expect(rowAt(endless, 9, 7)).toEqual(late);
  expect(rowAt(endless, 9, 8)).not.toEqual(late);
  expect(rowAt(endless, 10, 7)).not.toEqual(late);
});

test("reading beyond the rows, or uploaded rows that are not available, is a RangeError", () => {
  expect(() => rowAt(dataset(Question, [{ question: "a" }]), 1, 0)).toThrow(RangeError);
  expect(() => rowAt(uploaded, 0, 0)).toThrow(RangeError);
});

test("a parsed row is deep-frozen and leaves its input unchanged", () => {
  const Open = z.looseObject({ question: z.string() });
  const given = { question: "q", info: { tags: ["a"] } };
  const row = parseRow(dataset(Open, "uploaded"), given, 0);
  expect(row).toEqual(given);
  expect(Object.isFrozen(row)).toBe(true);
  expect(() => Reflect.apply(Array.prototype.push, row["info"], ["b"])).toThrow(TypeError);
  given.info.tags.push("b");
  expect(row["info"]).toEqual({ tags: ["a"] });
});

test("a row without a field is refused with the field's name in the request", () => {
  expect(refusalOf(() => parseRow(uploaded, {}, 16))).toEqual({
    index: 16,
    path: "rows[16].question",
    message: "question is required",
  });
});

test("a field of the wrong type is refused with the expected type", () => {
  const refusal = refusalOf(() => parseRow(uploaded, { question: "q", level: "high" }, 0));
  expect(refusal.path).toBe("rows[0].level");
  expect(refusal.message).toContain("level");
  expect(refusal.message).toContain("expected");
});

test("a field inside a list is named with its place", () => {
  const Nested = dataset(z.object({ parts: z.array(z.object({ text: z.string() })) }), "uploaded");
  const row = { parts: [{ text: "a" }, {}] };
  expect(refusalOf(() => parseRow(Nested, row, 2)).path).toBe("rows[2].parts[1].text");
});

test("a row that is not an object is refused as a whole", () => {
  expect(refusalOf(() => parseRow(uploaded, "q", 3)).path).toBe("rows[3]");
  expect(refusalOf(() => parseRow(dataset(z.string(), "uploaded"), "q", 3)).path).toBe("rows[3]");
});

test("a row that is not JSON is refused with the place of the first fault", () => {
  const Dated = dataset(z.object({ day: z.date() }), "uploaded");
  const refusal = refusalOf(() => parseRow(Dated, { day: new Date(0) }, 0));
  expect(refusal).toMatchObject({ path: "rows[0].day", message: expect.stringContaining("Date") });
});

test("a schema that throws or is asynchronous, and a row that contains itself, are refused as rows", () => {
  const thrower = Question.transform((): never => {
    throw new Error("no such level");
  });
  expect(refusalOf(() => parseRow({ schema: thrower }, { question: "a" }, 2))).toEqual({
    index: 2,
    path: "rows[2]",
    message: "its schema threw an error: no such level",
  });
  const later = Question.refine(async () => true);
  expect(refusalOf(() => parseRow({ schema: later }, { question: "a" }, 0)).message).toContain(
    "its schema threw an error",
  );
  const row: Record<string, unknown> = { question: "a" };
  row["self"] = row;
  const endless = refusalOf(() => parseRow({ schema: z.looseObject({}) }, row, 0));
  expect(endless.path).toMatch(/^rows\[0\](\.self){20}$/);
  expect(endless.message).toBe("JSON cannot represent endless nesting");
});

test("without shuffling examples come in order; with it each comes once, in the same order for the same seed", () => {
  const positions = Array.from({ length: 50 }, (_, position) => position);
  const plain = { length: 50, shuffle: false, seed: 1 };
  expect(positions.map((position) => exampleAt(position, plain))).toEqual(positions);
  const shuffled = positions.map((position) => exampleAt(position, { ...plain, shuffle: true }));
  expect(shuffled).not.toEqual(positions);
  expect(shuffled.toSorted((a, b) => a - b)).toEqual(positions);
});

test("an endless dataset continues in order and cannot be shuffled", () => {
  expect(exampleAt(10 ** 9, { length: null, shuffle: false, seed: 0 })).toBe(10 ** 9);
  expect(() => exampleAt(0, { length: null, shuffle: true, seed: 0 })).toThrow(RangeError);
});

test("a position beyond the dataset, negative or broken is a RangeError", () => {
  for (const position of [3, -1, 0.5, Number.NaN]) {
    expect(() => exampleAt(position, { length: 3, shuffle: false, seed: 0 })).toThrow(RangeError);
  }
});

const fewShot: Messages = [
  { role: "user", content: "1+1" },
  { role: "assistant", content: "2" },
];

test("a question becomes system prompt, few-shot messages, question", () => {
  const task = buildTask({ systemPrompt: "S", fewShot }, { question: "q" }, 4);
  expect(task).toEqual({
    example_id: 4,
    task: { question: "q" },
    prompt: [{ role: "system", content: "S" }, ...fewShot, { role: "user", content: "q" }],
    answer: "",
    info: {},
  });
});

test("a prompt column gets the system prompt before it and no few-shot messages", () => {
  const row = { prompt: [{ role: "user", content: "own" }], question: "ignored" };
  const { prompt } = buildTask({ systemPrompt: "S", fewShot }, row, 0);
  expect(prompt).toEqual([
    { role: "system", content: "S" },
    { role: "user", content: "own" },
  ]);
});

test("a prompt column with a system message of its own keeps it", () => {
  const row = { prompt: [{ role: "system", content: "own" }] };
  const { prompt } = buildTask({ systemPrompt: "S" }, row, 0);
  expect(prompt).toEqual([{ role: "system", content: "own" }]);
});

test("a text prompt is unchanged, and is refused if there is a system prompt", () => {
  const row = { prompt: "once upon a time" };
  expect(buildTask({}, row, 0).prompt).toEqual([{ role: "text", content: "once upon a time" }]);
  expect(refusalOf(() => buildTask({ systemPrompt: "S" }, row, 0)).path).toBe("rows[0].prompt");
});

test("a prompt column that is not a list of messages is refused with the message", () => {
  const row = { prompt: [{ role: "user", content: "a" }, { role: "wizard" }] };
  expect(refusalOf(() => buildTask({}, row, 5)).path).toBe("rows[5].prompt[1].role");
});

test("a row with neither prompt nor question is refused", () => {
  expect(refusalOf(() => buildTask({}, { answer: "a" }, 1)).path).toBe("rows[1].question");
});

test("an answer is text: other values are taken as their JSON", () => {
  const answers = ["42", 42, true, null, ["a"]].map((answer) => buildTask({}, { question: "q", answer }, 0).answer);
  expect(answers).toEqual(["42", "42", "true", "", '["a"]']);
});

test("info may be an object or its JSON text", () => {
  const ask = (info: TaskRow[string]) => buildTask({}, { question: "q", info }, 0).info;
  expect(ask({ k: 1 })).toEqual({ k: 1 });
  expect(ask('{"k": 1}')).toEqual({ k: 1 });
  expect(refusalOf(() => ask("{k")).path).toBe("rows[0].info");
  expect(refusalOf(() => ask('{"a":[{"__proto__":1}]}')).path).toBe("rows[0].info.a[0].__proto__");
});

test("a task's key is the hash of its content, whatever the order of its columns", async () => {
  const identity = async (text: string) => text;
  const key = await taskKey({ b: 1, a: { d: 2, c: 3 } }, identity);
  expect(key).toBe('{"a":{"c":3,"d":2},"b":1}');
  expect(await taskKey({ a: { c: 3, d: 2 }, b: 1 }, identity)).toBe(key);
});

test("a dataset may have a length and make its rows one by one, or make all of them once, when the first is needed", () => {
  const made: number[] = [];
  const long = dataset(Question, {
    length: 3,
    row: (index, random) => {
      made.push(index);
      return { question: `q${index} ${random()}` };
    },
  });
  expect(long).toMatchObject({ kind: "rows", length: 3 });
  expect(rowAt(long, 2, 7)).toEqual(rowAt(long, 2, 7));
  expect(rowAt(long, 2, 7)).not.toEqual(rowAt(long, 2, 8));
  expect(new Set(made)).toEqual(new Set([2]));
  expect(() => rowAt(long, 3, 0)).toThrow(RangeError);
  let loads = 0;
  const loaded = dataset(Question, {
    rows: () => {
      loads += 1;
      return [{ question: "a" }, { question: "b" }];
    },
  });
  expect(loads).toBe(0);
  expect([loaded.kind, loaded.length, rowAt(loaded, 1, 0)["question"]]).toEqual(["rows", 2, "b"]);
  expect(loads).toBe(1);
  const endless = { length: Number.POSITIVE_INFINITY, row: () => ({ question: "a" }) };
  expect(() => dataset(Question, endless)).toThrow(RangeError);
});

test("R-ds-1: a row's example id is its own whole number, else its index, and an id of another type becomes src_id", () => {
  const idOf = (row: TaskRow) => {
    const { example_id, task } = buildTask({}, { question: "q", ...row }, 3);
    return [example_id, task["example_id"], task["src_id"]];
  };
  expect(idOf({ example_id: 9 })).toEqual([9, 9, undefined]);
  expect(idOf({ example_id: 0 })).toEqual([0, 0, undefined]);
  expect(idOf({})).toEqual([3, undefined, undefined]);
  expect(idOf({ example_id: null })).toEqual([3, null, undefined]);
  expect(idOf({ example_id: "x7" })).toEqual([3, "x7", "x7"]);
  expect(idOf({ example_id: -1 })).toEqual([3, -1, -1]);
  expect(idOf({ example_id: 1.5 })).toEqual([3, 1.5, 1.5]);
});

test("an environment's own prompt has precedence over the row's columns, and follows the system prompt", () => {
  const environment = { systemPrompt: "S", makePrompt: (task: TaskRow) => [said(`${task["n"]}`)] };
  const said = (content: string) => ({ role: "user", content }) as const;
  const { prompt } = buildTask(environment, { n: 7, question: "unread", prompt: "unread" }, 0);
  expect(prompt).toEqual([{ role: "system", content: "S" }, said("7")]);
  const bare = buildTask({ makePrompt: () => "text" }, { n: 7 }, 0);
  expect(bare.prompt).toEqual([{ role: "text", content: "text" }]);
});

test("a prompt column may have parts and flat tool calls", () => {
  const image = { type: "image_url", image_url: { url: "https://host.test/a.png" } };
  const prompt = [
    { role: "user", content: [{ type: "text", text: "look" }, image] },
    { role: "assistant", tool_calls: [{ id: "a", name: "f", arguments: '{"x":1}' }] },
  ];
  const built = buildTask({}, { prompt }, 0).prompt;
  expect(built[0]?.content).toEqual(prompt[0]?.content);
  expect(built[1]?.tool_calls?.[0]?.function).toEqual({ name: "f", arguments: '{"x":1}' });
  const bad = { prompt: [{ role: "user", content: [{ type: "text" }] }] };
  expect(refusalOf(() => buildTask({}, bad, 4)).path).toBe("rows[4].prompt[0].content[0].text");
});

test("a row's tools are refused in the shapes that verifiers no longer supports", () => {
  const built = (info: object) => () => buildTask({}, { question: "q", info: { ...info } }, 2);
  const tool = { name: "f", description: "", parameters: {} };
  expect(built({ tool_defs: [tool] })().info).toEqual({ tool_defs: [tool] });
  const old = { type: "function", function: tool };
  for (const info of [{ tool_defs: [old] }, { tool_defs: {} }, { oai_tools: [] }]) {
    const { path, message } = refusalOf(built(info));
    expect(path).toBe("rows[2].info.tool_defs");
    expect(message).toMatch(/^info\.(tool_defs|oai_tools)/);
  }
});
