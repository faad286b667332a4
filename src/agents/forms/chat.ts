/**
 * OpenAI's chat completions. Source: the API reference of chat completions.
 *
 * The form carries a whole message, with the members that only its server needs. A reply has no token texts: `logprobs`
 * and `top_logprobs` are sent to the model, for the samples of a run, and `logprobs` of a reply is null. Content that
 * the model's server sent as parts is shown as one text; the parts are in a member of their own, `content_parts`.
 */
import * as z from "zod";
import { InvalidModelResponseError } from "../../contract/errors.ts";
import { isRecord } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { Content, type Message, type ToolDefinition, textOf } from "../../contract/messages.ts";
import { readAssistantMessage } from "../../core/rollout/chat-completion.ts";
import { chatEvents, chatReply } from "./chat-reply.ts";
import { eventText } from "./event-text.ts";
import {
  CallMessages,
  CallParts,
  CallTools,
  checked,
  contentOf,
  type Fields,
  listOfAtMost,
  OptionalFlag,
  OptionalText,
  otherFields,
  type Path,
  quoted,
  refuse,
  samplingOf,
} from "./fields.ts";
import type { Form, FormRequest } from "./form.ts";
import { openaiError } from "./openai-error.ts";
import { CalledTool, toolDefinition } from "./tools.ts";

export const chat: Form = {
  name: "chat",
  parse,
  whole: chatReply,
  events: chatEvents,
  refusal: openaiError,
  refusalEvents: (refusal) => eventText(null, openaiError(refusal)),
};

const Body = z.looseObject({
  model: z.string(),
  messages: CallMessages,
  tools: CallTools.nullish(),
  stream: OptionalFlag,
  stream_options: z.looseObject({ include_usage: OptionalFlag }).nullish(),
  n: z.literal(1, { error: "must be 1: send one request for each answer" }).nullish(),
  modalities: z.array(z.literal("text", { error: "only text is answered" })).nullish(),
});

/** They are about OpenAI's own service, or only make a call faster: accepted, and not sent to the model. */
const DROPPED = [
  ...["store", "metadata", "user", "service_tier", "safety_identifier", "moderation", "prediction"],
  ...["prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"],
];

const REFUSED: Readonly<Record<string, string>> = {
  audio: "audio is not answered: leave it out",
  functions: "is deprecated: use tools",
  function_call: "is deprecated: use tool_choice",
  web_search_options: "the platform has no web search: leave it out",
};

const READ: ReadonlySet<string> = new Set([...Object.keys(Body.shape), ...DROPPED, ...Object.keys(REFUSED)]);

function parse(body: unknown): FormRequest {
  const given = checked(Body, body, []);
  for (const [name, why] of Object.entries(REFUSED)) {
    if (given[name] !== undefined && given[name] !== null) refuse([name], why);
  }
  return {
    call: {
      messages: given.messages.map((message, at) => messageOf(message, ["messages", at])),
      tools: (given.tools ?? []).map((tool, at) => toolOf(tool, ["tools", at])),
      sampling: samplingOf(otherFields(given, READ)),
    },
    stream: given.stream === true,
    model: given.model,
    echo: { include_usage: given.stream_options?.include_usage === true },
  };
}

const ROLES = ["system", "developer", "user", "assistant", "tool"] as const;
const Role = z.enum(ROLES, {
  error: ({ input }) => `unknown role ${quoted(String(input))}: use one of ${ROLES.join(", ")}`,
});
const AnyMessage = z.looseObject({ role: Role });
const OtherMessage = z.object({ content: Content.default(null), name: OptionalText, tool_call_id: OptionalText });

function messageOf(given: unknown, path: Path): Message {
  const { role, ...message } = checked(AnyMessage, given, path);
  if (Array.isArray(message["content"])) checked(CallParts, message["content"], [...path, "content"]);
  if (role === "assistant") return assistantMessage(message, path);
  const { content, name, tool_call_id } = checked(OtherMessage, message, path);
  if (content === null) refuse([...path, "content"], `is required in a ${role} message`);
  if (role === "tool" && tool_call_id == null) {
    refuse([...path, "tool_call_id"], "is required: a tool message has the id of the call that it answers");
  }
  return {
    role: role === "developer" ? "system" : role,
    content: typeof content === "string" ? content : contentOf(content),
    ...(name != null && { name }),
    ...(role === "tool" && tool_call_id != null && { tool_call_id }),
  };
}

const Call = z.looseObject({
  id: z.string().min(1),
  type: z.literal("function", { error: "only function calls are supported" }).default("function"),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});
const Calls = listOfAtMost(LIMITS.toolCallsPerReply).nullish();
const TextParts = z.array(
  z.union([
    z.looseObject({ type: z.literal("text"), text: z.string() }).transform(({ text }) => text),
    z.looseObject({ type: z.literal("refusal"), refusal: z.string() }).transform(({ refusal }) => refusal),
  ]),
);

/** Members that SDKs add to a message or to a called function. */
const ADDED: ReadonlySet<string> = new Set(["parsed", "parsed_arguments", "content_parts"]);
const ADDED_AS_NULL: ReadonlySet<string> = new Set(["provider_specific_fields"]);

function assistantMessage({ content, tool_calls, ...message }: Fields, path: Path): Message {
  for (const name of ["audio", "function_call"]) {
    if (isRecord(message[name])) refuse([...path, name], "is not supported in a message");
  }
  const calls = (checked(Calls, tool_calls, [...path, "tool_calls"]) ?? []).map((call, at) => {
    const { function: called, ...others } = checked(Call, call, [...path, "tool_calls", at]);
    return { ...withoutAdded(others), function: withoutAdded(called) };
  });
  const parts = message["content_parts"];
  const wire = { ...withoutAdded(message), content: assistantContent(content, parts), tool_calls: calls };
  try {
    return readAssistantMessage(wire);
  } catch (thrown) {
    if (!(thrown instanceof InvalidModelResponseError)) throw thrown;
    return refuse(path, thrown.message);
  }
}

/** `parts`: those that this form's reply had beside the text, if the agent sends them back. */
function assistantContent(content: unknown, parts: unknown): unknown {
  const texts = TextParts.safeParse(content);
  const shown = texts.success ? texts.data.join("") : content;
  const whole = Content.safeParse(parts);
  if (!(whole.success && Array.isArray(whole.data))) return shown;
  return textOf({ role: "assistant", content: whole.data }) === shown ? whole.data : shown;
}

function withoutAdded(fields: Fields): Fields {
  const kept = Object.entries(fields).filter(
    ([name, value]) => !ADDED.has(name) && !(value === null && ADDED_AS_NULL.has(name)),
  );
  return Object.fromEntries(kept);
}

const Tool = z.looseObject({
  type: z.literal("function", { error: "only tools of the type function are supported" }),
  function: CalledTool,
});

function toolOf(given: unknown, path: Path): ToolDefinition {
  return toolDefinition(checked(Tool, given, path).function);
}
