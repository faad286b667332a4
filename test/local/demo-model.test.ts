import { expect, test } from "vitest";
import type { Message, ToolDefinition } from "../../src/core/messages.ts";
import type { Reply, ReplyParts } from "../../src/local/completion-body.ts";
import { demoReply } from "../../src/local/demo-model.ts";

function ask(messages: Message[], tools: string[]): ReplyParts {
  const reply: Reply = demoReply({
    model: "m",
    messages,
    tools: tools.map(
      (name): ToolDefinition => ({
        type: "function",
        function: { name, description: "", parameters: { properties: { number: {} } } },
      }),
    ),
    headers: {},
    body: {},
  });
  return typeof reply === "string" ? { content: reply } : reply;
}

/** Plays until it says something without a tool call, or for `turns` turns. */
function play(
  question: string,
  tools: string[],
  run: (name: string, args: Record<string, number>) => string,
  turns: number,
): string[] {
  const messages: Message[] = [{ role: "user", content: question }];
  const results: string[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const { content = null, tool_calls: calls = [] } = ask(messages, tools);
    if (calls.length === 0) return [...results, content ?? ""];
    for (const call of calls) {
      const args = typeof call.arguments === "string" ? {} : { ...call.arguments };
      const result = run(call.name, args as Record<string, number>);
      const sent = { name: call.name, arguments: JSON.stringify(args) };
      const tool_calls = [{ id: "c", type: "function" as const, function: sent }];
      messages.push({ role: "assistant", content: null, tool_calls });
      messages.push({ role: "tool", content: result, tool_call_id: "c" });
      results.push(result);
    }
  }
  return results;
}

test("it multiplies and adds, mostly rightly", () => {
  const right = Array.from({ length: 200 }, (_, i) => {
    const [a, b] = [i, (i * 7) % 50];
    const said = play(
      `What is ${a} * ${b} + ${a}?`,
      ["add", "multiply"],
      (name, args) => {
        const [x = 0, y = 0] = [args["a"], args["b"]];
        return String(name === "add" ? x + y : x * y);
      },
      4,
    );
    return said.at(-1)?.match(/\d+/g)?.at(-1) === String(a * b + a);
  });
  const share = right.filter(Boolean).length / right.length;
  expect(share).toBeGreaterThan(0.6);
  expect(share).toBeLessThan(0.95);
});

test("it finds most secret numbers in ten guesses, not all in seven", () => {
  const guesses = Array.from({ length: 100 }, (_, index) => {
    const secret = index + 1;
    const answers = play(
      "A number from 1 to 100. Find it with the guess tool.",
      ["guess"],
      (_name, { number = 0 }) => {
        if (number === secret) return "correct";
        return number < secret ? "higher" : "lower";
      },
      10,
    );
    return answers.indexOf("correct") + 1;
  });
  const found = guesses.filter((count) => count > 0).length;
  expect(found).toBeGreaterThan(50);
  expect(found).toBeLessThan(100);
});

test("the same conversation gets the same reply", () => {
  const messages: Message[] = [{ role: "user", content: "What is 3 * 4 + 3?" }];
  const tools = ["add", "multiply"];
  expect(ask(messages, tools)).toEqual(ask(messages, tools));
});
