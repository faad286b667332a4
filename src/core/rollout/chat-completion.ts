/**
 * Reads a chat completion, as servers send it, into the response that a turn keeps.
 *
 * Invariants. Only the content and the tool calls of a choice can make a reply unusable. All other fields are optional:
 * one that cannot be parsed counts as absent. Members that are not OpenAI's are kept and sent back to the server.
 *
 * A reply is an error of the library if it is not a chat completion, has no choice or several, was broken off or is
 * empty. Such an error is retryable. A reply that a policy stopped is an error that is not retryable. Token ids,
 * logprobs and the weights' label are kept verbatim if present. The work of parsing is bounded by counting: lists are
 * counted before their items are parsed, and the values of the content before it is examined.
 *
 * Sources: OpenAI's chat-completion object; vLLM's protocol for the extra fields; verifiers' response check for which
 * replies are empty; docs/endpoints.md for the members of other servers.
 */
import * as z from "zod";
import {
  EmptyModelResponseError,
  InvalidModelResponseError,
  PolicyRefusalError,
  type RolloutError,
} from "../../contract/errors.ts";
import { findOddity, isRecord, type Json } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { Content, type Message, type ToolCall, type Usage } from "../../contract/messages.ts";
import { shortText } from "../../contract/shown-text.ts";
import type { ModelResponse } from "../../contract/trajectory.ts";
import { formatPath } from "../field-path.ts";
import { holdsMore, Ids, Logprobs, listOf } from "../schema/bounded-lists.ts";
import { endingOf, finishWord } from "./finish-reason.ts";
import { errorWords } from "./reply-error.ts";
import { callsOf, contentOf } from "./reply-shapes.ts";
import { chunkOfText } from "./text-completion.ts";

const Tokens = z.int().nonnegative().max(LIMITS.tokensPerCall).optional().catch(undefined);
const WireUsage = z.object({
  prompt_tokens: Tokens,
  completion_tokens: Tokens,
  input_tokens: Tokens,
  output_tokens: Tokens,
  total_tokens: Tokens,
  prompt_tokens_details: z.object({ cached_tokens: Tokens.nullish() }).nullish().catch(null),
  completion_tokens_details: z.object({ reasoning_tokens: Tokens }).nullish().catch(null),
});

const FewLevels = z
  .unknown()
  .refine((value) => !holdsMore(value, LIMITS.valuesPerReply), {
    error: `holds more than ${LIMITS.valuesPerReply} values`,
    abort: true,
  })
  .refine((value) => findOddity(value as Json, "") === null, { error: "is nested too deeply", abort: true });

const CalledFunction = z.looseObject({ name: z.string(), arguments: z.unknown().optional() });
const WireCall = z
  .looseObject({ function: CalledFunction.optional() })
  // A call of another type of tool (OpenAI's `custom`) has no function.
  .refine(({ type, function: called }) => called !== undefined || (type ?? "function") !== "function");
const WireMessage = z.looseObject({
  content: FewLevels.optional().transform(contentOf).pipe(Content),
  tool_calls: z.preprocess(callsOf, listOf(z.preprocess(fromFlatCall, WireCall), LIMITS.toolCallsPerReply)),
  function_call: CalledFunction.nullish().catch(null),
});
type WireMessage = z.infer<typeof WireMessage>;

const OptionalIds = Ids.nullish().catch(null);
const WireChoice = z.looseObject({
  message: WireMessage,
  token_ids: OptionalIds,
  prompt_token_ids: OptionalIds,
  logprobs: z
    .object({ content: Logprobs.nullish().catch(null) })
    .nullish()
    .catch(null),
});
/** Labels of weights and names of replies: engines and servers send texts or numbers. */
const Label = z.union([z.string(), z.number()]).nullish().catch(null);
const WireResponse = z.object({
  id: Label,
  model: Label,
  choices: listOf(z.preprocess(fromChunk, WireChoice), LIMITS.choicesPerReply).nullish(),
  usage: WireUsage.nullish().catch(null),
  prompt_token_ids: OptionalIds,
  weight_version: Label,
  first_weight_version: Label,
});

/**
 * `latency_ms` comes from the caller: core has no clock. `usedIds`: the ids of the request's tool calls, which the
 * reply's must not repeat. Throws `InvalidModelResponseError`, `EmptyModelResponseError` or `PolicyRefusalError`.
 */
export function readChatCompletion(
  body: unknown,
  latency_ms: number,
  usedIds: ReadonlySet<string> = new Set(),
): ModelResponse {
  const parsed = WireResponse.safeParse(body);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new InvalidModelResponseError(
      `the reply is not a chat completion: ${issue?.path.join(".")}: ${issue?.message}`,
    );
  }
  const { choices, usage: wireUsage, ...reply } = parsed.data;
  const choice = choices?.[0];
  if (choice === undefined) throw withoutChoice(body);
  if ((choices?.length ?? 0) > 1) {
    throw new InvalidModelResponseError(`the reply has ${choices?.length} choices, not 1`);
  }
  const ended = readEnding(choice);
  // A reply with sampled token ids is not empty: the model may have sampled only its end token. The same holds for a
  // reply that only reasoned until its token limit.
  const sampled = (choice.token_ids?.length ?? 0) > 0;
  const thought = (wireUsage?.completion_tokens_details?.reasoning_tokens ?? 0) > 0;
  const mayBeEmpty = sampled || thought || ended.finish_reason === "length";
  const message = readMessage(choice.message, mayBeEmpty, usedIds);
  const logprobs = choice.logprobs?.content?.map((entry) => entry.logprob) ?? null;
  const [first, last] = [reply.first_weight_version, reply.weight_version].map(labelOf);
  return {
    id: labelOf(reply.id),
    model: labelOf(reply.model),
    message,
    ...ended,
    usage: readUsage(wireUsage),
    prompt_ids: reply.prompt_token_ids ?? choice.prompt_token_ids ?? null,
    completion_ids: choice.token_ids ?? null,
    completion_logprobs: logprobs,
    policy_version: last ?? null,
    ...(first && first !== last && { first_policy_version: first }),
    latency_ms,
  };
}

/**
 * The assistant's message of a request, in the same form as the message of a reply, from which it may stem. It may be
 * empty. Throws `InvalidModelResponseError`.
 */
export function readAssistantMessage(wire: unknown): Message {
  const parsed = WireMessage.safeParse(wire);
  if (parsed.success) return readMessage(parsed.data, true, new Set());
  const issue = parsed.error.issues[0];
  throw new InvalidModelResponseError(`${formatPath(issue?.path ?? [])}: ${issue?.message}`);
}

/** The error of a reply without choices. Gemini and Azure omit them if they refuse the prompt, and send a reason. */
function withoutChoice(body: unknown): RolloutError {
  const { prompt_feedback: feedback, promptFeedback = feedback } = isRecord(body) ? body : {};
  const { block_reason: reason, blockReason = reason } = isRecord(promptFeedback) ? promptFeedback : {};
  const word = finishWord(blockReason);
  if (word === null) return new EmptyModelResponseError("the reply has no choices");
  return new PolicyRefusalError(`the endpoint's content policy refused the prompt (block_reason: ${word})`);
}

function labelOf(label: z.infer<typeof Label>): string | null {
  return label == null ? null : shortText(String(label), LIMITS.nameCharacters);
}

/** Reads how the reply ended. Throws if the server broke the reply off, or stopped it by a policy. */
function readEnding(choice: Readonly<Record<string, unknown>>): Pick<ModelResponse, "finish_reason" | "finish_word"> {
  const word = finishWord(choice["finish_reason"]);
  const failure = errorWords(choice["error"]);
  const named = endingOf(word);
  const ending = failure === null || named === "refused_by_policy" ? named : "broken_off";
  const because = word === null ? "" : ` (finish_reason: ${word})`;
  const said = failure === null ? "" : `: ${failure}`;
  if (ending === "broken_off") {
    throw new InvalidModelResponseError(`the reply was broken off${because}${said}`);
  }
  if (ending === "refused_by_policy") {
    throw new PolicyRefusalError(`the endpoint's content policy stopped the reply${because}`);
  }
  if (ending !== "unknown") return { finish_reason: ending };
  return { finish_reason: null, ...(word !== null && { finish_word: word }) };
}

/** `mayBeEmpty`: tokens are known to have been sampled, even if no text is left of them. */
function readMessage(wire: WireMessage, mayBeEmpty: boolean, usedIds: ReadonlySet<string>): Message {
  const { reasoning, ...thoughts } = readReasoning(wire);
  const refusal = typeof wire["refusal"] === "string" ? wire["refusal"] : undefined;
  const content = wire.content || refusal || wire.content;
  const { function_call } = wire;
  const before = function_call == null ? [] : [{ function: function_call }];
  const calls = wire.tool_calls.length === 0 ? before : wire.tool_calls;
  const tool_calls = withOwnIds(calls.flatMap(readCall), usedIds);
  const characters = textLength(content);
  // A call of another type of tool cannot be answered and is dropped, but it makes the reply not empty.
  const empty = characters === 0 && !reasoning && calls.length === 0;
  if (empty && !mayBeEmpty) {
    throw new EmptyModelResponseError("the reply has no text, tool call or reasoning");
  }
  const called = tool_calls.reduce((sum, call) => sum + call.function.name.length + call.function.arguments.length, 0);
  let room = LIMITS.completionBytes - characters - reasoning.length - called;
  if (room < 0) throw new InvalidModelResponseError(`the reply is longer than ${LIMITS.completionBytes} bytes`);
  /** Keeps additional members only while the reply with them stays within the limit. */
  const within = (fields: string | null | undefined) => {
    room -= fields?.length ?? 0;
    return fields != null && room >= 0 ? { provider_fields: fields } : {};
  };
  const kept = tool_calls.map(({ provider_fields: fields, ...call }) => ({ ...call, ...within(fields) }));
  const provider_fields = fieldsText(wire, (name) => READ_OF_MESSAGE.has(name) || thoughts.taken === name);
  return {
    role: "assistant",
    content: content ?? (empty ? "" : null),
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(thoughts.taken === "reasoning" && { reasoning_name: thoughts.taken }),
    ...within(provider_fields),
    ...(kept.length > 0 && { tool_calls: kept }),
  };
}

const READ_OF_MESSAGE: ReadonlySet<string> = new Set(["role", "content", "tool_calls", "function_call"]);
const READ_OF_CALL: ReadonlySet<string> = new Set(["id", "type", "function", "index"]);
const READ_OF_FUNCTION: ReadonlySet<string> = new Set(["name", "arguments"]);
/** OpenAI's members of a message that servers often send as null or empty. */
const OFTEN_EMPTY: ReadonlySet<string> = new Set([
  ...["refusal", "annotations", "audio", "reasoning", "reasoning_content", "reasoning_details", "name", "tool_call_id"],
]);
/** The members in which servers send reasoning. The first one with a value is used (verifiers). */
export const REASONING = ["reasoning", "reasoning_content", "reasoning_details"] as const;

/** `taken`: the only member that has exactly this text; if there are several, all members are kept as they came. */
function readReasoning(wire: Readonly<Record<string, unknown>>): { reasoning: string; taken?: string } {
  const given = REASONING.filter((name) => !isNothing(wire[name]));
  const texts = given.map((name) => reasoningText(wire[name]));
  const reasoning = texts.find((text) => text !== "") ?? "";
  const [only] = given;
  const alone = given.length === 1 && only !== undefined && wire[only] === reasoning;
  return { reasoning, ...(alone && { taken: only }) };
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);
}

/** Reads a text, an object with a text, or a list of both; encrypted parts have no text. */
function reasoningText(value: unknown): string {
  if (typeof value === "string") return value;
  const items = Array.isArray(value) ? value : [value];
  if (items.length > LIMITS.valuesPerReply) return "";
  return items.map((item) => (typeof item === "string" ? item : textIn(item))).join("");
}

function textIn(item: unknown): string {
  if (!isRecord(item)) return "";
  const texts = ["text", "summary", "content", "thinking", "reasoning"].map((name) => item[name]);
  return texts.find((text) => typeof text === "string") ?? "";
}

/** A chunk that is sent as a whole reply has its message in `delta`; a text completion has a text. */
function fromChunk(sent: unknown): unknown {
  if (!isRecord(sent)) return sent;
  const choice = chunkOfText(sent);
  if (isRecord(choice["message"]) || !isRecord(choice["delta"])) return choice;
  return { ...choice, message: choice["delta"] };
}

/** Converts flat calls (`{id, name, arguments}`) to OpenAI's shape. */
function fromFlatCall(call: unknown): unknown {
  if (!isRecord(call) || call["function"] !== undefined || typeof call["name"] !== "string") return call;
  const { name, arguments: args, ...rest } = call;
  return { ...rest, type: "function", function: { name, arguments: args } };
}

/** Reads a call; its id may be missing until `withOwnIds`. Returns nothing for a call of another type of tool. */
function readCall(call: Readonly<Record<string, unknown>> & { function?: z.infer<typeof CalledFunction> | undefined }) {
  const { function: called, id } = call;
  if (called === undefined) return [];
  const beside = fieldsOf(call, (name) => READ_OF_CALL.has(name));
  const within = fieldsOf(called, (name) => READ_OF_FUNCTION.has(name));
  const fields = { ...beside, ...(Object.keys(within).length > 0 && { function: within }) };
  return [
    {
      id: idOf(id),
      type: "function" as const,
      function: { name: called.name, arguments: argumentsText(called.arguments) },
      ...(Object.keys(fields).length > 0 && { provider_fields: JSON.stringify(fields) }),
    },
  ];
}

/** "" if there is no id. Mistral writes "null" for that. */
function idOf(id: unknown): string {
  return id === "null" || (typeof id !== "string" && typeof id !== "number") ? "" : String(id);
}

/** Arguments as JSON text, as OpenAI writes them. Missing arguments are those of a tool without parameters. */
function argumentsText(args: unknown): string {
  if (typeof args === "string") return /^\s*(null\s*)?$/.test(args) ? "{}" : args;
  return args === undefined || args === null ? "{}" : JSON.stringify(args);
}

/**
 * Replaces ids that are missing, empty or already used, since the server matches results to calls by id. A new id has
 * nine letters and digits, the only form that Mistral accepts.
 */
function withOwnIds(calls: readonly ToolCall[], usedIds: ReadonlySet<string>): ToolCall[] {
  const taken = new Set(usedIds);
  let number = usedIds.size;
  return calls.map((call) => {
    let { id } = call;
    while (id === "" || taken.has(id)) {
      id = `call${String(number).padStart(5, "0")}`;
      number += 1;
    }
    taken.add(id);
    return { ...call, id };
  });
}

/** The members that are not read into another field, as JSON text; null if there are none. */
function fieldsText(object: Readonly<Record<string, unknown>>, isRead: (name: string) => boolean): string | null {
  const fields = fieldsOf(object, isRead);
  return Object.keys(fields).length === 0 ? null : JSON.stringify(fields);
}

/** Additional members. One that is too large, or nested too deeply, is left out. */
function fieldsOf(
  object: Readonly<Record<string, unknown>>,
  isRead: (name: string) => boolean,
): Readonly<Record<string, unknown>> {
  const fields = Object.entries(object).filter(
    ([name, value]) =>
      !isRead(name) && !(OFTEN_EMPTY.has(name) && isNothing(value)) && FewLevels.safeParse({ [name]: value }).success,
  );
  return Object.fromEntries(fields);
}

/** The characters of a reply's content; parts count as their JSON. */
function textLength(content: Message["content"] | undefined): number {
  if (content === null || content === undefined || content.length === 0) return 0;
  return typeof content === "string" ? content.length : JSON.stringify(content).length;
}

/** The usage that the server reports, also of a reply that cannot be used; null if it reports none. */
export function usageIn(body: unknown): Usage | null {
  const { data } = WireUsage.safeParse(isRecord(body) ? body["usage"] : null);
  return readUsage(data);
}

/** Null if one of the two counts is missing: then the usage of the call is unknown. */
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
