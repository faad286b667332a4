import { dataset, inject, StatefulToolEnv, tool } from "rollcall";
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { parseArguments } from "../../../src/core/environments/tool-call.ts";
import { answersTo, task } from "../../fixtures/tool-answers.ts";

const Place = z.object({ lat: z.number(), note: z.string().optional(), zoom: z.int().default(3) });

function faultsOf(parameters: z.ZodObject, args: Record<string, unknown>) {
  const { error } = parseArguments(parameters, args);
  return error?.issues.map(({ path, message }) => [path.join("."), message]);
}

test("a null for an optional parameter omits it, at any depth", () => {
  const parameters = z.object({
    at: Place,
    list: z.array(Place).optional(),
    either: z.union([z.int(), Place]).optional(),
    by: z.record(z.string(), Place).optional(),
  });
  const place = { lat: 1, note: null, zoom: null };
  const read = { lat: 1, zoom: 3 };
  expect(parseArguments(parameters, { at: place, list: null, either: null, by: null })).toEqual({
    success: true,
    data: { at: read },
  });
  const all = { at: place, list: [place, place], either: place, by: { home: place } };
  expect(parseArguments(parameters, all).data).toEqual({
    at: read,
    list: [read, read],
    either: read,
    by: { home: read },
  });
});

test("a parameter that accepts null keeps it", () => {
  const parameters = z.object({
    at: z.object({ note: z.string().nullish(), n: z.int().optional() }),
  });
  expect(parseArguments(parameters, { at: { note: null, n: null } }).data).toEqual({
    at: { note: null },
  });
});

test("a null for a required parameter is refused, with only that error", () => {
  expect(faultsOf(z.object({ at: Place }), { at: { lat: null, note: null } })).toEqual([
    ["at.lat", expect.stringContaining("received null")],
  ]);
  expect(faultsOf(z.object({ list: z.array(z.int()) }), { list: [1, null] })).toEqual([
    ["list.1", expect.stringContaining("received null")],
  ]);
});

test("other faults are reported as before", () => {
  expect(faultsOf(z.object({ at: Place }), { at: { lat: "1", note: null } })).toEqual([
    ["at.lat", expect.stringContaining("received string")],
  ]);
});

test("A10: NaN and infinity are not JSON, and arguments with them get that error", async () => {
  for (const number of ["NaN", "Infinity", "-Infinity"]) {
    const { report, texts } = await answersTo([["sq", `{"x": ${number}}`]]);
    expect([report.error, texts]).toEqual([null, [expect.stringContaining("JSON")]]);
    const stopped = await answersTo([["sq", number]], { stopErrors: [SyntaxError] });
    expect(stopped.report.error?.error_chain_str).toBe("ToolParseError -> SyntaxError");
  }
  const { texts } = await answersTo([["sq", '{"x": 1e400}']]);
  expect(texts).toEqual([expect.stringContaining("bad arguments for sq: x: ")]);
});

function taking(name: string, parameters: z.ZodObject) {
  return tool({ name, description: "", parameters, run: (args) => args });
}

test("A11: an integer past 2^53 reaches a tool that accepts a bigint, and any other call with it is refused with the field", async () => {
  const tools = [
    taking("big", z.object({ n: z.coerce.bigint() })),
    taking("some", z.object({ n: z.union([z.number(), z.bigint()]), at: z.array(z.unknown()).optional() })),
    taking("number", z.object({ n: z.number() })),
    taking("int", z.object({ n: z.int() })),
    taking("coerced", z.object({ n: z.coerce.number() })),
    taking("text", z.object({ n: z.string() })),
    taking("inner", z.object({ at: z.array(z.object({ n: z.number() })) })),
  ];
  const told = async (name: string, args: string) => (await answersTo([[name, args]], { tools })).texts[0];
  const large = '{"n": 9007199254740993}';
  expect(await told("big", large)).toBe('{"n":9007199254740993}');
  expect(await told("big", '{"n": -9.007199254740993e15}')).toBe('{"n":-9007199254740993}');
  expect(await told("big", '{"n": 5}')).toBe('{"n":5}');
  expect(await told("some", large)).toBe(large.replace(" ", ""));
  expect(await told("some", '{"n": 1, "at": [[12345678901234567890123]]}')).toBe(
    '{"n":1,"at":[[12345678901234567890123]]}',
  );
  for (const name of ["number", "int", "coerced", "text"]) {
    const why = "the whole number 9007199254740993 has too many digits to be stored exactly";
    expect(await told(name, large)).toBe(`bad arguments for ${name}: n: ${why}`);
    expect(await told(name, '{"n": 9007199254740993.0}')).toContain(why);
  }
  expect(await told("inner", '{"at": [{"n": 1}, {"n": -12345678901234567890123}]}')).toContain(
    "at.1.n: the whole number -12345678901234567890123 has",
  );
  for (const number of ["9007199254740993.5", "1e5000"]) {
    expect(await told("big", `{"n": ${number}}`)).toContain(`n: the number ${number} `);
  }
  for (const kept of ["9007199254740994", "1e+22", "0.1", "-9007199254740991"]) {
    expect(await told("number", `{"n": ${kept}}`)).toBe(`{"n":${kept}}`);
  }
});

test("arguments are added to a call only if all its numbers can be passed exactly", async () => {
  const asked: unknown[] = [];
  const environment = new StatefulToolEnv({
    dataset: dataset(z.object({ question: z.string() }), "uploaded"),
    tools: [
      tool({
        name: "find",
        description: "",
        parameters: z.object({ n: z.number() }),
        hidden: { user: inject<string>() },
        run: ({ n, user }) => `${n} of ${user}`,
      }),
    ],
    rubric: {},
    setupState: () => ({}),
    updateToolArgs: (_name, args) => {
      asked.push(args);
      return { ...args, user: "ada" };
    },
  });
  const tool_calls = ['{"n": 9007199254740993, "user": 9007199254740993}', '{"n": 5, "user": 1e400}'].map(
    (text, at) => ({
      name: "find",
      arguments: text,
      id: `c${at}`,
    }),
  );
  const report = await runRollout(environment, { task, model: scripted([{ tool_calls }, "done"]) });
  const texts = report.completion.filter(({ role }) => role === "tool").map(({ content }) => content);
  expect(texts).toEqual([expect.stringMatching(/^bad arguments for find: n: the whole number/), "5 of ada"]);
  expect(asked).toEqual([{ n: 5 }]);
  const calls = report.completion.flatMap((message) =>
    message.role === "assistant" ? (message.tool_calls ?? []) : [],
  );
  expect(calls.map((call) => call.function.arguments)).toEqual(tool_calls.map((call) => call.arguments));
});

test("an empty text, blanks and null are valid for a call without arguments", async () => {
  const tools = [
    taking("now", z.object({ zone: z.string().optional() })),
    taking("at", z.object({ zone: z.string() })),
  ];
  for (const text of ["", "  ", "\n\t", "null", " null\n", "{}"]) {
    const { texts } = await answersTo(
      [
        ["now", text],
        ["at", text],
      ],
      { tools },
    );
    expect(texts, JSON.stringify(text)).toEqual(["{}", expect.stringMatching(/^bad arguments for at: zone: /)]);
  }
  const { texts } = await answersTo(
    [
      ["now", "nul"],
      ["now", "[null]"],
      ["now", '""'],
    ],
    { tools },
  );
  expect(texts).toEqual([
    expect.stringContaining("JSON"),
    "the arguments of now must be an object, not an array",
    "the arguments of now must be an object, not a string",
  ]);
});
