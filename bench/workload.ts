/**
 * The conversation that both sides play: one question, a tool call on every turn but the last, and an answer. It
 * depends only on the number of turns, so the model, the platform and the baseline use the same one without
 * communication.
 */

import type { EvalRequestInput } from "../src/contract/eval-request.ts";
import type { Message, ToolDefinition } from "../src/contract/messages.ts";
import type { Reply } from "../test/fakes/completion-body.ts";

/** How many conversations run at once, on both sides and at every latency. */
export const IN_FLIGHT = 100;
export const MODEL = "bench";

export interface Workload {
  readonly environment: Pick<EvalRequestInput, "environment" | "environment_args">;
  readonly question: string;
  readonly tools: readonly ToolDefinition[];
  readonly call: { readonly name: string; readonly arguments: Readonly<Record<string, number>> };
  /** The tool's answer. */
  readonly result: string;
}

/** `calculator` itself ends after this many turns. */
const CALCULATOR_TURNS = 4;

export function workload(turns: number): Workload {
  return turns <= CALCULATOR_TURNS ? calculator() : guessNumber(turns);
}

/**
 * The model's part: it only counts its earlier replies. With `tokens` it returns ids and logprobs, as an engine for
 * training does.
 */
export function modelReply(turns: number, messages: readonly Message[], tokens = false): Reply {
  const said = messages.filter((message) => message.role === "assistant").length;
  const parts = said + 1 >= turns ? { content: "The answer is 48." } : { tool_calls: [workload(turns).call] };
  return tokens ? { ...parts, ...tokensOf(said) } : parts;
}

const QUESTION_TOKENS = 100;
const ANSWER_TOKENS = 24;
const RESULT_TOKENS = 8;

/** Every prompt begins with the previous prompt and its answer, so that a conversation is one sample. */
function tokensOf(said: number) {
  const prompt = QUESTION_TOKENS + said * (ANSWER_TOKENS + RESULT_TOKENS);
  const ids = Array.from({ length: prompt + ANSWER_TOKENS }, (_, at) => at);
  return {
    prompt_token_ids: ids.slice(0, prompt),
    token_ids: ids.slice(prompt),
    logprobs: Array<number>(ANSWER_TOKENS).fill(-0.25),
  };
}

function calculator(): Workload {
  const operands = {
    a: { title: "A", type: "number", description: "left operand" },
    b: { title: "B", type: "number", description: "right operand" },
  };
  return {
    environment: { environment: "calculator" },
    question: "What is 12 * 31 + 12?",
    tools: [
      definition("add", "Add two numbers.", operands),
      definition("subtract", "Subtract the second number from the first.", operands),
      definition("multiply", "Multiply two numbers.", operands),
    ],
    call: { name: "add", arguments: { a: 12, b: 36 } },
    result: "48",
  };
}

function guessNumber(turns: number): Workload {
  const number = {
    title: "Number",
    type: "integer",
    description: "your guess",
    minimum: Number.MIN_SAFE_INTEGER,
    maximum: Number.MAX_SAFE_INTEGER,
  };
  const description = "Guess the number. Answers correct, or higher or lower and the range that is left.";
  return {
    // One extra turn: the conversation ends with the model's answer, not with the limit.
    environment: { environment: "guess-number", environment_args: { max_turns: turns + 1 } },
    question: "I am thinking of a whole number from 1 to 100. Find it with the guess tool.",
    tools: [definition("guess", description, { number })],
    // The secret is at least 1, so this is never right.
    call: { name: "guess", arguments: { number: 0 } },
    result: "higher, 1 to 100",
  };
}

/** The same definition as the environment's own tools have, so that both sides send the same bytes. */
function definition(name: string, description: string, properties: Readonly<Record<string, unknown>>): ToolDefinition {
  const parameters = {
    type: "object",
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
    title: `${name}_args`,
  };
  return { type: "function", function: { name, description, parameters, strict: true } };
}
