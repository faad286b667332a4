/**
 * Writes a finished rollout as a line of verifiers' `results.jsonl`, for tools that read those files.
 *
 * Invariants. Keys and their order are verifiers' (its `save_utils.py`): an empty `answer` or `info` is left out, tool
 * calls are a list of JSON texts, every metric is also a top-level member, extra columns come last. Neither a metric
 * nor a column replaces an existing field (a metric called `reward` does not change the reward). A missing reward is
 * null.
 */
import * as z from "zod";
import type { ResultRow } from "../../contract/run.ts";

/** The tool calls of a wire message; they are optional. */
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

/** verifiers' usage has no cached tokens. */
function usageOf({ token_usage: { cached_input_tokens: _, ...usage } }: ResultRow) {
  return usage;
}

function errorInfo(error: NonNullable<ResultRow["error"]>): Record<string, string> {
  const { error_chain_repr, error_chain_str } = error;
  return { error: error.error, error_chain_repr, error_chain_str };
}

/** In seconds. The stages of a rollout are not measured separately: the whole time is `generation`. */
function timingOf({ timing: { start_time, total } }: ResultRow) {
  const generation = { start: start_time, end: start_time + total, duration: total };
  return { start_time, generation, total };
}

/** Converts tool calls to verifiers' form: `{id, name, arguments}`, each as a JSON text. */
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
