/**
 * The policies of a validation: the right answer, empty replies, the same reply always, the prompt itself, and random
 * replies.
 *
 * Invariants. A policy is made anew for every rollout and always replies the same: so any difference between two
 * rollouts of one task comes from the environment.
 */

import * as z from "zod";
import type { Json, JsonObject } from "../../contract/json.ts";
import { type ToolDefinition, textOf } from "../../contract/messages.ts";
import { seededRandom } from "../../contract/random.ts";
import type { ModelRequest, Reply, TestModel } from "../rollout/play.ts";

export const POLICIES = ["gold", "null", "constant", "echo", "random"] as const;
export type PolicyName = (typeof POLICIES)[number];

/** Makes a model for one rollout. */
export type Policy = () => TestModel;

/**
 * The optional export `goldPolicy` of an environment's module: the replies that solve a task, one per call, or a model.
 * After the last reply it is repeated.
 */
export type GoldPolicy = (task: JsonObject) => readonly Reply[] | TestModel;

/** Always replies with an empty text. */
export const nullPolicy: Policy = () => () => "";

/** Replies with this text in every rollout. */
export function constantPolicy(text: string): Policy {
  return () => () => text;
}

/** Replies with the last message of the prompt. */
export const echoPolicy: Policy =
  () =>
  ({ messages }) =>
    textOf(messages.at(-1));

/** The exported policy, or else the common forms of an answer; none for a task without an answer. */
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

/** Of the random policy, with the index of the row and the turn. */
export const RANDOM_SEED = "validate";

/** Replies with parts of the prompt, numbers, and tool calls with random arguments. */
export function randomPolicy(example: number): Policy {
  return () => (request) => {
    const random = seededRandom(RANDOM_SEED, example, request.turn);
    const { tools } = request;
    const speaks = request.turn > 0 && random() < 0.25;
    if (tools.length === 0 || speaks) return randomText(request, random);
    const calls = 1 + Math.floor(random() * 2);
    return { tool_calls: Array.from({ length: calls }, () => randomCall(tools, random)) };
  };
}

function asModel(gold: readonly Reply[] | TestModel): TestModel {
  if (typeof gold === "function") return gold;
  // The policy comes from the author's module, which may be unchecked JavaScript.
  if (Array.isArray(gold)) return ({ turn }) => gold[turn] ?? gold.at(-1) ?? "";
  throw new TypeError(
    `goldPolicy returned ${Object.prototype.toString.call(gold)}: return a list of replies, or a function that returns one`,
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

// Draws random arguments from a tool's JSON Schema: valid in form, meaningless in content.  Invariants. The same stream
// of numbers gives the same arguments. Keywords other than types, choices and bounds (patterns, references) are
// ignored: then the call gets an error, as any model's would.

/** Numbers are drawn at most this far from zero, or from the bound nearest to it. */
const SPAN = 100;
const LONGEST_LIST = 3;
const WORDS = ["alpha", "beta", "42", "left", "SELECT 1", ""] as const;

const SchemaNode = z.looseObject({
  type: z.unknown().optional(),
  const: z.json().optional(),
  enum: z.array(z.json()).optional(),
  anyOf: z.array(z.unknown()).optional(),
  oneOf: z.array(z.unknown()).optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  items: z.unknown().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  minItems: z.number().optional(),
});
type SchemaNode = z.infer<typeof SchemaNode>;

/** A value that fits a schema; null if the schema has nothing that is supported here. */
export function drawValue(schema: unknown, random: () => number): Json {
  const read = SchemaNode.safeParse(schema);
  if (!read.success) return null;
  const node = read.data;
  if (node.const !== undefined) return node.const;
  if (node.enum !== undefined) return pick(node.enum, random) ?? null;
  const alternatives = node.anyOf ?? node.oneOf;
  if (alternatives !== undefined) return drawValue(pick(alternatives, random), random);
  return drawTyped(Array.isArray(node.type) ? pick(node.type, random) : node.type, node, random);
}

function drawTyped(type: unknown, node: SchemaNode, random: () => number): Json {
  switch (type) {
    case "boolean":
      return random() < 0.5;
    case "integer":
      return Math.floor(drawNumber(node, random));
    case "number":
      return Math.round(drawNumber(node, random) * 10) / 10;
    case "string":
      return pick(WORDS, random) ?? "";
    case "array": {
      const length = Math.max(node.minItems ?? 0, Math.floor(random() * (LONGEST_LIST + 1)));
      return Array.from({ length }, () => drawValue(node.items, random));
    }
    case "object":
      return Object.fromEntries(
        Object.entries(node.properties ?? {}).map(([name, member]) => [name, drawValue(member, random)]),
      );
    default:
      return null;
  }
}

function drawNumber({ minimum, maximum }: SchemaNode, random: () => number): number {
  const low = Math.min(Math.max(minimum ?? -SPAN, -SPAN / 10), maximum ?? Number.MAX_VALUE);
  const high = Math.max(low, Math.min(maximum ?? low + SPAN, low + SPAN));
  return low + random() * (high - low);
}

function pick<T>(from: readonly T[], random: () => number): T | undefined {
  return from[Math.floor(random() * from.length)];
}
