import { dataset, InfraError, inject, ToolEnv, textOf, tool } from "rollcall";
import { type Reply, runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Call } from "../../../src/core/environments/contract.ts";
import { Harness } from "../../../src/core/rollout/harness.ts";
import { advance, newRollout, type Rollout } from "../../../src/core/rollout/rollout.ts";
import { answersTo, environmentOf, returning, sq, task } from "../../fixtures/tool-answers.ts";

/** A rollout whose last turn made these calls, and which waits for the environment's reply. */
function answeredWith(calls: readonly (readonly [string, string])[], turns: number): Rollout {
  const prompt = [{ role: "user", content: "q" }] as const;
  const tool_calls = calls.map(([name, args], at) => {
    return { id: `c${at}`, type: "function" as const, function: { name, arguments: args } };
  });
  const message = { role: "assistant", content: null, tool_calls } as const;
  const ids = { prompt_ids: null, completion_ids: null, completion_logprobs: null };
  const said = { id: null, model: null, usage: null, policy_version: null, latency_ms: 0, ...ids };
  const response = { ...said, message, finish_reason: "tool_calls" } as const;
  const begun = newRollout({ id: "ro", task_key: "k", example_id: 0, task, prompt, answer: "", info: {} }, 0);
  const setUp = advance(begun, { type: "set_up", state: {} });
  return Array.from({ length: turns }).reduce<Rollout>((rollout) => {
    const replied = { type: "replied", prompt, state: {}, final_env_response: null } as const;
    const sent = advance(advance(rollout, replied), { type: "sent" });
    return advance(sent, { type: "answered", response, at: 0 });
  }, setUp);
}

test("calls are answered in order, a failing one with its error's text, and the next one still runs", async () => {
  const { report, texts } = await answersTo([
    ["sq", { x: 3 }],
    ["boom", {}],
    ["nope", {}],
    ["sq", '{"x": invalid}'],
    ["sq", { x: 2 }],
  ]);
  expect(texts).toEqual(["9", "bad thing", "there is no tool named nope", texts[3], "4"]);
  expect((await answersTo([["", {}]])).texts).toEqual(["the call names no tool"]);
  expect(texts[3]).not.toBe("");
  expect(report.stop_condition).toBe("no_tools_called");
  expect(report.completion.map((message) => message.tool_call_id)).toEqual([
    undefined,
    "c0",
    "c1",
    "c2",
    "c3",
    "c4",
    undefined,
  ]);
});

const refuse = (): never => {
  throw new Error("a getter");
};

test.each([
  ["a getter that throws", Object.defineProperty(new Error("a"), "message", { get: refuse })],
  ["an object", Object.defineProperty(new Error("a"), "message", { value: {} })],
  ["an error that is no error", Object.create(null)],
])("a message that is %s is answered with the tool's name, and the next call still runs", async (_what, thrown) => {
  const run = () => {
    throw thrown;
  };
  const odd = tool({ name: "odd", description: "", parameters: z.object({}), run });
  const calls: [string, object][] = [
    ["odd", {}],
    ["sq", { x: 2 }],
  ];
  const { texts } = await answersTo(calls, { tools: [odd, sq] });
  expect(texts).toEqual(["the tool odd threw an error without a readable message", "4"]);
});

test("attempted calls are counted, including failed ones; a call of an unknown tool only in the total", async () => {
  const { report } = await answersTo([
    ["sq", { x: 3 }],
    ["sq", "{"],
    ["nope", {}],
  ]);
  expect(report.metrics).toEqual({ num_turns: 2, total_tool_calls: 3, sq_calls: 2, boom_calls: 0 });
});

test.each(["[1]", '"s"', "true", "5"])(
  "R-tools-5: arguments %s are not an object: the tool is not called",
  async (args) => {
    const { texts } = await answersTo([["sq", args]]);
    expect(texts[0]).toMatch(/must be an object/);
  },
);

test("the model gets the names of wrong arguments, and unknown ones are not ignored", async () => {
  const { texts } = await answersTo([
    ["sq", { x: "3" }],
    ["sq", { x: 3, y: 4 }],
    ["sq", {}],
  ]);
  expect(texts[0]).toMatch(/^bad arguments for sq: x: /);
  expect(texts[1]).toMatch(/"y"/);
  expect(texts[2]).toMatch(/x: /);
});

test.each([
  [[1, 2, 3], "[1,2,3]"],
  [{ a: 1 }, '{"a":1}'],
  [null, "null"],
  [undefined, "null"],
  [true, "true"],
  [0.1, "0.1"],
  ["s", "s"],
  ["", ""],
])("R-tools-1: a tool's result %j reaches the model as %j", async (value, text) => {
  expect((await answersTo([["give", {}]], { tools: [returning(value)] })).texts).toEqual([text]);
});

const picture = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0K" } };

test.each([[[{ type: "text", text: "a" }, picture]], [[]]])(
  "R-tools-2: a list of text and image parts reaches the model unchanged: %j",
  async (value) => {
    expect((await answersTo([["give", {}]], { tools: [returning(value)] })).texts).toEqual([value]);
  },
);

test.each([
  [[{ type: "input_audio", input_audio: { data: "", format: "wav" } }]],
  [[picture, 1]],
  [[{ text: "no type" }]],
  [[{ type: "text" }]],
  [picture],
])("R-tools-2: any other list, and a single part, becomes text: %j", async (value) => {
  const { texts } = await answersTo([["give", {}]], { tools: [returning(value)] });
  expect(texts).toEqual([JSON.stringify(value)]);
});

test("the size limit of a text also holds for parts", async () => {
  const long = [{ type: "text", text: "x".repeat(LIMITS.toolResultBytes) }];
  const { texts } = await answersTo([["give", {}]], { tools: [returning(long)] });
  expect(texts).toEqual([`the result of give is over ${LIMITS.toolResultBytes} bytes`]);
});

test("R-tools-6: adding or removing a tool changes definitions, calls and metrics together", async () => {
  const environment = environmentOf();
  const names = () => environment.toolDefinitions.map((one) => one.function.name);
  const metrics = async () => {
    const report = await runRollout(environment, { task, model: scripted(["done"]) });
    return Object.keys(report.metrics);
  };
  environment.addTool(sq);
  environment.addTool(returning("new"));
  expect(names()).toEqual(["sq", "boom", "give"]);
  const counted = ["num_turns", "total_tool_calls", "sq_calls", "boom_calls", "give_calls"];
  expect(await metrics()).toEqual(counted);
  environment.removeTool("boom");
  expect(names()).toEqual(["sq", "give"]);
  expect(await metrics()).toEqual(counted.filter((name) => name !== "boom_calls"));
  const calls = ["give", "boom"].map((name) => ({ name, arguments: {} }));
  const model = scripted([{ tool_calls: calls }, "done"]);
  const report = await runRollout(environment, { task, model });
  expect(report.completion.map(textOf)).toEqual(["", "new", "there is no tool named boom", "done"]);
  expect(() => environment.removeTool("boom")).toThrow(/no tool named boom/);
  const needy = tool({
    name: "needy",
    description: "",
    parameters: z.object({}),
    hidden: { db: inject<string>() },
    run: () => "",
  });
  expect(() => environment.addTool(needy)).toThrow(/use a StatefulToolEnv/);
});

test("a result that cannot be written as text, or is too long, is a failed call", async () => {
  const cyclic: { self?: object } = {};
  cyclic.self = cyclic;
  const long = "é".repeat(LIMITS.toolResultBytes / 2 + 1);
  for (const value of [cyclic, 1n, long]) {
    const { report, texts } = await answersTo([["give", {}]], { tools: [returning(value)] });
    expect(texts[0]?.length).toBeGreaterThan(0);
    expect(texts[0]?.length).toBeLessThan(500);
    expect(report.error).toBeNull();
  }
});

class SandboxError extends InfraError {}

test("R-tools-4: an infrastructure error inside a tool ends the rollout whatever stopErrors says, and may be retried", async () => {
  const broken = tool({
    name: "broken",
    description: "",
    parameters: z.object({}),
    run: () => {
      throw new SandboxError("container lost");
    },
  });
  const { report } = await answersTo([["broken", {}]], { tools: [broken] });
  expect(report.error).toMatchObject({ message: "container lost", retryable: true });
});

test("R-tools-3: formatError makes the text of errors in both stages", async () => {
  const { texts } = await answersTo(
    [
      ["boom", {}],
      ["sq", "{"],
    ],
    { formatError: (error) => `!${error.name}` },
  );
  expect(texts).toEqual(["!Error", "!SyntaxError"]);
});

test("each call has a key that a restart does not change, even if the model repeats an id", async () => {
  const keys: string[] = [];
  const note = tool({
    name: "note",
    description: "",
    parameters: z.object({}),
    run: (_args, call: Call) => void keys.push(call.idempotencyKey),
  });
  const replies: Reply[] = [
    { tool_calls: [{ name: "note", arguments: {}, id: "x" }] },
    {
      tool_calls: [
        { name: "note", arguments: {}, id: "x" },
        { name: "note", arguments: {}, id: "x" },
      ],
    },
    "done",
  ];
  const environment = environmentOf({ tools: [note] });
  await runRollout(environment, { task, model: scripted(replies), restartAfterEachTurn: true });
  expect(keys).toEqual(["rollout:0:x", "rollout:1:x", "rollout:1:x#2"]);
});

test("R-loop-8: calls made on the last allowed turn are not run, and max_turns_reached comes before no_tools_called", async () => {
  const model = scripted([{ tool_calls: [{ name: "sq", arguments: { x: 1 } }] }]);
  const report = await runRollout(environmentOf({ maxTurns: 1 }), { task, model });
  expect(report).toMatchObject({ stop_condition: "max_turns_reached", turns: 1 });
  expect(report.completion).toHaveLength(1);
  const silent = await runRollout(environmentOf({ maxTurns: 1 }), {
    task,
    model: scripted(["hi"]),
  });
  expect(silent.stop_condition).toBe("max_turns_reached");
});

test("R-loop-7: the model is offered the tools, and the conditions are in verifiers' order", async () => {
  const environment = environmentOf();
  await runRollout(environment, {
    task,
    model: ({ tools }) => {
      expect(tools.map((one) => one.function.name)).toEqual(["sq", "boom"]);
      return "done";
    },
  });
  expect(environment.maxTurns).toBe(10);
  expect(environment.stopConditions.map((stop) => stop.name)).toEqual([
    "has_error",
    "has_final_env_response",
    "max_total_completion_tokens_reached",
    "max_turns_reached",
    "no_tools_called",
    "prompt_too_long",
  ]);
});

test("a tool that must not run twice is announced right before it runs, and only then", async () => {
  const heard: string[] = [];
  const pay = tool({
    name: "pay",
    description: "",
    parameters: z.object({ cents: z.int() }),
    idempotent: false,
    run: () => heard.push("runs"),
  });
  const environment = environmentOf({ tools: [pay, sq], maxTurns: 2 });
  const harness = new Harness(environment, {
    rolloutId: "ro",
    seed: 0,
    capabilities: { now: () => 0 },
    unrepeatable: (name) => void heard.push(name),
  });
  const reply = async (answered: number, ...calls: readonly (readonly [string, string])[]) => {
    heard.length = 0;
    await harness.perform({ kind: "reply" }, answeredWith(calls, answered));
    return [...heard];
  };
  expect(await reply(1, ["sq", '{"x":2}'])).toEqual([]);
  expect(await reply(1, ["pay", '{"cents":"no"}'])).toEqual([]);
  expect(await reply(1, ["sq", '{"x":2}'], ["pay", '{"cents":1}'])).toEqual(["pay", "runs"]);
  // The stop conditions end the rollout first.
  expect(await reply(2, ["pay", '{"cents":1}'])).toEqual([]);
});

test("two tools of one name, and hidden arguments without a provider, are refused at construction", () => {
  expect(() => environmentOf({ tools: [sq, sq] })).toThrow("two tools are named sq");
  const needy = { ...sq, name: "needy", hidden: ["db"] };
  expect(() => environmentOf({ tools: [needy] })).toThrow("use a StatefulToolEnv");
});

test("a row may have tools, which replace the environment's", async () => {
  const asked = dataset(z.object({ question: z.string(), info: z.json() }), "uploaded");
  const parameters = { type: "object", properties: {} };
  const tool_defs = [{ name: "theirs", description: "Theirs.", parameters, strict: null }];
  const offered: unknown[] = [];
  await runRollout(new ToolEnv({ dataset: asked, tools: [sq], rubric: {} }), {
    task: { question: "q", info: { tool_defs } },
    model: ({ tools }) => {
      offered.push(...tools);
      return "done";
    },
  });
  const theirs = { name: "theirs", description: "Theirs.", parameters };
  expect(offered).toEqual([{ type: "function", function: theirs }]);
});
