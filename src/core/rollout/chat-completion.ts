/**
 * A chat completion as endpoints send it, read into what a turn keeps.
 *
 * Invariants. A reply that is no chat completion, has no choice or several, or holds nothing at all, is an error of the
 * library (retryable: another try may be answered properly). Token ids, logprobs and the weights' label are kept
 * verbatim when present. Sources: OpenAI's chat-completion object; vLLM's protocol for the extra fields; verifiers'
 * response check for what counts as empty. What a reply may cost to be read is bounded by counting: lists before their
 * items, the values of its content before they are looked at.
 */
import * as z from "zod";
import { EmptyModelResponseError, InvalidModelResponseError } from "../../contract/errors.ts";
import { findOddity, type Json } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { Content, type Message, type Usage } from "../../contract/messages.ts";
import type { ModelResponse } from "../../contract/trajectory.ts";
import { holdsMore, Ids, Logprobs, listOf } from "../schema/bounded-lists.ts";

const Tokens = z.int().nonnegative().max(LIMITS.tokensPerCall).optional();
const WireUsage = z.object({
  prompt_tokens: Tokens,
  completion_tokens: Tokens,
  input_tokens: Tokens,
  output_tokens: Tokens,
  total_tokens: Tokens,
  prompt_tokens_details: z.object({ cached_tokens: Tokens.nullish() }).nullish().catch(null),
  completion_tokens_details: z.object({ reasoning_tokens: z.number().nullish() }).nullish(),
});
/** Parts of its content, or of its reasoning. */
const Few = z.unknown().refine((value) => !holdsMore(value, LIMITS.valuesPerReply), {
  error: `holds more than ${LIMITS.valuesPerReply} values`,
  abort: true,
});
const FewLevels = Few.refine((value) => findOddity(value as Json, "") === null, {
  error: "is nested too deep",
  abort: true,
});
const WireMessage = z.object({
  content: FewLevels.pipe(Content).nullish(),
  refusal: z.string().nullish(),
  reasoning: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  reasoning_details: Few.pipe(z.union([z.string(), z.array(z.looseObject({}))])).nullish(),
  tool_calls: listOf(
    z
      .object({
        id: z.string().nullish(),
        type: z.string().nullish(),
        function: z.object({ name: z.string(), arguments: z.unknown() }).optional(),
      })
      // Of another kind of tool (OpenAI's `custom`): one of a function has it.
      .refine(({ type, function: called }) => called !== undefined || (type ?? "function") !== "function"),
    LIMITS.toolCallsPerReply,
  ).nullish(),
});
const WireChoice = z.object({
  message: WireMessage,
  finish_reason: z.string().nullish(),
  token_ids: Ids.nullish(),
  prompt_token_ids: Ids.nullish(),
  logprobs: z.object({ content: Logprobs.nullish() }).nullish(),
});
/** Engines name their weights as they like. */
const Label = z.union([z.string(), z.number()]).nullish();
const WireResponse = z.object({
  id: z.string().nullish(),
  model: z.string().nullish(),
  choices: listOf(WireChoice, LIMITS.choicesPerReply).nullish(),
  usage: WireUsage.nullish(),
  prompt_token_ids: Ids.nullish(),
  weight_version: Label,
  first_weight_version: Label,
});

/** `latency_ms` is the caller's: core has no clock. Throws `InvalidModelResponseError` or `EmptyModelResponseError`. */
export function readChatCompletion(body: unknown, latency_ms: number): ModelResponse {
  const parsed = WireResponse.safeParse(body);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new InvalidModelResponseError(`the reply is no chat completion: ${issue?.path.join(".")}: ${issue?.message}`);
  }
  const { choices, usage: wireUsage, ...reply } = parsed.data;
  const choice = choices?.[0];
  if (choice === undefined) throw new EmptyModelResponseError("the reply has no choices");
  if ((choices?.length ?? 0) > 1) {
    throw new InvalidModelResponseError(`the reply has ${choices?.length} choices, not 1`);
  }
  // An engine that tells which tokens it sampled has answered, if only by the end of its turn.
  const sampled = (choice.token_ids?.length ?? 0) > 0;
  const thought = (wireUsage?.completion_tokens_details?.reasoning_tokens ?? 0) > 0;
  const message = readMessage(choice.message, sampled || thought);
  const logprobs = choice.logprobs?.content?.map((entry) => entry.logprob) ?? null;
  const [first, last] = [reply.first_weight_version, reply.weight_version].map(labelOf);
  return {
    id: reply.id ?? null,
    model: reply.model ?? null,
    message,
    finish_reason: readFinish(choice.finish_reason),
    usage: readUsage(wireUsage),
    prompt_ids: reply.prompt_token_ids ?? choice.prompt_token_ids ?? null,
    completion_ids: choice.token_ids ?? null,
    completion_logprobs: logprobs,
    policy_version: last ?? null,
    ...(first && first !== last && { first_policy_version: first }),
    latency_ms,
  };
}

function labelOf(label: z.infer<typeof Label>): string | null {
  return label == null ? null : String(label);
}

/** `mayBeEmpty`: it is known to have come to something, whatever is left of that to read. */
function readMessage(wire: z.infer<typeof WireMessage>, mayBeEmpty: boolean): Message {
  const reasoning = wire.reasoning || wire.reasoning_content || detailsText(wire.reasoning_details) || undefined;
  const content = wire.content || wire.refusal || wire.content;
  // A call of no function, or with arguments that are no string, cannot be answered: it is dropped, as verifiers does.
  // It was made.
  const calls = wire.tool_calls ?? [];
  const tool_calls = calls.flatMap(({ id, function: called }) =>
    typeof called?.arguments === "string"
      ? [
          {
            id: id ?? called.name,
            type: "function" as const,
            function: { ...called, arguments: called.arguments },
          },
        ]
      : [],
  );
  const said = textLength(content);
  const empty = said === 0 && !reasoning && calls.length === 0;
  if (empty && !mayBeEmpty) {
    throw new EmptyModelResponseError("the reply holds no text, no tool call and no reasoning");
  }
  const size = said + (reasoning?.length ?? 0);
  if (size > LIMITS.completionBytes) {
    throw new InvalidModelResponseError(`the reply is longer than ${LIMITS.completionBytes} bytes`);
  }
  return {
    role: "assistant",
    content: content ?? (empty ? "" : null),
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    ...(tool_calls.length === 0 ? {} : { tool_calls }),
  };
}

/** OpenRouter's list: what is not encrypted of it. */
function detailsText(details: z.infer<typeof WireMessage>["reasoning_details"]): string {
  if (typeof details === "string") return details;
  const texts = (details ?? []).map((detail) => detail["text"] ?? detail["summary"]);
  return texts.filter((text) => typeof text === "string").join("");
}

/** Characters of a reply, parts as their JSON. */
function textLength(content: Message["content"] | undefined): number {
  if (content === null || content === undefined || content.length === 0) return 0;
  return typeof content === "string" ? content.length : JSON.stringify(content).length;
}

function readFinish(reason: string | null | undefined): ModelResponse["finish_reason"] {
  switch (reason) {
    case "stop":
    case "length":
    case "tool_calls":
    case "abort":
      return reason;
    default:
      return null;
  }
}

/** Null where one of both counts is missing: nobody knows what the call took. */
function readUsage(wire: z.infer<typeof WireUsage> | null | undefined): Usage | null {
  const prompt_tokens = wire?.prompt_tokens ?? wire?.input_tokens;
  const completion_tokens = wire?.completion_tokens ?? wire?.output_tokens;
  if (wire == null || prompt_tokens === undefined || completion_tokens === undefined) return null;
  const cached_tokens = Math.min(wire.prompt_tokens_details?.cached_tokens ?? 0, prompt_tokens);
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: wire.total_tokens ?? prompt_tokens + completion_tokens,
    ...(cached_tokens > 0 && { cached_tokens }),
  };
}
