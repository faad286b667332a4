/**
 * Anthropic's messages. Source: the API reference of messages, of 2023-06-01.
 *
 * `max_tokens` becomes `max_completion_tokens`, and `output_config.effort` becomes `reasoning_effort`. `thinking` is
 * accepted and not sent to the model: whether and how much it reasons is a setting of the run and of its server. The
 * same holds for fields about Anthropic's own service and for `cache_control`. Anthropic's own tools are refused.
 *
 * Reasoning is in thinking blocks; an agent that does not send them back loses it. carried.ts says what else such a
 * block carries. Redacted blocks and signatures of another provider carry nothing. An empty text is not sent as a block,
 * and which stop sequence ended a reply is unknown: its `stop_reason` is `end_turn`.
 */
import * as z from "zod";
import type { Messages, ToolDefinition } from "../../contract/messages.ts";
import { typedEvent } from "./event-text.ts";
import {
  CallMessages,
  CallTools,
  checked,
  OptionalFlag,
  OptionalText,
  otherFields,
  type Path,
  quoted,
  refuse,
  samplingOf,
} from "./fields.ts";
import type { Form, FormRequest } from "./form.ts";
import { messagesIn, systemContent } from "./messages-blocks.ts";
import { messagesError, THREAD } from "./messages-error.ts";
import { messageEvents, messageReply } from "./messages-reply.ts";
import { chosenTool, Schema, ToolName, toolDefinition, WITHOUT_TOOLS } from "./tools.ts";

export const messages: Form = {
  name: "messages",
  parse,
  whole: messageReply,
  events: messageEvents,
  refusal: messagesError,
  refusalEvents: (refusal) => typedEvent(messagesError(refusal)),
};

const Format = z.looseObject({
  type: z.literal("json_schema", { error: "must be json_schema" }),
  schema: Schema,
});

const Body = z.looseObject({
  model: z.string(),
  max_tokens: z.int().positive(),
  messages: CallMessages,
  system: z.unknown().optional(),
  tools: CallTools.nullish(),
  tool_choice: z
    .looseObject({
      type: z.enum(["auto", "any", "tool", "none"]),
      name: ToolName.optional(),
      disable_parallel_tool_use: OptionalFlag,
    })
    .nullish(),
  stream: OptionalFlag,
  stop_sequences: z.array(z.string()).nullish(),
  thinking: z.looseObject({ type: z.string() }).nullish(),
  output_config: z.looseObject({ effort: OptionalText, format: Format.nullish() }).nullish(),
  output_format: Format.nullish(),
});

const REFUSED: Readonly<Record<string, string>> = {
  container: "is not supported: the platform has no containers",
  mcp_servers: "is not supported: connect to the servers from the agent",
  [THREAD]: "is not supported: send the whole conversation with each request",
  compaction: "is not supported: ask the model for a summary in a message",
};

const DROPPED = [
  ...["metadata", "service_tier", "cache_control", "context_management", "inference_geo", "speed", "betas"],
  ...["diagnostics", "user_profile_id", "workspace_id", "fallbacks", "fallback_credit_token", "billing_policy"],
];
const READ: ReadonlySet<string> = new Set([...Object.keys(Body.shape), ...DROPPED, ...Object.keys(REFUSED)]);

function parse(body: unknown): FormRequest {
  const given = checked(Body, body, []);
  for (const [name, why] of Object.entries(REFUSED)) {
    const value = given[name];
    if (value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0)) refuse([name], why);
  }
  const format = given.output_config?.format ?? given.output_format;
  const tools = (given.tools ?? []).map((tool, at) => toolOf(tool, ["tools", at]));
  return {
    call: {
      messages: allMessages(given),
      tools,
      sampling: samplingOf({
        ...otherFields(given, READ),
        max_completion_tokens: given.max_tokens,
        stop: given.stop_sequences,
        tool_choice: toolChoiceOf(given.tool_choice),
        parallel_tool_calls: given.tool_choice?.disable_parallel_tool_use === true ? false : null,
        reasoning_effort: given.output_config?.effort,
        response_format: format == null ? null : responseFormatOf(format),
        ...(tools.length === 0 && WITHOUT_TOOLS),
      }),
    },
    stream: given.stream === true,
    model: given.model,
    echo: {},
  };
}

function allMessages({ system, messages: given }: z.infer<typeof Body>): Messages {
  const said = messagesIn(given, ["messages"]);
  const content = systemContent(system ?? "", ["system"]);
  return content === "" ? said : [{ role: "system", content }, ...said];
}

const OwnTool = z.looseObject({ type: OptionalText, name: ToolName });
const Tool = z.looseObject({ name: ToolName, description: OptionalText, input_schema: Schema, strict: OptionalFlag });

function toolOf(given: unknown, path: Path): ToolDefinition {
  const { type, name } = checked(OwnTool, given, path);
  if (type != null && type !== "custom") {
    refuse(
      [...path, "type"],
      `${quoted(type)} (${quoted(name)}) is not supported: only tools with an input_schema are`,
    );
  }
  const { input_schema: parameters, ...tool } = checked(Tool, given, path);
  return toolDefinition({ ...tool, parameters });
}

function toolChoiceOf(choice: z.infer<typeof Body>["tool_choice"]): unknown {
  if (choice == null) return null;
  if (choice.type === "any") return "required";
  if (choice.type !== "tool") return choice.type;
  return chosenTool(choice.name ?? refuse(["tool_choice", "name"], "is required for the type tool"));
}

/** OpenAI's chat completions require a name. */
function responseFormatOf({ schema }: z.infer<typeof Format>): unknown {
  return { type: "json_schema", json_schema: { name: "output", schema, strict: true } };
}
