/**
 * Reads a long rollout in pieces: its head, its turns by pages, an outline of all turns, the tokens of one turn. Of a
 * text its beginning is shown, at most `LIMITS.shownCharacters` UTF-16 units, with the length of the whole; single
 * turns can be read whole.
 */
import * as z from "zod";
import { JudgeReply } from "./judgement.ts";
import { LIMITS } from "./limits.ts";
import type { Content, Message, Messages } from "./messages.ts";
import { Count, EXAMPLE, listOf, MaybeText, named, TaskText } from "./primitives.ts";
import { RolloutView } from "./run.ts";
import { cutBefore } from "./shown-text.ts";

/** The beginning of a text. The text was cut if `length` is larger than the length of `text`. */
const Beginning = z.object({
  text: z.string().describe("its beginning").meta({ example: EXAMPLE.completion.content }),
  length: Count.describe("of the full text, in UTF-16 units").meta({ example: EXAMPLE.completion.content.length }),
});
export type Beginning = z.infer<typeof Beginning>;

const MessageBeginning = named("MessageBeginning", {
  role: z.string().meta({ example: "assistant" }),
  name: z.string().optional(),
  tool_call_id: z.string().optional().describe("the call that a tool message answers"),
  content: z
    .array(
      Beginning.extend({
        type: z.string().describe("text, or the type of another part, then with its JSON").meta({ example: "text" }),
      }),
    )
    .describe("the first 100 of its parts; a plain text is one part"),
  reasoning: Beginning.optional().describe("the model's reasoning, if the endpoint returns it"),
  tool_calls: z
    .array(z.object({ id: z.string(), name: z.string(), arguments: Beginning }))
    .optional()
    .describe("the first 100 of them"),
  left_out: Count.describe("number of parts and tool calls left out here").meta({ example: 0 }),
});
export type MessageBeginning = z.infer<typeof MessageBeginning>;

const { turns, prompt: _, completion: __, state: ___, ...head } = RolloutView.shape;
const whole = turns.element.shape;

/** A rollout without its texts. */
export const RolloutHead = named("RolloutHead", {
  ...head,
  object: z.literal("rollout_head"),
  task_text: TaskText,
  n_turns: Count.describe("turns answered so far").meta({ example: 1 }),
  duration_ms: Count.nullable().describe("from its begin to its end; null before that").meta({ example: 840 }),
  answer: Beginning.nullable().describe("the answer in its task's row; null if none"),
  tools: z.array(z.string()).describe("names of the first 100 tools offered to the model"),
  final_env_response: z
    .array(MessageBeginning)
    .describe("the environment's last messages, after which the model was not called: the first 100"),
});
export type RolloutHead = z.infer<typeof RolloutHead>;

const AtMs = z
  .int()
  .describe("milliseconds from the rollout's start to the answer; negative for a turn inherited from another rollout")
  .meta({ example: 840 });

const shown = {
  ...whole,
  at_ms: AtMs,
  model: MaybeText.describe("as named by the endpoint").meta({ example: "qwen3-4b" }),
  stored_bytes: Count.describe("size of the turn in storage, as JSON").meta({ example: 612 }),
  tokens: z
    .object({ prompt: Count, completion: Count, forked: z.boolean(), logprobs: z.boolean() })
    .nullable()
    .describe(
      "number of stored token ids; forked: those of its prompt do not begin with those of the turn that it continues",
    ),
};

/** One turn on a page of turns. */
export const ShownTurn = named("ShownTurn", {
  ...shown,
  prompt: whole.prompt.extend({
    append: z.array(MessageBeginning).describe("the first 100 of them"),
    left_out: Count.describe("number of messages left out here"),
  }),
  completion: MessageBeginning,
});
export type ShownTurn = z.infer<typeof ShownTurn>;

export const TurnPage = listOf(ShownTurn, "TurnPage", "0").extend({
  n_turns: Count.describe("turns answered so far").meta({ example: 1 }),
});
export type TurnPage = z.infer<typeof TurnPage>;

/** One turn with all of its texts. */
export const WholeTurn = named("WholeTurn", {
  object: z.literal("turn"),
  rollout_id: RolloutView.shape.id,
  ...shown,
  state: RolloutView.shape.state
    .nullable()
    .describe("the environment's fields after its reply to it; null before that"),
});
export type WholeTurn = z.infer<typeof WholeTurn>;

const QUESTION_KEY = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

/** What one judgement of a rollout was about. */
export const JudgeQuestion = named("JudgeQuestion", {
  judge: z.string().describe("its name in `judges`").meta({ example: "default" }),
  model: z.string().meta({ example: "gpt-5-mini" }),
  key: z.string().describe("sha256 of the question, as in the rollout's judgements").meta({ example: QUESTION_KEY }),
  pass: Count.describe("number of the judgement on the same question, from 0"),
  left_out: Count.describe("characters cut out of the middle of the evidence before it was sent"),
  messages: z
    .array(MessageBeginning)
    .nullable()
    .describe(
      "as they were sent: the first 100; null if the question cannot be built again: the code of the environment has changed, a scoring function calls a server before it asks, or the trajectories are too large",
    ),
  messages_left_out: Count.describe("number of messages left out here"),
  reply: JudgeReply,
});
export type JudgeQuestion = z.infer<typeof JudgeQuestion>;

export const JudgeQuestionList = listOf(JudgeQuestion, "JudgeQuestionList", QUESTION_KEY);
export type JudgeQuestionList = z.infer<typeof JudgeQuestionList>;

/** One turn without its texts. */
export const OutlineTurn = named("OutlineTurn", {
  index: Count,
  at_ms: AtMs,
  latency_ms: whole.latency_ms,
  calls: whole.calls,
  from_cache: whole.from_cache,
  after: whole.prompt.shape.after,
  messages: Count.describe("in the appended part of its prompt").meta({ example: 1 }),
  tool_calls: Count.meta({ example: 0 }),
  tools: z.array(z.string()).describe("names of the first five tools it calls"),
  tool_calls_failed: Count.optional().describe("those of them that failed; absent if not recorded"),
  failed: Count.describe("tool results in its prompt that read like an error: a guess").meta({ example: 0 }),
  stored_bytes: shown.stored_bytes,
  is_truncated: z.boolean(),
  forked: z.boolean().describe("its token ids do not begin with those of the turn that it continues"),
});
export type OutlineTurn = z.infer<typeof OutlineTurn>;

export const Outline = listOf(OutlineTurn, "Outline", "0").extend({
  n_turns: TurnPage.shape.n_turns,
});
export type Outline = z.infer<typeof Outline>;

/** A page of the tokens sampled in one turn. */
export const TurnTokenPage = named("TurnTokenPage", {
  object: z.literal("turn_tokens"),
  rollout_id: RolloutView.shape.id,
  turn: Count.describe("index of the turn; the first turn is 0"),
  after: whole.prompt.shape.after,
  forked: z
    .boolean()
    .describe("the prompt's ids do not begin with those of the turn that it continues: all of them are here"),
  prompt_length: Count.describe("ids of the whole prompt").meta({ example: 92 }),
  prompt_suffix_length: Count.describe("ids of it beyond those of that turn").meta({ example: 92 }),
  prompt_suffix_ids: z
    .array(z.int())
    .describe("those after `prompt_after`")
    .meta({ example: [151_644, 8_948] }),
  completion_length: Count.meta({ example: 61 }),
  completion_ids: z
    .array(z.int())
    .describe("sampled, those after `after`")
    .meta({ example: [18, 488, 220, 19] }),
  completion_logprobs: z
    .array(z.number().nullable())
    .nullable()
    .describe("natural logarithms, one per id; null if the engine sent none, or not a number")
    .meta({ example: [-0.01, -0.3, -0.002, -1.2] }),
  mask: z
    .union([z.literal(0), z.literal(1)])
    .describe("for each sampled id: 1 if it is trained on, as far as known now; prompt ids are 0")
    .meta({ example: 1 }),
  untrainable: MaybeText.describe("why its rollout is not trained on; null if it may be"),
  turns_checked: Count.describe(
    "turns checked for `untrainable`: the first ones up to 8 MiB, and this one; in a longer rollout a later turn may still make it untrainable",
  ).meta({ example: 1 }),
  version: Count.nullable()
    .describe("version of the weights, as counted by training; null if unknown, or if the run is not a training run")
    .meta({ example: null }),
  policy_version: whole.policy_version,
  first_policy_version: whole.first_policy_version,
  dispatch_version: whole.dispatch_version,
  replica: whole.replica,
  replica_version: whole.replica_version,
});
export type TurnTokenPage = z.infer<typeof TurnTokenPage>;

export function beginningOf(text: string): Beginning {
  const most = LIMITS.shownCharacters;
  return { text: text.length <= most ? text : text.slice(0, cutBefore(text, most)), length: text.length };
}

export function beginningOfMessage(message: Message): MessageBeginning {
  const { role, name, tool_call_id, content, reasoning_content, tool_calls = [] } = message;
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  const most = LIMITS.shownItems;
  return {
    role,
    ...(name !== undefined && { name }),
    ...(tool_call_id !== undefined && { tool_call_id }),
    content: parts.slice(0, most).map((part) => ({ type: part.type, ...beginningOf(textIn(part)) })),
    ...(reasoning_content !== undefined && { reasoning: beginningOf(reasoning_content) }),
    ...(tool_calls.length > 0 && {
      tool_calls: tool_calls.slice(0, most).map(({ id, function: called }) => {
        return { id, name: called.name, arguments: beginningOf(called.arguments) };
      }),
    }),
    left_out: Math.max(0, parts.length - most) + Math.max(0, tool_calls.length - most),
  };
}

export function beginningsOf(messages: Messages): MessageBeginning[] {
  return messages.slice(0, LIMITS.shownItems).map(beginningOfMessage);
}

function textIn(part: Exclude<Content, string | null>[number]): string {
  return part.type === "text" ? String(part["text"]) : JSON.stringify(part);
}
