/** Measures how well weights play: with the engine itself, in the real environments, over fixed examples. */

import { renderChat } from "@rollcall/policy/chat-template";
import { Engine } from "@rollcall/policy/engine";
import { parseToolCalls } from "@rollcall/policy/hermes";
import { decode } from "@rollcall/policy/tokenizer";
import type { Reply, RolloutReport, TestModel } from "../../src/core/testing.ts";
import { type Field, play, templateMessage } from "./playing-field.ts";

const MEASURING_SEED = 2;
const MAX_TOKENS = 16;

export interface Level {
  readonly environment: string;
  /** 0 is greedy. */
  readonly temperature: number;
  readonly examples: number;
  readonly reward: number;
  /** The mean of every score by its name. */
  readonly scores: Readonly<Record<string, number>>;
}

/** Sampled normally and greedily, `examples` rollouts each, all rollouts of one kind at once. */
export async function measure(fields: readonly Field[], weights: Float32Array, examples: number): Promise<Level[]> {
  const engine = new Engine({ weights, version: "measured" });
  const levels: Level[] = [];
  for (const field of fields) {
    for (const temperature of [1, 0]) {
      const plays = Array.from({ length: examples }, (_, index) =>
        play(field.environment, index, MEASURING_SEED, policy(engine, temperature, index)),
      );
      const reports = (await Promise.all(plays)).map(({ report }) => report);
      levels.push({ environment: field.id, temperature, examples, ...means(reports) });
    }
  }
  return levels;
}

/** A prompt that leaves no space for a reply gets an empty answer, which ends the rollout as the platform would. */
function policy(engine: Engine, temperature: number, index: number): TestModel {
  return async ({ messages, turn }) => {
    const prompt = renderChat(messages.map(templateMessage), { addGenerationPrompt: true });
    if (prompt.length + MAX_TOKENS > engine.contextLength) return "";
    const { tokens } = await engine.generate({
      prompt,
      maxTokens: MAX_TOKENS,
      temperature,
      topP: 1,
      topK: -1,
      minP: 0,
      seed: index * 100 + turn,
      ignoreEos: false,
      minTokens: 1,
      stopTokenIds: [],
      topLogprobs: 0,
      cacheSalt: null,
      penalties: { repetition: 1, presence: 0, frequency: 0 },
      grammar: null,
      rawLogprobs: false,
    });
    return asReply(decode(tokens.map(({ id }) => id)));
  };
}

function asReply(text: string): Reply {
  const { content, toolCalls } = parseToolCalls(text);
  return toolCalls.length === 0 ? (content ?? "") : { content, tool_calls: toolCalls };
}

function means(reports: readonly RolloutReport[]): Pick<Level, "reward" | "scores"> {
  const mean = (scoreOf: (report: RolloutReport) => number | null | undefined) =>
    reports.reduce((sum, report) => sum + (scoreOf(report) ?? 0), 0) / reports.length;
  const names = Object.keys(reports[0]?.metrics ?? {});
  return {
    reward: mean(({ reward }) => reward),
    scores: Object.fromEntries(names.map((name) => [name, mean(({ metrics }) => metrics[name])])),
  };
}
