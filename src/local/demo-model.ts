/**
 * What the demo's model says: decent play on `calculator` and `guess-number`, with slips, so that a results table has
 * something to show. The same conversation gets the same reply, always: chance comes from a hash of what was said.
 */
import { createHash } from "node:crypto";
import type { Message } from "../core/messages.ts";
import type { Reply } from "./completion-body.ts";
import type { ModelRequest } from "./scripted-model.ts";

/** The environments it can play. */
export const DEMO_ENVIRONMENTS: readonly string[] = ["calculator", "guess-number"];
export const DEMO_MODEL = "rollcall-demo";

export function demoReply(request: ModelRequest): Reply {
  const names = request.tools.map((tool) => tool.function.name);
  if (names.includes("multiply") && names.includes("add")) return calculate(request.messages);
  const guess = request.tools.find((tool) => tool.function.name.includes("guess"));
  if (guess !== undefined) {
    const [argument = "number"] = Object.keys(Object(guess.function.parameters["properties"]));
    return guessNumber(request.messages, guess.function.name, argument);
  }
  return "I can only play the demo environments.";
}

/** `a * b + c` by the tools, one call a turn; sometimes in its head, and sometimes wrongly so. */
function calculate(messages: readonly Message[]): Reply {
  const question = messages.find((message) => message.role === "user")?.content ?? "";
  const [a = 0, b = 0, c = 0] = numbersIn(question);
  const results = messages.filter((message) => message.role === "tool");
  const mood = chance(question, "mood");
  if (mood < 0.15) return `It is ${a * b + c + (mood < 0.1 ? 10 : 0)}.`;
  if (results.length === 0) return call("multiply", { a, b });
  const product = numbersIn(results[0]?.content ?? "")[0] ?? 0;
  if (results.length === 1) return call("add", { a: mood < 0.25 ? product - 1 : product, b: c });
  return `The answer is ${numbersIn(results[1]?.content ?? "")[0] ?? "unknown"}.`;
}

/** Halves what is left of the range; a slip forgets the last hint. */
function guessNumber(messages: readonly Message[], tool: string, argument: string): Reply {
  const hints = messages.filter((message) => message.role === "tool");
  const last = hints.at(-1)?.content ?? "";
  if (/correct|found|right|yes|you (got|won)/i.test(last)) return "Found it.";
  const asked = messages.find((message) => message.role === "user")?.content ?? "";
  let [low = 1, high = 100] = numbersIn(asked);
  const guesses = messages.flatMap((message) => message.tool_calls ?? []);
  for (const [at, made] of guesses.entries()) {
    const guessed = numbersIn(made.function.arguments)[0] ?? low;
    const hint = hints[at]?.content ?? "";
    const forgotten = at === guesses.length - 1 && chance(`${guessed}${hint}${at}`, "slip") < 0.5;
    if (forgotten) continue;
    if (/too low|higher|greater|larger/i.test(hint)) low = Math.max(low, guessed + 1);
    if (/too high|lower|less|smaller/i.test(hint)) high = Math.min(high, guessed - 1);
  }
  return call(tool, { [argument]: Math.floor((low + high) / 2) });
}

function call(name: string, args: Record<string, number>): Reply {
  return { tool_calls: [{ name, arguments: args }] };
}

function numbersIn(text: string): number[] {
  return (text.match(/-?\d+(\.\d+)?/g) ?? []).map(Number);
}

/** In [0, 1), from the words alone. */
function chance(words: string, purpose: string): number {
  return createHash("sha256").update(`${purpose}:${words}`).digest().readUInt32BE(0) / 2 ** 32;
}
