/** The failure of a tool call is recorded when it is answered, outside of the result that the model reads. */
import { dataset, inject, MCPEnv, StatefulToolEnv, ToolEnv, tool } from "rollcall";
import { type Reply, runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import type { Messages } from "../../../src/contract/messages.ts";
import type { Trajectory } from "../../../src/contract/trajectory.ts";
import { failuresIn } from "../../../src/core/rollout/tool-failures.ts";
import { McpShop } from "../../fakes/mcp-shop.ts";
import { answersTo, boom, environmentOf, returning, sq, task } from "../../fixtures/tool-answers.ts";

const rows = dataset(z.object({ question: z.string() }), "uploaded");
const calls = (...made: readonly (readonly [name: string, args: string | object, id?: string])[]): Reply => {
  return {
    tool_calls: made.map(([name, args, id], at) => ({ name, arguments: args, id: id ?? `c${at}` })),
  };
};
const recorded = ({ turns }: Trajectory) => turns.map(({ tool_failed }) => tool_failed);

test("a call fails if its tool throws or does not exist, or if its arguments do not parse or fit; other calls do not fail", async () => {
  const { report } = await answersTo([
    ["sq", { x: 3 }],
    ["boom", {}],
    ["nope", {}],
    ["sq", "{"],
    ["sq", { x: "three" }],
    ["sq", "[]"],
  ]);
  expect(recorded(report.trajectory)).toEqual([[false, true, true, true, true, true], undefined]);
});

test("the text of a result does not decide whether the call failed", async () => {
  const { report } = await answersTo([["give", {}]], { tools: [returning("Error: said on purpose")] });
  expect(recorded(report.trajectory)[0]).toEqual([false]);
  const { report: worded } = await answersTo([["boom", {}]], { tools: [boom], formatError: () => "36" });
  expect(recorded(worded.trajectory)[0]).toEqual([true]);
});

test("the model only gets the results, also after restarts, which keep the recorded failures", async () => {
  const sent: Messages[] = [];
  const next = scripted([calls(["boom", {}], ["sq", { x: 2 }]), calls(["sq", { x: 3 }]), "done"]);
  const report = await runRollout(environmentOf(), {
    task,
    model: (request) => {
      sent.push(request.messages);
      return next(request);
    },
    restartAfterEachTurn: true,
  });
  expect(recorded(report.trajectory)).toEqual([[true, false], [false], undefined]);
  const results = (sent.at(-1) ?? []).filter(({ role }) => role === "tool");
  expect(results).toEqual([
    { role: "tool", tool_call_id: "c0", content: "bad thing" },
    { role: "tool", tool_call_id: "c1", content: "4" },
    { role: "tool", tool_call_id: "c0", content: "9" },
  ]);
  expect(failuresIn(report.trajectory)).toEqual([true, false, false]);
});

test("calls of a turn that share an id are distinguished by their order", async () => {
  const model = scripted([calls(["sq", { x: 2 }, "x"], ["boom", {}, "x"], ["sq", { x: 3 }, "x"]), "done"]);
  const { trajectory } = await runRollout(environmentOf(), { task, model });
  expect(recorded(trajectory)[0]).toEqual([false, true, false]);
  expect(failuresIn(trajectory)).toEqual([false, true, false]);
});

class OwnAnswers extends ToolEnv<{ question: string }> {
  override async envResponse(...[messages, state]: Parameters<ToolEnv<{ question: string }>["envResponse"]>) {
    const last = messages.at(-1);
    const all = last?.tool_calls ?? [];
    const others = all.filter(({ function: called }) => called.name !== "submit");
    const given = all.filter((call) => !others.includes(call));
    const own = given.map(({ id }) => ({ role: "tool" as const, tool_call_id: id, content: "Error: not accepted" }));
    if (last === undefined || others.length === 0) return own;
    const rest = await super.envResponse([...messages.slice(0, -1), { ...last, tool_calls: others }], state);
    return [...own, ...rest];
  }
}

test("for a call that an environment answers by its own code nothing is recorded", async () => {
  const environment = new OwnAnswers({ dataset: rows, tools: [sq, boom], rubric: {} });
  const mixed = calls(["boom", {}], ["submit", {}], ["sq", { x: 2 }]);
  const model = scripted([calls(["submit", {}]), mixed, "done"]);
  const { trajectory } = await runRollout(environment, { task, model });
  expect(recorded(trajectory)).toEqual([undefined, [true, null, false], undefined]);
  // The results are in another order than the calls.
  expect(failuresIn(trajectory)).toEqual([null, null, true, false]);
  const alone = scripted([calls(["submit", {}]), "done"]);
  const silent = await runRollout(environment, { task, model: alone });
  expect(failuresIn(silent.trajectory)).toBe(null);
});

test("the results of a last reply, which no turn follows, are included", async () => {
  class Ends extends ToolEnv<{ question: string }> {
    override async envResponse(...[messages, state]: Parameters<ToolEnv<{ question: string }>["envResponse"]>) {
      state.final_env_response = await super.envResponse(messages, state);
      return [];
    }
  }
  const environment = new Ends({ dataset: rows, tools: [sq, boom], rubric: {} });
  const model = scripted([calls(["sq", { x: 1 }], ["boom", {}])]);
  const { trajectory } = await runRollout(environment, { task, model });
  expect(recorded(trajectory)).toEqual([[false, true]]);
  expect(failuresIn(trajectory)).toEqual([false, true]);
});

test("results that a hook repeats under the same id are not taken for others", async () => {
  class Repeats extends ToolEnv<{ question: string }> {
    override async getPromptMessages(...[state]: Parameters<ToolEnv<{ question: string }>["getPromptMessages"]>) {
      const messages = await super.getPromptMessages(state);
      return typeof messages === "string"
        ? messages
        : [{ role: "user" as const, content: `asked ${state.turn}` }, ...messages.slice(1)];
    }
  }
  const environment = new Repeats({ dataset: rows, tools: [sq, boom], rubric: {} });
  const model = scripted([calls(["sq", { x: 1 }, "x"]), calls(["boom", {}, "x"]), "done"]);
  const { trajectory } = await runRollout(environment, { task, model });
  expect(recorded(trajectory).slice(0, 2)).toEqual([[false], [true]]);
  expect(failuresIn(trajectory)).toEqual([null, null]);
});

test("a call with hidden arguments fails if its tool throws, or if its arguments are not an object", async () => {
  const look = tool({
    name: "look",
    description: "",
    parameters: z.object({}),
    hidden: { shelf: inject<string>() },
    run: ({ shelf }) => {
      if (shelf === "empty") throw new Error("nothing there");
      return shelf;
    },
  });
  const environment = new StatefulToolEnv({
    dataset: rows,
    tools: [look],
    setupState: () => ({}),
    updateToolArgs: (_name, args, messages) => ({ ...args, shelf: messages.length > 2 ? "empty" : "tea" }),
    rubric: {},
  });
  const model = scripted([calls(["look", {}], ["look", "[1]"]), calls(["look", {}]), "done"]);
  const { trajectory } = await runRollout(environment, { task, model });
  expect(recorded(trajectory)).toEqual([[false, true], [true], undefined]);
});

test("a call fails if the MCP server marks its result as an error, whatever the text", async () => {
  const shop = new McpShop();
  const environment = new MCPEnv({ dataset: rows, servers: { shop: { url: "https://shop.example/mcp" } }, rubric: {} });
  environment.needs = ["fetch"];
  const asked = [calls(["pay", {}], ["add", { item: "tea" }], ["add", { item: 5 }], ["steal", {}]), "done"];
  const { trajectory } = await runRollout(environment, {
    task,
    model: scripted(asked),
    capabilities: { fetch: async (url, options) => await shop.fetch(new Request(url, options as RequestInit)) },
  });
  expect(trajectory.error).toBe(null);
  expect(recorded(trajectory)).toEqual([[true, false, true, true], undefined]);
});
