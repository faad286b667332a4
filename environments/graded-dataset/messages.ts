/** Messages whose texts are templates, in the form of OpenAI Evals: content is a text, a block, or a list of blocks. */
import type { ContentPart, Message, Messages } from "rollcall";
import * as z from "zod";
import { ItemTemplate, MOST_CHARACTERS, type Names, type Path, pathsIn, render, Template } from "./template.ts";

const TEXT_BLOCKS = ["input_text", "output_text", "text"] as const;
const ROLES = ["system", "developer", "user", "assistant"] as const;

type Block =
  | { readonly type: (typeof TEXT_BLOCKS)[number]; readonly text: string }
  | { readonly type: "input_image"; readonly image_url: string; readonly detail?: string | null }
  | {
      readonly type: "input_audio";
      readonly input_audio: { readonly data: string; readonly format: string };
    };
type Content = string | Block | readonly Block[];
export interface MessageTemplate {
  readonly role: (typeof ROLES)[number];
  readonly content: Content;
  readonly type?: "message" | undefined;
}

/** Messages of a prompt: they may name the item. */
export const ItemMessages = messagesOf(ItemTemplate);
/** Messages to a judge: they may also name the sample. */
export const JudgeMessages = messagesOf(Template);

function messagesOf(Text: z.ZodType<string>): z.ZodType<MessageTemplate[]> {
  const Message = z.strictObject({
    role: z.enum(ROLES),
    content: contentOf(Text),
    type: z.literal("message").optional(),
  });
  return z.array(Message).min(1).max(100);
}

function contentOf(Text: z.ZodType<string>): z.ZodType<Content> {
  const Block = z.discriminatedUnion("type", [
    z.strictObject({ type: z.enum(TEXT_BLOCKS), text: Text }),
    z.strictObject({
      type: z.literal("input_image"),
      image_url: Text,
      detail: z.string().nullish(),
    }),
    z.strictObject({
      type: z.literal("input_audio"),
      input_audio: z.strictObject({ data: Text, format: z.string() }),
    }),
  ]);
  // The error of a union would only be that none of the three forms fits.
  return z.custom<Content>().superRefine((content, context) => {
    const schema = typeof content === "string" ? Text : Array.isArray(content) ? z.array(Block) : Block;
    for (const { path, message } of schema.safeParse(content).error?.issues ?? []) {
      context.addIssue({ code: "custom", path, message });
    }
  });
}

/** The paths in the item that the templates name. */
export function pathsOf(messages: readonly MessageTemplate[]): Path[] {
  return messages.flatMap(({ content }) => blocksOf(content).flatMap((block) => pathsIn(textIn(block))));
}

export function renderMessages(messages: readonly MessageTemplate[], names: Names): Messages {
  let left = MOST_CHARACTERS;
  const fill = (template: string) => {
    const text = render(template, names, left);
    left -= text.length;
    return text;
  };
  return messages.map(({ role, content }): Message => {
    const blocks = blocksOf(content).map((block) => rendered(block, fill));
    const texts = blocks.flatMap((block) => (block.type === "text" ? [String(block["text"])] : []));
    const whole = texts.length === blocks.length ? texts.join("\n") : blocks;
    return { role: role === "developer" ? "system" : role, content: whole };
  });
}

function blocksOf(content: Content): readonly Block[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return "type" in content ? [content] : content;
}

function textIn(block: Block): string {
  if (block.type === "input_image") return block.image_url;
  return block.type === "input_audio" ? block.input_audio.data : block.text;
}

function rendered(block: Block, fill: (template: string) => string): ContentPart & { [field: string]: unknown } {
  const text = fill(textIn(block));
  if (block.type === "input_image") {
    const { detail } = block;
    return { type: "image_url", image_url: { url: text, ...(detail && { detail }) } };
  }
  if (block.type !== "input_audio") return { type: "text", text };
  return { type: "input_audio", input_audio: { ...block.input_audio, data: text } };
}
