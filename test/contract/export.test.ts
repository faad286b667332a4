import { expect, test } from "vitest";
import { dpoRow, ExportQuery, type LeftOut, leftOutNote, pairsOf, sftRow } from "../../src/contract/export.ts";
import type { Messages } from "../../src/contract/messages.ts";
import type { Trajectory } from "../../src/contract/trajectory.ts";
import { finishedTrajectory } from "../fixtures/finished-trajectory.ts";

const ORIGIN = { run_id: "run_1", environment: "gsm8k@1.0.0", model: "m" };

function worth(reward: number, more: Partial<Trajectory> = {}) {
  return { reward, trajectory: finishedTrajectory(more) };
}

const members = (...rewards: number[]) => rewards.map((reward, at) => ({ reward, said: `words ${at}`, at }));
const places = (of: ReturnType<typeof members>) => pairsOf(of).map(([chosen, rejected]) => [chosen.at, rejected.at]);

test("the best is paired with the worst, the second best with the second worst, while their rewards differ", () => {
  expect(places(members(3, 2, 1, 0))).toEqual([
    [0, 3],
    [1, 2],
  ]);
  expect(places(members(3, 2, 1))).toEqual([[0, 2]]);
  expect(places(members(1, 1, 0, 0))).toEqual([
    [0, 3],
    [1, 2],
  ]);
  expect(places(members(1, 1, 1, 0))).toEqual([[0, 3]]);
  expect(places(members(1, 1))).toEqual([]);
  expect(places(members(0.1 + 0.2, 0.3))).toEqual([]);
  expect(places(members(1))).toEqual([]);
  expect(places([])).toEqual([]);
});

test("two equal texts are not a pair; older rollouts without recorded texts are paired", () => {
  const same = members(1, 0).map((member) => ({ ...member, said: "a" }));
  expect(pairsOf(same)).toEqual([]);
  const older = members(1, 0).map((member) => ({ ...member, said: null }));
  expect(pairsOf(older).length).toBe(1);
});

test("a bare text becomes a user message, tools are next to the messages, and nothing else is changed", () => {
  const tool = {
    type: "function",
    function: { name: "f", description: "", parameters: {} },
  } as const;
  const completion: Messages = [
    { role: "assistant", content: null, reasoning_content: "hm", tool_calls: [call("f")] },
    { role: "tool", tool_call_id: "c", content: "4" },
  ];
  const made = sftRow(ORIGIN, worth(1, { prompt: [{ role: "text", content: "hi" }], completion, tools: [tool] }));
  expect(made).toMatchObject({ row: { ...ORIGIN, reward: 1, tools: [tool] } });
  const [asked, ...said] = "row" in made ? made.row.messages : [];
  expect(asked).toEqual({ role: "user", content: "hi" });
  const decoded = { ...call("f"), function: { name: "f", arguments: {} } };
  expect(said).toEqual([{ ...completion[0], tool_calls: [decoded] }, completion[1]]);
  expect(sftRow(ORIGIN, worth(1))).not.toHaveProperty("row.tools");
});

function call(name: string, text = "{}") {
  return { id: "c", type: "function", function: { name, arguments: text } } as const;
}

function said(...texts: string[]): Partial<Trajectory> {
  const tool_calls = texts.map((text) => call("f", text));
  return { completion: [{ role: "assistant", content: null, tool_calls }] };
}

test("the arguments of a call are the object that the model wrote, the same for every reader", () => {
  const written = {
    text: "1",
    json: '{"x":1}',
    none: null,
    nested: { list: [1, { deeper: null }], empty: {} },
    float: Math.PI,
    safe: Number.MAX_SAFE_INTEGER,
    tiny: 1e-300,
    wide: "é😀\u2028",
  };
  const made = sftRow(ORIGIN, worth(1, said(JSON.stringify(written), ' {"price": 10.0} ')));
  const messages = "row" in made ? made.row.messages : [];
  const decoded = {
    tool_calls: [written, { price: 10 }].map((args) => ({ function: { arguments: args } })),
  };
  expect(messages.at(-1)).toMatchObject(decoded);
  expect(JSON.parse(JSON.stringify(messages.at(-1)))).toMatchObject(decoded);
});

test.each([
  ["", "invalid_json"],
  ['{"a":', "invalid_json"],
  ['{"a":NaN}', "invalid_json"],
  ["null", "not_an_object"],
  ["[1]", "not_an_object"],
  ['"{}"', "not_an_object"],
  ['{"id":9007199254740993}', "inexact_number"],
  ['{"id":[{"id":-123456789012345678901234567890}]}', "inexact_number"],
  ['{"far":1e999}', "inexact_number"],
  ['{"half":"\\ud800"}', "no_unicode"],
  ['{"\\udc00":1}', "no_unicode"],
  [`${'{"a":'.repeat(101)}{}${"}".repeat(101)}`, "too_deep"],
  ['{"__proto__":{"a":1}}', "too_deep"],
])("a rollout whose call has the arguments %s is left out: %s", (text, reason) => {
  const bad = worth(1, { ...said("{}", text), rollout_id: "ro_bad" });
  const left_out = { rollout_id: "ro_bad", reason };
  expect(sftRow(ORIGIN, bad)).toEqual({ left_out });
  expect(dpoRow(ORIGIN, bad, worth(0))).toEqual({ left_out });
  expect(dpoRow(ORIGIN, worth(2), bad)).toEqual({ left_out });
});

test("left-out rows are counted by reason, and the first is named", () => {
  expect(leftOutNote([])).toBeNull();
  const left = Array.from({ length: 30 }, (_, at): LeftOut => {
    return { rollout_id: `ro_${at}`, reason: at < 10 ? "invalid_json" : "prompts_differ" };
  });
  expect(leftOutNote(left)).toEqual({
    rows: 30,
    reasons: { invalid_json: 10, prompts_differ: 20 },
    rollouts: Array.from({ length: 20 }, (_, at) => `ro_${at}`),
  });
});

test("two rollouts with different prompts are not a pair", () => {
  const other = worth(0, { prompt: [{ role: "user", content: "another" }] });
  const { rollout_id } = worth(1).trajectory;
  expect(dpoRow(ORIGIN, worth(1), other)).toEqual({
    left_out: { rollout_id, reason: "prompts_differ" },
  });
  expect(dpoRow(ORIGIN, worth(1), worth(0))).toMatchObject({
    row: { chosen_reward: 1, rejected_reward: 0 },
  });
});

test("flags in a query are the words true and false", () => {
  const query = ExportQuery.parse({ dedupe: "true", best_of_group: "false" });
  expect(query).toMatchObject({ format: "sft", dedupe: true, best_of_group: false, limit: 1000 });
  expect(ExportQuery.safeParse({ dedupe: "1" }).success).toBe(false);
});
