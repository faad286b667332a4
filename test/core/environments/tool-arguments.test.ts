import { tool } from "rollcall";
import { expect, test } from "vitest";
import * as z from "zod";
import { parseArguments } from "../../../src/core/environments/tool-call.ts";
import { answersTo } from "../../fixtures/tool-answers.ts";

const Place = z.object({ lat: z.number(), note: z.string().optional(), zoom: z.int().default(3) });

function faultsOf(parameters: z.ZodObject, args: Record<string, unknown>) {
  const { error } = parseArguments(parameters, args);
  return error?.issues.map(({ path, message }) => [path.join("."), message]);
}

test("a null where a parameter may be left out leaves it out, at any depth", () => {
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

test("a parameter that takes null itself keeps it", () => {
  const parameters = z.object({
    at: z.object({ note: z.string().nullish(), n: z.int().optional() }),
  });
  expect(parseArguments(parameters, { at: { note: null, n: null } }).data).toEqual({
    at: { note: null },
  });
});

test("a null where something must stand is refused as null, and only that", () => {
  expect(faultsOf(z.object({ at: Place }), { at: { lat: null, note: null } })).toEqual([
    ["at.lat", expect.stringContaining("received null")],
  ]);
  expect(faultsOf(z.object({ list: z.array(z.int()) }), { list: [1, null] })).toEqual([
    ["list.1", expect.stringContaining("received null")],
  ]);
});

test("what is wrong besides is told as it was", () => {
  expect(faultsOf(z.object({ at: Place }), { at: { lat: "1", note: null } })).toEqual([
    ["at.lat", expect.stringContaining("received string")],
  ]);
});

test("A10: NaN and infinity are no JSON, and arguments that hold them are answered as such", async () => {
  for (const number of ["NaN", "Infinity", "-Infinity"]) {
    const { report, texts } = await answersTo([["sq", `{"x": ${number}}`]]);
    expect([report.error, texts]).toEqual([null, [expect.stringContaining("JSON")]]);
    const stopped = await answersTo([["sq", number]], { stopErrors: [SyntaxError] });
    expect(stopped.report.error?.error_chain_str).toBe("ToolParseError -> SyntaxError");
  }
  const { texts } = await answersTo([["sq", '{"x": 1e400}']]);
  expect(texts).toEqual([expect.stringContaining("bad arguments for sq: x: ")]);
});

test("A11: an integer past 2^53 is rounded where a number is asked for, and refused where an integer is", async () => {
  const exact = tool({
    name: "exact",
    description: "",
    parameters: z.object({ n: z.int() }),
    run: ({ n }) => n,
  });
  const give = tool({
    name: "give",
    description: "",
    parameters: z.object({ n: z.number() }),
    run: ({ n }) => n,
  });
  const args = '{"n": 9007199254740993}';
  const { texts } = await answersTo(
    [
      ["give", args],
      ["exact", args],
    ],
    { tools: [give, exact] },
  );
  expect(texts).toEqual(["9007199254740992", expect.stringMatching(/^bad arguments for exact: n: /)]);
});
