/** The messages of Anthropic, which consist of blocks, as messages of chat completions. */
import * as z from "zod";
import type { ContentPart, Message, Messages } from "../../contract/messages.ts";
import { assistantMessage, type ShownCall } from "./carried.ts";
import {
  checked,
  contentOf,
  OptionalFlag,
  OptionalText,
  type Path,
  quoted,
  refuse,
  TextOrParts,
  Typed,
} from "./fields.ts";
import { argumentsOf } from "./tool-input.ts";
import { ToolName } from "./tools.ts";

const ROLES = ["user", "assistant", "system"] as const;
const AnyMessage = z.looseObject({
  role: z.enum(ROLES, {
    error: ({ input }) => `unknown role ${quoted(String(input))}: use one of ${ROLES.join(", ")}`,
  }),
  content: TextOrParts,
});

/** `path`: of the list. */
export function messagesIn(list: readonly unknown[], path: Path): Messages {
  return list.flatMap((given, at): Messages => {
    const { role, content } = checked(AnyMessage, given, [...path, at]);
    const within = [...path, at, "content"];
    if (role === "assistant") return [answerOf(content, within)];
    if (role === "system") return [{ role, content: systemContent(content, within) }];
    return typeof content === "string" ? [{ role, content }] : userMessages(content, within);
  });
}

const Text = z.looseObject({ text: z.string() });
const TextBlock = Text.extend({ type: z.literal("text", { error: "must be text" }) });

/** Claude Code begins its instructions with a line for billing that changes with each request (vllm-project/vllm#36829). */
const BILLING = /^x-anthropic-billing-header:[^\n]*\n?/;

/** Without the line for billing: the beginning of all histories would differ by it. "" if nothing is left. */
export function systemContent(content: unknown, path: Path): string | readonly ContentPart[] {
  const given = checked(TextOrParts, content, path);
  if (typeof given === "string") return given.replace(BILLING, "");
  const texts = given.map((block, at) => checked(TextBlock, block, [...path, at]).text.replace(BILLING, ""));
  const parts = texts.filter((text) => text !== "").map((text) => ({ type: "text", text }));
  return parts.length === 0 ? "" : contentOf(parts);
}

const Result = z.looseObject({
  tool_use_id: z.string().min(1),
  content: TextOrParts.nullish(),
  is_error: OptionalFlag,
});

/** The results of tools come first: they must follow the message with the calls. */
function userMessages(blocks: readonly unknown[], path: Path): Messages {
  const results: Message[] = [];
  const parts: ContentPart[] = [];
  for (const [index, block] of blocks.entries()) {
    const at = [...path, index];
    if (checked(Typed, block, at).type === "tool_result") results.push(resultOf(block, at));
    else parts.push(partOf(block, at));
  }
  const said = parts.length > 0 || results.length === 0;
  return said ? [...results, { role: "user", content: contentOf(parts) }] : results;
}

/** Chat completions have no mark of a failed tool: its text begins with one. */
const FAILED = "Error: ";

function resultOf(block: unknown, path: Path): Message {
  const { tool_use_id, content, is_error } = checked(Result, block, path);
  const given = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  const parts = given.map((part, at) => partOf(part, [...path, "content", at]));
  const said = is_error === true ? marked(parts) : parts;
  return { role: "tool", content: said.length === 0 ? "" : contentOf(said), tool_call_id: tool_use_id };
}

function marked(parts: readonly ContentPart[]): readonly ContentPart[] {
  const [first, ...others] = parts;
  if (first?.type !== "text") return [{ type: "text", text: FAILED.trim() }, ...parts];
  const text = String(first["text"]);
  return [{ type: "text", text: /^\W*error/i.test(text) ? text : FAILED + text }, ...others];
}

const Source = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("base64"), media_type: z.string(), data: z.string() }),
  z.looseObject({ type: z.literal("url"), url: z.string() }),
]);
const Image = z.looseObject({ source: Source });
const Document = z.looseObject({
  source: z.looseObject({
    type: z.literal("text", { error: "only documents with a text are supported" }),
    data: z.string(),
  }),
});

function partOf(block: unknown, path: Path): ContentPart {
  const { type } = checked(Typed, block, path);
  switch (type) {
    case "text":
      return { type, text: checked(Text, block, path).text };
    case "image": {
      const { source } = checked(Image, block, path);
      const url = source.type === "url" ? source.url : `data:${source.media_type};base64,${source.data}`;
      return { type: "image_url", image_url: { url } };
    }
    case "document":
      return { type: "text", text: checked(Document, block, path).source.data };
    default:
      return refuse([...path, "type"], `${quoted(type)} is not supported`);
  }
}

const Thinking = z.looseObject({ thinking: z.string(), signature: OptionalText });
const Carrying = z.looseObject({ carried: OptionalText });
const Use = z.looseObject({ id: z.string().min(1), name: ToolName, input: z.record(z.string(), z.unknown()) });

function answerOf(content: string | readonly unknown[], path: Path): Message {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const shown = { text: "", reasoning: "" };
  const calls: ShownCall[] = [];
  let carried: string | null = null;
  for (const [index, block] of blocks.entries()) {
    const at = [...path, index];
    const { type } = checked(Typed, block, at);
    carried ??= checked(Carrying, block, at).carried ?? null;
    if (type === "text") shown.text += checked(Text, block, at).text;
    else if (type === "thinking") {
      const { thinking, signature } = checked(Thinking, block, at);
      shown.reasoning += thinking;
      carried ??= signature ?? null;
    } else if (type === "tool_use") {
      const { id, name, input } = checked(Use, block, at);
      calls.push({ id, name, arguments: argumentsOf(input) });
    } else if (type !== "redacted_thinking") refuse([...at, "type"], `${quoted(type)} is not supported`);
  }
  return assistantMessage({ ...shown, calls }, carried, path);
}
