/**
 * What a run leaves for training: rows in chat format, made of its rollouts.
 *
 * Invariants. A rollout that failed or has no score is in no row of `sft` or `dpo`. Messages are OpenAI's, tool calls
 * included, with the tools that were offered beside them. Every row says which rollout it is of, what made it and what it
 * was worth. A pair is of one task, and its two rewards differ.
 * Source: TRL's conversational datasets, https://huggingface.co/docs/trl/dataset_formats.
 */
import * as z from "zod";
import { LIMITS } from "./limits.ts";
import type { Message, Messages } from "./messages.ts";
import { PlainNumber, wholeNumber } from "./query-number.ts";
import type { Trajectory } from "./trajectory.ts";

export const EXPORT_FORMATS = ["sft", "dpo", "verifiers"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Query parameters are text. */
const Flag = z
  .enum(["true", "false"])
  .default("false")
  .transform((text) => text === "true");

export const ExportQuery = z.strictObject({
  format: z
    .enum(EXPORT_FORMATS)
    .default("sft")
    .describe("sft: messages; dpo: pairs; verifiers: lines of its results.jsonl"),
  min_reward: PlainNumber.optional()
    .describe("of a rollout; of a pair, of the chosen one")
    .meta({ example: 1 }),
  best_of_group: Flag.describe("of each task only the best rollout, or the best and the worst"),
  dedupe: Flag.describe("of rollouts that say the same after the same prompt only the first"),
  after: z
    .string()
    .regex(/^\d+(-\d+){2}$/, "is not from a link to this page")
    .optional()
    .describe("as the link to this page has it")
    .meta({ example: "5276-1000-0" }),
  limit: wholeNumber(1, LIMITS.resultsPerPage).default(LIMITS.resultsPerPage),
});
export type ExportQuery = z.output<typeof ExportQuery>;

const WireMessage = z.record(z.string(), z.unknown());
const Tools = z
  .array(z.record(z.string(), z.unknown()))
  .optional()
  .describe("what the model was offered; absent where that was nothing");
const ORIGIN = {
  run_id: z.string(),
  environment: z.string().describe("id@version"),
  model: z.string(),
  task_key: z.string(),
  example_id: z.int(),
};

/** One line of `format=sft`. */
export const SftRow = z
  .object({
    messages: z.array(WireMessage).describe("the prompt, and all that was said after it"),
    tools: Tools,
    rollout_id: z.string(),
    reward: z.number(),
    ...ORIGIN,
  })
  .meta({ id: "SftRow" });
export type SftRow = z.infer<typeof SftRow>;

/** One line of `format=dpo`. */
export const DpoRow = z
  .object({
    prompt: z.array(WireMessage),
    chosen: z.array(WireMessage),
    rejected: z.array(WireMessage),
    tools: Tools,
    chosen_rollout_id: z.string(),
    rejected_rollout_id: z.string(),
    chosen_reward: z.number(),
    rejected_reward: z.number(),
    ...ORIGIN,
  })
  .meta({ id: "DpoRow" });
export type DpoRow = z.infer<typeof DpoRow>;

/** One line of `format=verifiers`: what stands in its `results.jsonl`, and where it is from. */
export const VerifiersRow = z
  .looseObject({
    prompt: z.array(WireMessage),
    completion: z.array(WireMessage),
    reward: z.number().nullable(),
    rollout_id: z.string(),
    ...ORIGIN,
  })
  .meta({ id: "VerifiersRow" });
export type VerifiersRow = z.infer<typeof VerifiersRow>;

/** What made the rollouts of a run. */
export interface Origin {
  readonly run_id: string;
  readonly environment: string;
  readonly model: string;
}

/** A scored rollout, and what it left. */
export interface Worth {
  readonly trajectory: Trajectory;
  readonly reward: number;
}

export function sftRow(origin: Origin, { trajectory, reward }: Worth): SftRow {
  return {
    messages: chat([...trajectory.prompt, ...trajectory.completion]),
    ...toolsOf(trajectory),
    rollout_id: trajectory.rollout_id,
    reward,
    ...originOf(origin, trajectory),
  };
}

/** Null where the two do not begin alike: there is no prompt of which one answer is the better. */
export function dpoRow(origin: Origin, chosen: Worth, rejected: Worth): DpoRow | null {
  const prompt = chat(chosen.trajectory.prompt);
  if (JSON.stringify(prompt) !== JSON.stringify(chat(rejected.trajectory.prompt))) return null;
  return {
    prompt,
    chosen: chat(chosen.trajectory.completion),
    rejected: chat(rejected.trajectory.completion),
    ...toolsOf(chosen.trajectory),
    chosen_rollout_id: chosen.trajectory.rollout_id,
    rejected_rollout_id: rejected.trajectory.rollout_id,
    chosen_reward: chosen.reward,
    rejected_reward: rejected.reward,
    ...originOf(origin, chosen.trajectory),
  };
}

/**
 * Pairs of one task's rollouts, given best first: the best with the worst, the second best with the second worst, and so
 * on while their rewards differ. So none is in two pairs, and there are never more than half as many as rollouts.
 */
export function pairsOf<Member extends { readonly reward: number; readonly said: string | null }>(
  members: readonly Member[],
): [chosen: Member, rejected: Member][] {
  const better = members.slice(0, Math.floor(members.length / 2));
  return better.flatMap((chosen, at): [Member, Member][] => {
    const rejected = members.at(-1 - at);
    if (rejected === undefined || rejected.reward >= chosen.reward) return [];
    // The same words, scored apart by chance: there is nothing to prefer.
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

/** `text` is a role of ours for a bare text; endpoints are sent it as `user`, and so it stands here. */
function chat(messages: Messages): Record<string, unknown>[] {
  return messages.map((message: Message) =>
    message.role === "text" ? { ...message, role: "user" } : { ...message },
  );
}
