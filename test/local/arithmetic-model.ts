/**
 * A scripted model that plays `calculator` in exactly three turns. It records the prompt for each idempotency key, and
 * the tokens that it reported for that key. It runs outside the processes that a test kills, so its log is complete.
 */
import { setTimeout as pause } from "node:timers/promises";
import { textOf, type Usage } from "../../src/contract/messages.ts";
import type { ReplyParts } from "../fakes/completion-body.ts";
import { type ModelRequest, type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";

export const TURNS = 3;

export interface ArithmeticModel {
  readonly url: string;
  /** How often each idempotency key was used. */
  asked(): ReadonlyMap<string, number>;
  /** Epoch milliseconds of every request, in order. */
  times(): readonly number[];
  /** Requests without an answer whose connection is still open. */
  unanswered(): number;
  /** The number of keys that were answered at least once, whether or not the answer was received. */
  answered(): number;
  /** The latency of requests that arrive from now on. */
  setLatency(ms: number): void;
  /** Tokens reported, with each key counted once. */
  usage(): Omit<Usage, "total_tokens">;
  /** Keys that were used again with another prompt. */
  readonly changed: readonly string[];
  stop(): Promise<void>;
}

export async function startArithmeticModel(latencyMs: number): Promise<ArithmeticModel> {
  const prompts = new Map<string, string>();
  const usages = new Map<string, Usage>();
  const changed: string[] = [];
  let latency = latencyMs;
  const model = await startScriptedModel({
    async reply(request) {
      request.begin();
      await pause(latency, undefined, { ref: false });
      const key = String(request.headers["idempotency-key"]);
      const prompt = JSON.stringify(request.messages);
      if ((prompts.get(key) ?? prompt) !== prompt) changed.push(key);
      prompts.set(key, prompt);
      const reply = nextStep(request);
      usages.set(key, reply.usage);
      return reply;
    },
  });
  return {
    url: model.url,
    changed,
    asked: () => countKeys(model),
    times: () => model.requests.map(({ at }) => at),
    unanswered: () => model.inFlight(),
    answered: () => usages.size,
    setLatency: (ms) => {
      latency = ms;
    },
    usage: () => sum([...usages.values()]),
    stop: () => model.stop(),
  };
}

function nextStep({ messages }: ModelRequest): ReplyParts & { usage: Usage } {
  const question = textOf(messages.find(({ role }) => role === "user"));
  const [a = 0, b = 0, c = 0] = (question.match(/\d+/g) ?? []).map(Number);
  const results = messages.filter(({ role }) => role === "tool").map(textOf);
  const usage = usageOf(messages.length, question.length);
  const [product, sum] = results.map(Number);
  if (product === undefined) return { tool_calls: [call("multiply", a, b)], usage };
  if (sum === undefined) return { tool_calls: [call("add", product, c)], usage };
  return { content: `It is ${sum}.`, usage };
}

function call(name: string, a: number, b: number) {
  return { name, arguments: { a, b } };
}

/** Different for each turn and task, so that a turn charged in place of another would change the sum. */
function usageOf(messages: number, characters: number): Usage {
  const [prompt_tokens, completion_tokens] = [messages * 1000 + characters, messages + 7];
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

function countKeys(model: ScriptedModel): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { idempotency_key: key } of model.requests) {
    counts.set(String(key), (counts.get(String(key)) ?? 0) + 1);
  }
  return counts;
}

function sum(usages: readonly Usage[]): Omit<Usage, "total_tokens"> {
  const prompt_tokens = usages.reduce((total, usage) => total + usage.prompt_tokens, 0);
  const completion_tokens = usages.reduce((total, usage) => total + usage.completion_tokens, 0);
  return { prompt_tokens, completion_tokens };
}
