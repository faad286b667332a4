/** Which errors of a call end its rollout, and as which class: verifiers' classes, in verifiers' order of checks. */
import { KeyError, ToolCallError, tool, ValueError } from "rollcall";
import { expect, test } from "vitest";
import * as z from "zod";
import { answersTo, BadThing, boom, type Options } from "../../fixtures/tool-answers.ts";

test("stopErrors end the rollout by stage, with the original error as cause", async () => {
  const call = await answersTo([["boom", {}]], { stopErrors: [BadThing] });
  expect(call.report.error?.error_chain_str).toBe("ToolCallError -> Error");
  expect(call.report).toMatchObject({ stop_condition: "has_error", reward: null });
  const parse = await answersTo([["sq", "{"]], { stopErrors: [SyntaxError] });
  expect(parse.report.error?.error_chain_str).toBe("ToolParseError -> SyntaxError");
  const shape = await answersTo([["sq", "[]"]], { stopErrors: [ToolCallError] });
  expect(shape.report.error?.error_chain_str).toBe("ToolCallError -> TypeError");
  const unknown = await answersTo([["nope", {}]], { stopErrors: [ToolCallError] });
  expect(unknown.report.error?.error_chain_str).toBe("ToolCallError -> KeyError");
});

test("KeyError stops at an unknown tool and TypeError at bad arguments; otherwise the model reads the error", async () => {
  const unknown = await answersTo([["nope", {}]], { stopErrors: [KeyError] });
  expect(unknown.report.error?.error_chain_str).toBe("ToolCallError -> KeyError");
  const shape = await answersTo([["sq", { x: "one" }]], { stopErrors: [TypeError] });
  expect(shape.report.error?.error_chain_str).toBe("ToolCallError -> TypeError");
  const read = await answersTo([
    ["nope", {}],
    ["sq", { x: "one" }],
  ]);
  expect(read.report.error).toBeNull();
  expect(read.texts).toEqual(["there is no tool named nope", expect.stringContaining("bad arguments for sq: x: ")]);
});

test.each(["[1]", '"s"', "null", "5", "true"])(
  "arguments %s, which are not an object, are bad arguments: stopped by TypeError, and after the tool's name by KeyError",
  async (args) => {
    const stopped = async (name: string, stopErrors: Options["stopErrors"]) => {
      const { report } = await answersTo([[name, args]], { stopErrors: stopErrors ?? [] });
      return report.error?.error_chain_str ?? null;
    };
    expect(await stopped("sq", [TypeError])).toBe("ToolCallError -> TypeError");
    expect(await stopped("nope", [KeyError, TypeError])).toBe("ToolCallError -> KeyError");
    expect(await stopped("nope", [TypeError])).toBeNull();
    expect(await stopped("sq", [ValueError, KeyError, SyntaxError])).toBeNull();
  },
);

test("arguments that are not JSON are stopped by SyntaxError, and by ValueError as in Python", async () => {
  for (const kind of [SyntaxError, ValueError]) {
    const { report } = await answersTo([["sq", "{"]], { stopErrors: [kind] });
    expect(report.error?.error_chain_str).toBe("ToolParseError -> SyntaxError");
  }
  const read = await answersTo([["sq", "{"]], { stopErrors: [TypeError, KeyError] });
  expect(read.report.error).toBeNull();
});

test("a listed error ends the turn: the calls before it have run, those after it have not", async () => {
  const ran: number[] = [];
  const note = tool({
    name: "note",
    description: "",
    parameters: z.object({ at: z.number() }),
    run: ({ at }) => void ran.push(at),
  });
  const calls: [string, object][] = [
    ["note", { at: 1 }],
    ["boom", {}],
    ["note", { at: 2 }],
  ];
  const { report, texts } = await answersTo(calls, { tools: [note, boom], stopErrors: [BadThing] });
  expect([ran, texts]).toEqual([[1], []]);
  expect(report).toMatchObject({ stop_condition: "has_error", metrics: {} });
});
