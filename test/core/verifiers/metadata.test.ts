import { expect, test } from "vitest";
import type { ResultRow } from "../../../src/contract/run.ts";
import { VerifiersMetadata } from "../../../src/core/verifiers/metadata.ts";
import { RESULT_ROW, RUN } from "../../kernel/http/examples.ts";

const tool = (name: string) => ({ name, description: "", parameters: {} });

function metadataOf(rows: readonly Partial<ResultRow>[]): Record<string, unknown> {
  const metadata = new VerifiersMetadata();
  for (const row of rows) metadata.add({ ...RESULT_ROW, ...row });
  const run = { ...RUN, rollouts_per_example: 2, status: "completed" as const };
  return metadata.of(run, ["low"], "rollcall 1.2.3");
}

test("the keys are verifiers' in its order, then ours", () => {
  expect(Object.keys(metadataOf([{}]))).toEqual([
    ...["env_id", "env_args", "model", "base_url", "num_examples", "rollouts_per_example"],
    ...["shuffle", "shuffle_seed", "sampling_args", "time", "avg_reward", "avg_metrics"],
    ...["avg_error", "pass_at_k", "pass_all_k", "pass_threshold", "usage", "version_info"],
    ...["state_columns", "tools", "name"],
    ...["run_id", "status", "counts", "report", "metadata"],
  ]);
});

test("averages weigh rows equally, leave out unscored ones, and count errors", () => {
  const error = { error: "E", message: "", error_chain_str: "", error_chain_repr: "" };
  const metadata = metadataOf([
    { example_id: 0, reward: 1, metrics: { a: 1 } },
    { example_id: 0, reward: 0, metrics: { a: 2 } },
    { example_id: 1, reward: 1, metrics: { a: null, b: 4 } },
    { example_id: 1, reward: null, metrics: {}, error: { ...error, retryable: false } },
  ]);
  expect(metadata).toMatchObject({
    avg_reward: 2 / 3,
    avg_metrics: { a: 1.5, b: 4 },
    avg_error: 0.25,
    // Example 1 is not complete.
    pass_at_k: { "1": 0.5, "2": 1 },
    pass_all_k: { "1": 0.5, "2": 0 },
    pass_threshold: 0.5,
    state_columns: ["low"],
    version_info: { vf_version: "rollcall 1.2.3", env_version: "1.0.0" },
  });
});

test("usage is a mean over the rows with usage; if none has it, it is null", () => {
  const usage = (given: number) => ({
    token_usage: {
      ...{ input_tokens: given, output_tokens: 2 },
      ...{ final_input_tokens: 3, final_output_tokens: 2 },
    },
  });
  const none = { token_usage: { input_tokens: 0, output_tokens: 0 } };
  expect(metadataOf([usage(10), usage(20), none])["usage"]).toEqual({
    ...{ input_tokens: 15, output_tokens: 2, final_input_tokens: 3, final_output_tokens: 2 },
  });
  expect(metadataOf([none])["usage"]).toBeNull();
});

test("tools are written if every row was offered the same ones, in any order", () => {
  const [add, multiply] = [tool("add"), tool("multiply")];
  const both = metadataOf([{ tool_defs: [add, multiply] }, { tool_defs: [multiply, add] }]);
  expect(both["tools"]).toEqual([multiply, add]);
  expect(metadataOf([{ tool_defs: [add] }, { tool_defs: [multiply] }])["tools"]).toBeNull();
  expect(metadataOf([{}])["tools"]).toBeNull();
});
