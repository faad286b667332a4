/** How often tools were called: attempts, failed ones included; a call of an unknown tool counts in the total only. */
import type { ToolCall } from "../../contract/messages.ts";
import { Rubric, type ScoreFunction } from "../rubrics/rubric.ts";
import type { ScoringArgs } from "./contract.ts";

/** `total_tool_calls`, and `<tool>_calls` for each tool there is when a rollout is scored. */
export class ToolMonitor extends Rubric {
  readonly #names: () => Iterable<string>;

  constructor(names: () => Iterable<string>) {
    super();
    this.#names = names;
  }

  override get functions(): readonly ScoreFunction[] {
    const each = [...this.#names()].map((name) => metric(`${name}_calls`, (call) => call.function.name === name));
    return [metric("total_tool_calls", () => true), ...each, ...super.functions];
  }
}

function metric(name: string, counts: (call: ToolCall) => boolean): ScoreFunction {
  return { name, weight: 0, group: false, score: (args) => callsIn(args).filter(counts).length };
}

function callsIn({ completion }: Pick<ScoringArgs<unknown, unknown>, "completion">): ToolCall[] {
  return completion.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
}
