import { dataset, EnvError, inject, KeyError, StatefulToolEnv, tool, ValueError } from "rollcall";
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import type { Json } from "../../../src/contract/json.ts";

const rows = dataset(z.object({ question: z.string() }), "uploaded");
const task = { question: "q" };

const sq = tool({
  name: "sq",
  description: "Square.",
  parameters: z.object({ x: z.number() }),
  run: ({ x }) => x * x,
});
const look = tool({
  name: "look",
  description: "Looks something up.",
  parameters: z.object({ at: z.string() }),
  hidden: { shelf: inject<Record<string, string>>() },
  run: ({ at, shelf }) => shelf[at] ?? "nothing there",
});

function call(name: string, args: string | object, id: string) {
  return { name, arguments: args, id };
}

test("updateToolArgs runs for every call that could be decoded, unknown tools included, before the checks", async () => {
  const log: [string, Record<string, Json>][] = [];
  const environment = new StatefulToolEnv({
    dataset: rows,
    tools: [sq],
    setupState: () => ({}),
    updateToolArgs: (name, args) => {
      log.push([name, { ...args }]);
      return name === "sq" ? { ...args, x: 9 } : args;
    },
    rubric: {},
  });
  const tool_calls = [
    call("sq", {}, "a"),
    call("sq", "[1]", "b"),
    call("sq", '"s"', "c"),
    call("sq", "null", "d"),
    call("nope", {}, "e"),
    call("sq", "{bad", "f"),
  ];
  const report = await runRollout(environment, {
    task,
    model: scripted([{ tool_calls }, "done"]),
  });
  const texts = report.completion.filter(({ role }) => role === "tool").map((m) => m.content);
  expect(texts[0]).toBe("81");
  for (const text of texts.slice(1, 3)) expect(text).toContain("object");
  expect(texts[3]).toBe("81");
  expect(texts[4]).toContain("nope");
  expect(texts[5]).not.toBe("");
  expect(log).toEqual([
    ["sq", {}],
    ["sq", {}],
    ["nope", {}],
  ]);
});

test.each(["[1]", '"s"', "[null]", "5", "true"])(
  "arguments %s, which are not an object, cannot be decoded here: stopped by ValueError, whatever the tool's name",
  async (args) => {
    const stopped = async (name: string, ...stopErrors: (new () => Error)[]) => {
      const environment = new StatefulToolEnv({
        dataset: rows,
        tools: [sq],
        setupState: () => ({}),
        updateToolArgs: (_name, sent) => sent,
        stopErrors,
        rubric: {},
      });
      const model = scripted([{ tool_calls: [call(name, args, "a")] }, "done"]);
      return (await runRollout(environment, { task, model })).error?.error_chain_str ?? null;
    };
    expect(await stopped("sq", ValueError)).toBe("ToolParseError -> ValueError");
    expect(await stopped("nope", KeyError, ValueError)).toBe("ToolParseError -> ValueError");
    expect(await stopped("sq", TypeError, KeyError)).toBeNull();
  },
);

test("R-stateful-1, R-stateful-2: the model neither sees a hidden argument nor sets it", async () => {
  const seen: Record<string, Json>[] = [];
  const environment = new StatefulToolEnv({
    dataset: rows,
    tools: [look],
    setupState: () => ({ shelf: { top: "a book" } }),
    updateToolArgs: (_name, args, _messages, state) => {
      seen.push(args);
      return { ...args, shelf: state.shelf };
    },
    rubric: {},
  });
  expect(JSON.stringify(environment.toolDefinitions)).not.toMatch(/shelf|\$defs/);
  const forged = call("look", { at: "top", shelf: { top: "mine" } }, "a");
  const report = await runRollout(environment, {
    task,
    model: scripted([{ tool_calls: [forged] }, "done"]),
  });
  expect(seen).toEqual([{ at: "top" }]);
  expect(report.completion[1]?.content).toBe("a book");
});

test("an error in updateToolArgs ends the rollout", async () => {
  const environment = new StatefulToolEnv({
    dataset: rows,
    tools: [sq],
    setupState: () => ({}),
    updateToolArgs: () => {
      throw new EnvError("no session");
    },
    rubric: {},
  });
  const model = scripted([{ tool_calls: [call("sq", { x: 1 }, "a")] }]);
  const report = await runRollout(environment, { task, model });
  expect(report.error).toMatchObject({ error: "EnvError", message: "no session" });
});

test("a hidden argument that updateToolArgs does not provide ends the rollout with its name", async () => {
  const environment = new StatefulToolEnv({
    dataset: rows,
    tools: [look],
    setupState: () => ({}),
    updateToolArgs: (_name, args) => args,
    rubric: {},
  });
  const model = scripted([{ tool_calls: [call("look", { at: "top" }, "a")] }]);
  const report = await runRollout(environment, { task, model });
  expect(report.error?.message).toContain("the hidden argument shelf of look");
});

test("a hidden argument with the name of a parameter is refused", () => {
  expect(() =>
    tool({
      name: "both",
      description: "",
      parameters: z.object({ db: z.string() }),
      hidden: { db: inject<string>() },
      run: () => "",
    }),
  ).toThrow("db is both hidden and a parameter");
});
