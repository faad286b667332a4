/**
 * The three ways a validation plays an environment: the right answer, silence, and chance.
 *
 * Invariants. A policy is made afresh for every rollout and says the same in each: what differs between two rollouts of
 * one task is the environment's doing.
 */

import type { JsonObject } from "../../contract/json.ts";
import { type ToolDefinition, textOf } from "../../contract/messages.ts";
import { seededRandom } from "../../contract/random.ts";
import type { AnyEnvironment } from "../environments/any-environment.ts";
import type { ModelRequest, Reply, TestModel } from "../rollout/test-model.ts";
import { drawValue, pick } from "./random-arguments.ts";

export type PolicyName = "gold" | "null" | "random";

/** Makes a model for one rollout. */
export type Policy = () => TestModel;

/**
 * What an environment's module may export as `goldPolicy`: the replies that solve a task, one a call, or a model. When the
 * replies are used up, the last one is repeated.
 */
export type GoldPolicy = (task: JsonObject) => readonly Reply[] | TestModel;

/** Says nothing, for as long as it is asked. */
export const nullPolicy: Policy = () => () => "";

/** The exported one, or else the forms in which an answer is commonly expected; none for a task without an answer. */
export function goldPolicies(
  goldPolicy: GoldPolicy | null,
  task: { readonly task: JsonObject; readonly answer: string },
): Policy[] {
  if (goldPolicy !== null) return [() => asModel(goldPolicy(task.task))];
  const { answer } = task;
  if (answer === "") return [];
  const forms = [
    answer,
    `\\boxed{${answer}}`,
    `#### ${answer}`,
    `<answer>${answer}</answer>`,
    `<think></think>${answer}`,
  ];
  return forms.map((text) => () => () => text);
}

/** Whether the answer, merely said, ought to score in full: not where it has to be reached through tools or turns. */
export function answerIsEnough(environment: AnyEnvironment): boolean {
  return environment.players.every((player) => player.toolDefinitions.length === 0 && player.maxTurns === 1);
}

/** Scraps of the prompt, numbers, and tool calls with senseless arguments. */
export function randomPolicy(example: number): Policy {
  return () => (request) => {
    const random = seededRandom("validate", example, request.turn);
    const { tools } = request;
    const speaks = request.turn > 0 && random() < 0.25;
    if (tools.length === 0 || speaks) return randomText(request, random);
    const calls = 1 + Math.floor(random() * 2);
    return { tool_calls: Array.from({ length: calls }, () => randomCall(tools, random)) };
  };
}

function asModel(gold: readonly Reply[] | TestModel): TestModel {
  if (typeof gold === "function") return gold;
  // It comes from the author's module, where nothing may have checked its type.
  if (Array.isArray(gold)) return ({ turn }) => gold[turn] ?? gold.at(-1) ?? "";
  throw new TypeError(
    `goldPolicy returned ${Object.prototype.toString.call(gold)}: return a list of replies, or a function that gives one`,
  );
}

function randomText({ messages }: ModelRequest, random: () => number): string {
  const words = textOf(messages.at(-1)).split(/\s+/);
  const scraps = [pick(words, random) ?? "", String(Math.floor(random() * 100)), words.join(" ")];
  return pick(scraps, random) ?? "";
}

function randomCall(tools: readonly ToolDefinition[], random: () => number) {
  const drawn = pick(tools, random)?.function;
  return {
    name: drawn?.name ?? "",
    arguments: JSON.stringify(drawValue(drawn?.parameters, random)),
  };
}
