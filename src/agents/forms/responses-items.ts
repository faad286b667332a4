/** The input items of Responses as messages. */
import * as z from "zod";
import { isRecord } from "../../contract/json.ts";
import type { ContentPart, Message, Messages } from "../../contract/messages.ts";
import { assistantMessage, type ShownCall } from "./carried.ts";
import {
  CallParts,
  checked,
  contentOf,
  OptionalText,
  type Path,
  quoted,
  refuse,
  TextOrParts,
  Typed,
} from "./fields.ts";

/** Consecutive items of the assistant, which are one message. */
interface Answer {
  readonly path: Path;
  readonly reasoning: string[];
  readonly texts: string[];
  readonly calls: ShownCall[];
  carried: string | null;
}

const Item = z.looseObject({ type: OptionalText, role: OptionalText });
const Carrying = z.looseObject({ carried: OptionalText });
const Said = z.looseObject({ role: z.enum(["user", "system", "developer", "assistant"]), content: z.unknown() });
const Called = z.looseObject({ call_id: z.string().min(1), name: z.string(), arguments: z.string() });
const Output = z.looseObject({ call_id: z.string().min(1), output: TextOrParts });
const Texts = CallParts.nullish();
const Reasoning = z.looseObject({ summary: Texts, content: Texts, encrypted_content: OptionalText });

/**
 * One message of the assistant is its reasoning, then its text, then its calls. So reasoning or a text after a text
 * begins another message. After a call it does not: the outputs of the calls must follow them. `path`: of the list.
 */
export function readItems(items: readonly unknown[], path: Path): Messages {
  const messages: Message[] = [];
  let answer: Answer | null = null;
  const close = () => {
    if (answer !== null) messages.push(messageOf(answer));
    answer = null;
  };
  const open = (at: Path, isCall: boolean): Answer => {
    if (answer !== null && answer.texts.length > 0 && answer.calls.length === 0 && !isCall) close();
    answer ??= { path: at, reasoning: [], texts: [], calls: [], carried: null };
    return answer;
  };
  for (const [index, item] of items.entries()) {
    const at = [...path, index];
    const { type, role } = checked(Item, item, at);
    const kind = type ?? (role == null ? undefined : "message");
    if (kind === "message" && role === "assistant") addText(open(at, false), item, at);
    else if (kind === "reasoning") addReasoning(open(at, false), item, at);
    else if (kind === "function_call") addCall(open(at, true), item, at);
    else {
      close();
      messages.push(otherMessage(kind, item, at));
    }
  }
  close();
  return messages;
}

function messageOf({ reasoning, texts, calls, carried, path }: Answer): Message {
  return assistantMessage({ text: texts.join("\n\n"), reasoning: reasoning.join("\n\n"), calls }, carried, path);
}

function addText(answer: Answer, item: unknown, path: Path): void {
  const { content } = checked(Said, item, path);
  answer.texts.push(typeof content === "string" ? content : textIn(content, [...path, "content"]));
  answer.carried ??= checked(Carrying, item, path).carried ?? null;
}

function addCall(answer: Answer, item: unknown, path: Path): void {
  const { call_id: id, name, arguments: args } = checked(Called, item, path);
  answer.calls.push({ id, name, arguments: args });
  answer.carried ??= checked(Carrying, item, path).carried ?? null;
}

/** The reasoning itself, or else its summary. */
function addReasoning(answer: Answer, item: unknown, path: Path): void {
  const { content, summary, encrypted_content } = checked(Reasoning, item, path);
  const text = textIn(content ?? [], [...path, "content"]) || textIn(summary ?? [], [...path, "summary"], "\n\n");
  if (text !== "") answer.reasoning.push(text);
  answer.carried ??= encrypted_content ?? null;
}

const TextPart = z.union([
  z
    .looseObject({
      type: z.enum(["output_text", "input_text", "text", "reasoning_text", "summary_text"]),
      text: z.string(),
    })
    .transform(({ text }) => text),
  z.looseObject({ type: z.literal("refusal"), refusal: z.string() }).transform(({ refusal }) => refusal),
]);

function textIn(parts: unknown, path: Path, between = ""): string {
  return checked(CallParts, parts, path)
    .map((part, at) => checked(TextPart, part, [...path, at]))
    .join(between);
}

function otherMessage(kind: string | undefined, item: unknown, path: Path): Message {
  if (kind === "message") {
    const { role, content } = checked(Said, item, path);
    return { role: role === "user" ? role : "system", content: partsOf(content, [...path, "content"]) };
  }
  if (kind === "function_call_output") {
    const { call_id, output } = checked(Output, item, path);
    return { role: "tool", content: partsOf(output, [...path, "output"]), tool_call_id: call_id };
  }
  const type = [...path, "type"];
  if (kind === "item_reference") return refuse(type, "item_reference is not supported: send the item itself");
  return refuse(type, kind === undefined ? "is required" : `${quoted(kind)} is not supported`);
}

function partsOf(content: unknown, path: Path): string | readonly ContentPart[] {
  if (typeof content === "string") return content;
  return contentOf(checked(CallParts, content, path).map((part, at) => partOf(part, [...path, at])));
}

const Text = z.looseObject({ text: z.string() });
const Image = z.looseObject({ image_url: OptionalText, detail: OptionalText });
const File = z.looseObject({ file_data: OptionalText, filename: OptionalText });

function partOf(part: unknown, path: Path): ContentPart {
  const { type } = checked(Typed, part, path);
  switch (type) {
    case "input_text":
    case "output_text":
    case "text":
      return { type: "text", text: checked(Text, part, path).text };
    case "input_image": {
      const { image_url: url, detail } = checked(Image, part, path);
      if (url == null) return refuse([...path, "image_url"], "is required: files are not stored here");
      return { type: "image_url", image_url: { url, ...(detail != null && detail !== "auto" && { detail }) } };
    }
    case "input_file": {
      const { file_data, filename } = checked(File, part, path);
      if (file_data == null) return refuse([...path, "file_data"], "is required: files are not stored here");
      return { type: "file", file: { file_data, ...(filename != null && { filename }) } };
    }
    case "input_audio":
      return isRecord(part) ? { ...part, type } : refuse(path, "must be an object");
    default:
      return refuse([...path, "type"], `${quoted(type)} is not supported`);
  }
}
