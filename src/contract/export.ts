/**
 * Exports a run's rollouts as rows for training, in chat format.
 *
 * Invariants. A rollout that failed or has no score is in no row of `sft` or `dpo`. Messages are OpenAI's, except that
 * the arguments of a call are an object; a row also lists the tools that were offered. A rollout that cannot be such a
 * row is left out and reported, never altered. Every row has its rollout's id, its origin and its reward. A pair is of
 * one task, and its two rewards differ.
 * Source: TRL's conversational datasets, https://huggingface.co/docs/trl/dataset_formats.
 */
import * as z from "zod";
import { findOddity, isRecord, type Json, type JsonObject } from "./json.ts";
import { LIMITS } from "./limits.ts";
import { type Messages, publicMessage, type ToolCall } from "./messages.ts";
import {
  AnyObject,
  EXAMPLE,
  Flag,
  MaybeNumber,
  named,
  PlainNumber,
  RolloutId,
  RunId,
  TaskKey,
  wholeNumber,
} from "./primitives.ts";
import { RowReviews } from "./row-review.ts";
import { isSameScore } from "./same-score.ts";
import type { Trajectory } from "./trajectory.ts";

export const CALL_FAULTS = {
  invalid_json: "the arguments of a call are not JSON",
  not_an_object: "the arguments of a call are not a JSON object",
  inexact_number: "a number in the arguments of a call is too large for JSON readers (2^53)",
  no_unicode: "a text in the arguments of a call is not valid Unicode (an unpaired surrogate)",
  too_deep: "the arguments of a call are nested more than 100 deep, or contain the name __proto__",
} as const;

export type CallFault = keyof typeof CALL_FAULTS;

/** A tool call with its arguments as an object. */
export interface DecodedCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: JsonObject };
}

export const EXPORT_FORMATS = ["sft", "dpo", "verifiers"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export const ExportQuery = z.strictObject({
  format: z
    .enum(EXPORT_FORMATS)
    .default("sft")
    .describe("sft: messages; dpo: pairs; verifiers: lines of its results.jsonl"),
  min_reward: PlainNumber.optional()
    .describe("minimum reward of a rollout, or of the chosen one of a pair")
    .meta({ example: 1 }),
  best_of_group: Flag.describe("only the best rollout of each task, or the best and the worst"),
  dedupe: Flag.describe("only the first of rollouts with the same prompt and completion"),
  after: z
    .string()
    .regex(/^\d+(-\d+){2}$/, "is not from a link to this page")
    .optional()
    .describe("taken from the link to this page")
    .meta({ example: "5276-1000-0" }),
  limit: wholeNumber(1, LIMITS.resultsPerPage).default(LIMITS.resultsPerPage),
});
export type ExportQuery = z.output<typeof ExportQuery>;

const WireMessage = AnyObject.describe(
  "in OpenAI's shape; in rows for training the arguments of a tool call are an object",
);
const Tools = z.array(AnyObject).optional().describe("tools offered to the model; absent if none");
const ORIGIN = {
  run_id: RunId,
  environment: z.string().describe("id@version").meta({ example: "gsm8k@1.0.0" }),
  model: z.string().meta({ example: "qwen3-4b" }),
  task_key: TaskKey,
  example_id: z.int(),
};

const Reviews = RowReviews.optional().describe("absent if the rollout has none");

/** One line of `format=sft`. */
export const SftRow = named("SftRow", {
  messages: z
    .array(WireMessage)
    .describe("the prompt and all messages after it")
    .meta({ example: [...EXAMPLE.prompt, EXAMPLE.completion] }),
  tools: Tools,
  rollout_id: RolloutId,
  reward: z.number().meta({ example: 1 }),
  ...ORIGIN,
  reviews: Reviews,
});
export type SftRow = z.infer<typeof SftRow>;

/** One line of `format=dpo`. */
export const DpoRow = named("DpoRow", {
  prompt: z.array(WireMessage),
  chosen: z.array(WireMessage),
  rejected: z.array(WireMessage),
  tools: Tools,
  chosen_rollout_id: z.string(),
  rejected_rollout_id: z.string(),
  chosen_reward: z.number(),
  rejected_reward: z.number(),
  ...ORIGIN,
  chosen_reviews: Reviews,
  rejected_reviews: Reviews,
});
export type DpoRow = z.infer<typeof DpoRow>;

/** One line of `format=verifiers`: a line of verifiers' `results.jsonl`, and its origin. */
export const VerifiersRow = z
  .looseObject({
    prompt: z.array(WireMessage),
    completion: z.array(WireMessage),
    reward: MaybeNumber,
    rollout_id: z.string(),
    ...ORIGIN,
    reviews: Reviews,
  })
  .meta({ id: "VerifiersRow" });
export type VerifiersRow = z.infer<typeof VerifiersRow>;

/** Which run, environment and model made the rollouts. */
export interface Origin {
  readonly run_id: string;
  readonly environment: string;
  readonly model: string;
}

/** A scored rollout, its trajectory, and what people think of it. */
export interface Worth {
  readonly trajectory: Trajectory;
  readonly reward: number;
  readonly reviews?: RowReviews | undefined;
}

/** Why a rollout, or a pair, is not exported. */
export const LEFT_OUT = {
  ...CALL_FAULTS,
  prompts_differ: "the two rollouts of a pair have different prompts",
} as const;
export type LeftOutReason = keyof typeof LEFT_OUT;

/** A row that is left out, named by the rollout that is the reason; for a pair by one of the two. */
export interface LeftOut {
  readonly rollout_id: string;
  readonly reason: LeftOutReason;
}

/** The rows that a page left out, as JSON in its header `x-left-out`. */
export const LeftOutNote = z.object({
  rows: z.int().positive(),
  reasons: z.record(z.string(), z.int().positive()).describe("rows by reason"),
  rollouts: z.array(z.string()).describe(`the first ${LIMITS.leftOutNamed} of them`),
});
export type LeftOutNote = z.infer<typeof LeftOutNote>;

/** Null if nothing was left out. */
export function leftOutNote(all: readonly LeftOut[]): LeftOutNote | null {
  if (all.length === 0) return null;
  const byReason = Map.groupBy(all, ({ reason }) => reason);
  return {
    rows: all.length,
    reasons: Object.fromEntries(Array.from(byReason, ([reason, { length }]): [string, number] => [reason, length])),
    rollouts: all.slice(0, LIMITS.leftOutNamed).map(({ rollout_id }) => rollout_id),
  };
}

/** A row, or why there is none. */
export type Made<Row> = { readonly row: Row } | { readonly left_out: LeftOut };

export function sftRow(origin: Origin, { trajectory, reward, reviews }: Worth): Made<SftRow> {
  const { rollout_id } = trajectory;
  const messages = chat([...trajectory.prompt, ...trajectory.completion]);
  if (typeof messages === "string") return { left_out: { rollout_id, reason: messages } };
  return {
    row: {
      messages,
      ...toolsOf(trajectory),
      rollout_id,
      reward,
      ...originOf(origin, trajectory),
      ...(reviews !== undefined && { reviews }),
    },
  };
}

/** Also left out if the two do not begin with the same prompt: then one is not a better answer than the other. */
export function dpoRow(origin: Origin, chosen: Worth, rejected: Worth): Made<DpoRow> {
  const [better, worse] = [halfOf(chosen), halfOf(rejected)];
  if ("left_out" in better) return better;
  if ("left_out" in worse) return worse;
  if (JSON.stringify(better.prompt) !== JSON.stringify(worse.prompt)) {
    return { left_out: { rollout_id: better.rollout_id, reason: "prompts_differ" } };
  }
  return {
    row: {
      prompt: better.prompt,
      chosen: better.completion,
      rejected: worse.completion,
      ...toolsOf(chosen.trajectory),
      chosen_rollout_id: better.rollout_id,
      rejected_rollout_id: worse.rollout_id,
      chosen_reward: chosen.reward,
      rejected_reward: rejected.reward,
      ...originOf(origin, chosen.trajectory),
      ...(chosen.reviews !== undefined && { chosen_reviews: chosen.reviews }),
      ...(rejected.reviews !== undefined && { rejected_reviews: rejected.reviews }),
    },
  };
}

/**
 * Pairs of one task's rollouts, given best first: the best with the worst, the second best with the second worst, and
 * so on while their rewards differ. A rollout is in at most one pair.
 */
export function pairsOf<Member extends { readonly reward: number; readonly said: string | null }>(
  members: readonly Member[],
): [chosen: Member, rejected: Member][] {
  const better = members.slice(0, Math.floor(members.length / 2));
  return better.flatMap((chosen, at): [Member, Member][] => {
    const rejected = members.at(-1 - at);
    if (rejected === undefined || rejected.reward >= chosen.reward) return [];
    if (isSameScore(chosen.reward, rejected.reward)) return [];
    // The texts are equal and only the scores differ, by chance: there is nothing to prefer.
    const same = chosen.said !== null && chosen.said === rejected.said;
    return same ? [] : [[chosen, rejected]];
  });
}

function originOf(origin: Origin, { task_key, example_id }: Trajectory) {
  return { ...origin, task_key, example_id };
}

function toolsOf({ tools }: Trajectory): Pick<SftRow, "tools"> {
  return tools === undefined ? {} : { tools: tools.map((tool) => ({ ...tool })) };
}

type Chat = Record<string, unknown>[];
interface Half {
  readonly rollout_id: string;
  readonly prompt: Chat;
  readonly completion: Chat;
}

function halfOf({ trajectory }: Worth): Half | { readonly left_out: LeftOut } {
  const { rollout_id } = trajectory;
  const prompt = chat(trajectory.prompt);
  if (typeof prompt === "string") return { left_out: { rollout_id, reason: prompt } };
  const completion = chat(trajectory.completion);
  if (typeof completion === "string") return { left_out: { rollout_id, reason: completion } };
  return { rollout_id, prompt, completion };
}

/** Our role `text` marks a bare text. It is sent to endpoints as `user`, and exported as `user`. */
function chat(messages: Messages): Chat | CallFault {
  const rows: Chat = [];
  for (const { tool_calls, ...message } of messages.map(publicMessage)) {
    const calls = tool_calls?.map(decodeCall);
    const fault = calls?.find((call) => typeof call === "string");
    if (fault !== undefined) return fault;
    const role = message.role === "text" ? "user" : message.role;
    rows.push({ ...message, role, ...(calls !== undefined && { tool_calls: calls }) });
  }
  return rows;
}

/**
 * Tool calls as rows for training have them: the arguments are an object, as chat templates and TRL take them. OpenAI's
 * wire has a text instead.
 *
 * Invariant. A row has exactly what the model wrote, or there is no row: if a text is not an object, or an object could
 * hold only part of it, the reason is reported and the text is never repaired. A number is its value: 10.0 is written
 * 10.
 */

/** The call, or why its arguments cannot be exported. */
export function decodeCall(call: ToolCall): DecodedCall | CallFault {
  const { name, arguments: text } = call.function;
  const decoded = decode(text);
  if (typeof decoded === "string") return decoded;
  return { ...call, function: { name, arguments: decoded } };
}

function decode(text: string): JsonObject | CallFault {
  let exact = true;
  let unicode = true;
  // The third argument of a reviver has the source text; engines without that feature leave it out.
  const look = (key: string, value: Json, context?: { readonly source?: string }): Json => {
    if (typeof value === "number") exact &&= isExact(value, context?.source ?? "");
    unicode &&= key.isWellFormed() && (typeof value !== "string" || value.isWellFormed());
    return value;
  };
  let value: Json;
  try {
    value = JSON.parse(text, look) as Json;
  } catch (error) {
    if (error instanceof SyntaxError) return "invalid_json";
    // The text is nested deeper than the parser can go.
    if (error instanceof RangeError) return "too_deep";
    throw error;
  }
  if (!isObject(value)) return "not_an_object";
  if (!exact) return "inexact_number";
  if (!unicode) return "no_unicode";
  return findOddity(value, "") === null ? value : "too_deep";
}

function isObject(value: Json): value is JsonObject {
  return isRecord(value);
}

/** Whether the number, as we write it, has the value of the text for every reader. */
function isExact(value: number, source: string): boolean {
  const fraction = /[.eE]/.test(source);
  return fraction ? Number.isFinite(value) : Number.isSafeInteger(value);
}
