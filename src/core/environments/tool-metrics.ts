/** How often tools were called: attempts, failed ones included; a call of an unknown tool counts in the total only. */
import type { ToolCall } from "../messages.ts";
import type { ScoringArgs } from "./contract.ts";

type ToolMetric = (args: Pick<ScoringArgs<unknown, unknown>, "completion">) => number;

/** `total_tool_calls`, and `<tool>_calls` for each tool. */
export function toolMetrics(names: readonly string[]): { metrics: Record<string, ToolMetric> } {
  const each = names.map((name): [string, ToolMetric] => [
    `${name}_calls`,
    (args) => callsIn(args).filter((call) => call.function.name === name).length,
  ]);
  return {
    metrics: { total_tool_calls: (args) => callsIn(args).length, ...Object.fromEntries(each) },
  };
}

function callsIn({ completion }: Parameters<ToolMetric>[0]): readonly ToolCall[] {
  return completion.flatMap((message) =>
    message.role === "assistant" ? (message.tool_calls ?? []) : [],
  );
}
