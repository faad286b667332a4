/**
 * A finished rollout as a line of verifiers' `results.jsonl`, for the tools that read those files.
 *
 * Invariants. Keys and their order are verifiers' (its `save_utils.py`): what is empty of `answer` and `info` is left
 * out, tool calls are JSON texts in their list, every metric stands once more beside the rest, extra columns come last.
 * Neither a metric nor a column replaces a field that is there (a metric called `reward` leaves the reward alone). A
 * reward that was not produced is null.
 */
import * as z from "zod";
import type { ResultRow } from "../../contract/run.ts";

/** What a wire message's tool calls look like; a message without them has none. */
const WithCalls = z.object({
  tool_calls: z
    .array(
      z.object({
        id: z.string(),
        function: z.object({ name: z.string(), arguments: z.string() }),
      }),
    )
    .min(1),
});

export function verifiersRow(row: ResultRow, columns: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const { error, answer, info } = row;
  const fields = {
    example_id: row.example_id,
    prompt: row.prompt.map(saveMessage),
    completion: row.completion.map(saveMessage),
    ...(answer !== undefined && { answer }),
    ...(info !== undefined && { info }),
    reward: row.reward,
    error: error === null ? null : errorInfo(error),
    timing: timingOf(row),
    is_completed: row.is_completed,
    is_truncated: row.is_truncated,
    stop_condition: row.stop_condition,
    metrics: row.metrics,
    tool_defs: row.tool_defs ?? null,
    ...(hasUsage(row) && { token_usage: usageOf(row) }),
    ...(error !== null && {
      error_chain: error.error_chain_repr,
      long_error_chain: error.error_chain_str,
    }),
  };
  return { ...fields, ...without(row.metrics, fields), ...without(columns, fields) };
}

function hasUsage({ token_usage }: ResultRow): boolean {
  return token_usage.input_tokens + token_usage.output_tokens > 0;
}

/** Theirs has no cached tokens. */
function usageOf({ token_usage: { cached_input_tokens: _, ...usage } }: ResultRow) {
  return usage;
}

function errorInfo(error: NonNullable<ResultRow["error"]>): Record<string, string> {
  const { error_chain_repr, error_chain_str } = error;
  return { error: error.error, error_chain_repr, error_chain_str };
}

/** Seconds. What took how long within the rollout is not told apart: all of it is `generation`. */
function timingOf({ timing: { start_time, total } }: ResultRow) {
  const generation = { start: start_time, end: start_time + total, duration: total };
  return { start_time, generation, total };
}

/** Tool calls as verifiers keeps them: `{id, name, arguments}`, each as a text. */
function saveMessage(message: Record<string, unknown>): Record<string, unknown> {
  const { success, data } = WithCalls.safeParse(message);
  if (!success) return message;
  const tool_calls = data.tool_calls.map(({ id, function: { name, arguments: given } }) =>
    JSON.stringify({ id, name, arguments: given }),
  );
  return { ...message, tool_calls };
}

function without(
  more: Readonly<Record<string, unknown>>,
  taken: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(more).filter(([name]) => !Object.hasOwn(taken, name)));
}
