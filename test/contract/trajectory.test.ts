import { expect, test } from "vitest";
import type { JsonObject } from "../../src/contract/json.ts";
import type { Message } from "../../src/contract/messages.ts";
import {
  addUsage,
  historyOf,
  packState,
  packTurns,
  promptOf,
  type Turn,
  unpackState,
  unpackTurns,
} from "../../src/contract/trajectory.ts";

const user = (content: string): Message => ({ role: "user", content });
const said = (content: string): Message => ({ role: "assistant", content });

function turn(index: number, change: Partial<Turn> = {}): Turn {
  return {
    index,
    prompt: { keep: 0, append: [] },
    completion: said(`a${index}`),
    finish_reason: "stop",
    usage: null,
    tokens: null,
    is_truncated: false,
    calls: 1,
    latency_ms: 0,
    response_id: null,
    model: null,
    policy_version: null,
    answered_at: 0,
    state_after: null,
    ...change,
  };
}

test("a state is stored as its changes, removed keys are listed, and null is a value like any other", () => {
  const before = { a: 1, b: [1, 2], c: { d: null } };
  const after = { b: [1, 2], c: null, e: "new" };
  expect(packState(before, after, 0)).toEqual({ set: { c: null, e: "new" }, unset: ["a"] });
  expect(unpackState(before, packState(before, after, 0))).toEqual(after);
  expect(packState(before, before, 0)).toEqual({ set: {} });
});

test("an equal value with its keys in another order is no change", () => {
  expect(packState({ a: { x: 1, y: 2 } }, { a: { y: 2, x: 1 } }, 0)).toEqual({ set: {} });
});

test("every eighth state is stored whole", () => {
  const states = Array.from({ length: 17 }, (_, n): JsonObject => ({ n, kept: "same" }));
  const packed = packTurns(
    {},
    states.map((state, n) => turn(n, { state_after: state })),
  );
  const whole = packed.flatMap(({ index, state_after }) => (state_after?.whole ? [index] : []));
  expect(whole).toEqual([7, 15]);
  expect(packed[1]?.state_after).toEqual({ set: { n: 1 } });
});

test("unpacking turns gives the packed turns, including one without a state", () => {
  const turns = Array.from({ length: 20 }, (_, n) =>
    turn(n, { state_after: n === 19 ? null : { n, [`only_${n % 3}`]: true } }),
  );
  const packed = JSON.parse(JSON.stringify(packTurns({ start: 1 }, turns)));
  expect(unpackTurns({ start: 1 }, packed)).toEqual(turns);
});

test("a growing history shares the earlier messages; a rewritten one loses nothing", () => {
  const grown = [
    turn(0, { prompt: { keep: 0, append: [user("q")] } }),
    turn(1, { prompt: { keep: 2, append: [user("more")] } }),
  ];
  expect(historyOf(grown)).toEqual([user("q"), said("a0"), user("more"), said("a1")]);
  const rewritten = { keep: 1, append: [user("summary")] };
  expect(promptOf(grown, 2, rewritten)).toEqual([user("q"), user("summary")]);
  expect(historyOf([])).toEqual([]);
});

test("a turn may continue the conversation of an earlier turn than the one before", () => {
  const turns = [
    turn(0, { prompt: { keep: 0, append: [user("main")] } }),
    turn(1, { prompt: { keep: 0, append: [user("side")] } }),
    turn(2, { prompt: { after: 0, keep: 2, append: [user("more")] } }),
    turn(3, { prompt: { after: 1, keep: 2, append: [user("and")] } }),
    turn(4, { prompt: { after: 2, keep: 1, append: [user("in short")] } }),
  ];
  const main = [user("main"), said("a0"), user("more"), said("a2")];
  expect(historyOf(turns.slice(0, 3))).toEqual(main);
  expect(historyOf(turns.slice(0, 4))).toEqual([user("side"), said("a1"), user("and"), said("a3")]);
  expect(historyOf(turns)).toEqual([user("main"), user("in short"), said("a4")]);
  expect(promptOf(turns, 5, { after: 2, keep: 4, append: [user("on")] })).toEqual([...main, user("on")]);
});

test("usage is added over the turns that have it", () => {
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  expect(addUsage([turn(0, { usage }), turn(1), turn(2, { usage })])).toEqual({
    prompt_tokens: 6,
    completion_tokens: 4,
    total_tokens: 10,
  });
});
