/**
 * OpenAI's Responses. Source: the API reference of responses.
 *
 * A call is complete in itself: answers are not kept by this form, so `previous_response_id` and its like are refused.
 * Only tools of the agent are called, none of OpenAI's. `max_output_tokens` becomes `max_completion_tokens`. Not sent to
 * the model: fields about OpenAI's own service, `reasoning.summary`, and `top_logprobs`, since a reply has no logprobs.
 *
 * Reasoning is in items with `reasoning_text`; an agent that does not send them back loses it. carried.ts says what else
 * such an item carries. An item of another provider's encrypted reasoning carries nothing.
 */
import * as z from "zod";
import type { JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Messages, ToolDefinition } from "../../contract/messages.ts";
import { typedEvent } from "./event-text.ts";
import {
  CallTools,
  checked,
  type Fields,
  jsonFields,
  OptionalFlag,
  OptionalText,
  otherFields,
  type Path,
  quoted,
  refuse,
  samplingOf,
  Typed,
  textOrListOfAtMost,
} from "./fields.ts";
import type { Form, FormRequest } from "./form.ts";
import { openaiError, openaiErrorFields } from "./openai-error.ts";
import { readItems } from "./responses-items.ts";
import { responseEvents, responseReply } from "./responses-reply.ts";
import { CalledTool, chosenTool, Schema, ToolName, toolDefinition, WITHOUT_TOOLS } from "./tools.ts";

export const responses: Form = {
  name: "responses",
  parse,
  whole: responseReply,
  events: responseEvents,
  refusal: openaiError,
  refusalEvents: (refusal) => typedEvent({ ...openaiErrorFields(refusal), type: "error", sequence_number: 0 }),
};

const Format = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text") }),
  z.looseObject({ type: z.literal("json_object") }),
  z.looseObject({
    type: z.literal("json_schema"),
    name: z.string(),
    schema: Schema,
    description: OptionalText,
    strict: OptionalFlag,
  }),
]);

const Body = z.looseObject({
  model: z.string(),
  input: textOrListOfAtMost(LIMITS.callMessages),
  instructions: OptionalText,
  tools: CallTools.nullish(),
  tool_choice: z.unknown().optional(),
  stream: OptionalFlag,
  max_output_tokens: z.int().positive().nullish(),
  reasoning: z.looseObject({ effort: OptionalText }).nullish(),
  text: z.looseObject({ format: Format.nullish(), verbosity: OptionalText }).nullish(),
});

const WHOLE_INPUT = "is not supported: send the whole input with each request";
const REFUSED: Readonly<Record<string, string>> = {
  previous_response_id: WHOLE_INPUT,
  conversation: WHOLE_INPUT,
  prompt: "is not supported: send its text as instructions and input",
  background: "is not supported: wait for the response",
};

/** They are about OpenAI's own service or its built-in tools: accepted, and not sent to the model. */
const DROPPED = [
  ...["store", "include", "metadata", "truncation", "user", "service_tier", "safety_identifier", "stream_options"],
  ...["prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "max_tool_calls", "moderation"],
  ...["context_management", "access_programs", "image", "top_logprobs", "background_options", "client_metadata"],
];
const READ: ReadonlySet<string> = new Set([...Object.keys(Body.shape), ...DROPPED, ...Object.keys(REFUSED)]);

/** The fields that a response repeats. */
const REPEATED = [
  ...["instructions", "max_output_tokens", "max_tool_calls", "metadata", "parallel_tool_calls", "reasoning"],
  ...["temperature", "text", "tool_choice", "tools", "top_p", "truncation", "user"],
  ...["prompt_cache_key", "safety_identifier"],
];

function parse(body: unknown): FormRequest {
  const given = checked(Body, body, []);
  for (const [name, why] of Object.entries(REFUSED)) {
    const value = given[name];
    if (value !== undefined && value !== null && value !== false) refuse([name], why);
  }
  const tools = (given.tools ?? []).map((tool, at) => toolOf(tool, ["tools", at]));
  return {
    call: {
      messages: messagesOf(given),
      tools,
      sampling: samplingOf({
        ...otherFields(given, READ),
        max_completion_tokens: given.max_output_tokens,
        reasoning_effort: given.reasoning?.effort,
        tool_choice: toolChoiceOf(given.tool_choice),
        response_format: responseFormatOf(given.text?.format),
        verbosity: given.text?.verbosity,
        ...(tools.length === 0 && WITHOUT_TOOLS),
      }),
    },
    stream: given.stream === true,
    model: given.model,
    echo: echoOf(given),
  };
}

function echoOf(given: Fields): JsonObject {
  return jsonFields(Object.fromEntries(REPEATED.map((name) => [name, given[name]])));
}

function messagesOf({ instructions, input }: z.infer<typeof Body>): Messages {
  const said: Messages = typeof input === "string" ? [{ role: "user", content: input }] : readItems(input, ["input"]);
  return instructions == null || instructions === "" ? said : [{ role: "system", content: instructions }, ...said];
}

function toolOf(given: unknown, path: Path): ToolDefinition {
  const { type } = checked(Typed, given, path);
  if (type !== "function") {
    refuse([...path, "type"], `${quoted(type)} is not supported: only tools of the type function are`);
  }
  return toolDefinition(checked(CalledTool, given, path));
}

const CHOICES: ReadonlySet<unknown> = new Set([undefined, null, "auto", "none", "required"]);
const Chosen = z.looseObject({ type: z.literal("function"), name: ToolName });
const Allowed = z.looseObject({ mode: z.enum(["auto", "required"]), tools: CallTools });

function toolChoiceOf(choice: unknown): unknown {
  if (CHOICES.has(choice)) return choice;
  const path = ["tool_choice"];
  const { type } = checked(Typed, choice, path);
  if (type === "function") return chosenTool(checked(Chosen, choice, path).name);
  if (type !== "allowed_tools") refuse([...path, "type"], `${quoted(type)} is not supported`);
  const { mode, tools } = checked(Allowed, choice, path);
  const names = tools.map((tool, at) => checked(Chosen, tool, [...path, "tools", at]).name);
  return { type, allowed_tools: { mode, tools: names.map(chosenTool) } };
}

/** OpenAI's chat completions have the members of a schema one level deeper. */
function responseFormatOf(format: z.infer<typeof Format> | null | undefined): unknown {
  if (format == null || format.type === "text") return null;
  if (format.type === "json_object") return { type: format.type };
  const { name, schema, description, strict } = format;
  const described = { ...(description != null && { description }), ...(strict != null && { strict }) };
  return { type: format.type, json_schema: { name, ...described, schema } };
}
