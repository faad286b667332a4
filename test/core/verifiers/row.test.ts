import { expect, test } from "vitest";
import { verifiersRow } from "../../../src/core/verifiers/row.ts";
import { finishedRow as row } from "../../fixtures/finished-row.ts";

const error = {
  error: "ToolCallError",
  message: "no such tool",
  error_chain_str: "ToolCallError -> TypeError",
  error_chain_repr: "ToolCallError('no such tool') -> TypeError('no')",
  retryable: false,
};

test("the keys are verifiers' in its order, then every metric, then the columns", () => {
  const line = verifiersRow(row(), { low: 1 });
  expect(Object.keys(line)).toEqual([
    ...["example_id", "prompt", "completion", "answer", "info", "reward", "error", "timing"],
    ...["is_completed", "is_truncated", "stop_condition", "metrics", "tool_defs", "token_usage"],
    ...["right", "brief", "low"],
  ]);
  expect(line).toMatchObject({
    timing: { start_time: 100.5, generation: { start: 100.5, end: 102.5, duration: 2 }, total: 2 },
    metrics: { right: 1, brief: null },
    ...{ right: 1, brief: null, low: 1 },
  });
});

test("empty fields are left out, and an error has both forms of its chain", () => {
  const line = verifiersRow(
    row({
      ...{ answer: undefined, info: undefined, reward: null, tool_defs: undefined, error },
      token_usage: { input_tokens: 0, output_tokens: 0 },
      metrics: {},
    }),
  );
  expect(Object.keys(line)).toEqual([
    ...["example_id", "prompt", "completion", "reward", "error", "timing", "is_completed"],
    ...["is_truncated", "stop_condition", "metrics", "tool_defs", "error_chain"],
    "long_error_chain",
  ]);
  expect(line["error"]).toEqual({
    error: "ToolCallError",
    error_chain_repr: error.error_chain_repr,
    error_chain_str: error.error_chain_str,
  });
  expect([line["error_chain"], line["long_error_chain"]]).toEqual([error.error_chain_repr, error.error_chain_str]);
  expect([line["reward"], line["tool_defs"]]).toEqual([null, null]);
});

test("a metric or a column called reward does not change the reward", () => {
  const line = verifiersRow(row({ metrics: { reward: 0.25 } }), { reward: 7, error: "mine" });
  expect(line).toMatchObject({ reward: 1.1, error: null, metrics: { reward: 0.25 } });
});

test("tool calls are JSON texts in a list, with id, name and arguments", () => {
  const asking = {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "a", type: "function", function: { name: "add", arguments: '{"a":3}' } }],
  };
  const { completion } = verifiersRow(row({ completion: [asking] })) as {
    completion: { tool_calls: string[] }[];
  };
  const [text = ""] = completion[0]?.tool_calls ?? [];
  expect(JSON.parse(text)).toEqual({ id: "a", name: "add", arguments: '{"a":3}' });
});
