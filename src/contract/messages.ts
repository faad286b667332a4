/**
 * Messages, tools, usage and finish reasons in OpenAI's chat-completion wire shape.
 * Source: the chat-completion objects of the OpenAI API. Three additions follow verifiers: the role `developer` is read
 * as `system`; the role `text` is a bare string (a prompt or an environment's reply), sent as `user`; a tool call may
 * be written flat, or in OpenAI's shape without an id or with its arguments as an object.
 */
import * as z from "zod";
import { isRecord } from "./json.ts";
import { Count } from "./primitives.ts";

/** A server's additional members, as the text of a JSON object, so that numbers keep their digits. */
const ProviderFields = z.string().optional();

const WireToolCall = z.object({
  id: z.string(),
  type: z.literal("function").default("function"),
  function: z.object({ name: z.string(), arguments: z.string() }),
  provider_fields: ProviderFields,
});
export const ToolCall = z.preprocess(asWireCall, WireToolCall);
export type ToolCall = Readonly<z.infer<typeof WireToolCall>>;

/** One part of a message that is not only text. Fields beyond OpenAI's are kept as they are. */
export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  | {
      readonly type: "image_url";
      readonly image_url: { readonly url: string; readonly detail?: string | undefined };
    }
  | {
      readonly type: "input_audio";
      readonly input_audio: { readonly data: string; readonly format: string };
    }
  | { readonly type: string; readonly [field: string]: unknown };
export type Content = string | readonly ContentPart[] | null;

/** The members that OpenAI's parts must have. A part of another type is passed on: the endpoint may support it. */
const KNOWN_PARTS: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ["text", z.looseObject({ text: z.string() })],
  ["image_url", z.looseObject({ image_url: z.looseObject({ url: z.string() }) })],
  ["input_audio", z.looseObject({ input_audio: z.looseObject({ data: z.string(), format: z.string() }) })],
]);
const Part = z
  .object({ type: z.string() })
  .catchall(z.json())
  .superRefine((part, context) => {
    const { error } = KNOWN_PARTS.get(part.type)?.safeParse(part) ?? {};
    for (const { path, message } of error?.issues ?? []) {
      context.addIssue({ code: "custom", path: [...path], message });
    }
  });

export const Content = z
  .union([z.string(), z.array(Part)], {
    error: "neither a text nor a list of content parts in OpenAI's format",
  })
  .nullable();

const ROLES = ["system", "user", "assistant", "tool", "text"] as const;
const Role = z.enum(ROLES, {
  error: ({ input }) => `unknown role ${JSON.stringify(input)}: use one of ${ROLES.join(", ")}`,
});

const WireMessage = z.object({
  role: z.preprocess((role) => (role === "developer" ? "system" : role), Role),
  content: Content.default(null),
  name: z.string().optional(),
  reasoning_content: z.string().optional(),
  reasoning_name: z.string().optional(),
  provider_fields: ProviderFields,
  thinking_blocks: z.array(z.record(z.string(), z.json())).optional(),
  tool_calls: z.array(ToolCall).optional(),
  tool_call_id: z.string().optional(),
});
/** A message. Null fields are dropped: rows and SDKs often write an unused field as null. */
export const Message = z.preprocess(withoutNulls, WireMessage);
export interface Message {
  readonly role: (typeof ROLES)[number];
  readonly content: Content;
  readonly name?: string | undefined;
  readonly reasoning_content?: string | undefined;
  /** The member name under which the server sent `reasoning_content`, and gets it back; absent: that name. */
  readonly reasoning_name?: string | undefined;
  /** Members that the server sent in addition to those above, and gets back: the text of a JSON object. */
  readonly provider_fields?: string | undefined;
  /** The model's reasoning in its provider's own form: kept, never sent. */
  readonly thinking_blocks?: readonly { readonly [field: string]: unknown }[] | undefined;
  readonly tool_calls?: readonly ToolCall[] | undefined;
  readonly tool_call_id?: string | undefined;
}
export type Messages = readonly Message[];

/** Messages from an author: the fields that a role needs are required. Stored messages are parsed more leniently. */
export const Messages = z.array(
  Message.superRefine((message, context) => {
    for (const [field, why] of lacksOf(message)) {
      context.addIssue({ code: "custom", path: [field], message: why });
    }
  }),
);

function lacksOf({ role, content, tool_call_id }: Message): [field: string, why: string][] {
  const lacks: [string, string][] = [];
  const needsContent = role !== "assistant" && role !== "text";
  if (needsContent && content === null) lacks.push(["content", `is required in a ${role} message`]);
  if (role === "text" && typeof content !== "string") {
    lacks.push(["content", "must be a plain text for the role text"]);
  }
  if (role === "tool" && tool_call_id === undefined) {
    lacks.push(["tool_call_id", "a tool message needs the id of the call it answers"]);
  }
  return lacks;
}

export interface ToolDefinition {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: { readonly [key: string]: unknown };
    readonly strict?: boolean;
  };
}

/** Tokens of one call, as the endpoint counted them. */
export const Usage = z.object({
  prompt_tokens: Count.meta({ example: 92 }),
  completion_tokens: Count.meta({ example: 61 }),
  total_tokens: Count.meta({ example: 153 }),
  cached_tokens: Count.optional().describe("prompt tokens that the endpoint read from its cache; absent if none"),
});
export type Usage = Readonly<z.infer<typeof Usage>>;

/** Any other reason of an endpoint is kept as null, as in verifiers; `abort` is vLLM's, and kept apart. */
export const FinishReason = z.enum(["stop", "length", "tool_calls", "abort"]).nullable();
export type FinishReason = z.infer<typeof FinishReason>;

/** Types of parts that belong to the text around them: a piece of the text, or a quotation in it (Mistral). */
const WITHIN_A_TEXT: ReadonlySet<string> = new Set(["text", "reference"]);

/**
 * The text of a message: its text parts joined and trimmed; "" if there is no text or no message. A model's adjacent
 * text parts are pieces of one text, cut by its server; other parts are joined with a space.
 */
export function textOf(message: (Pick<Message, "content"> & Partial<Pick<Message, "role">>) | undefined): string {
  const content = message?.content ?? "";
  if (typeof content === "string") return content;
  const isReply = message?.role === "assistant";
  const texts = content.flatMap((part, at) => {
    if (part.type !== "text") return [];
    const before = content[at - 1];
    const joined = before === undefined || (isReply && WITHIN_A_TEXT.has(before.type));
    return [joined ? "" : " ", String(part["text"])];
  });
  return texts.join("").trim();
}

/**
 * Normalises messages of unknown origin (a row, an environment) for storage: one form of tool calls, one name per role.
 * Throws TypeError with what is wrong.
 */
export function normalizeMessages(value: unknown): Messages {
  if (typeof value === "string") return asMessages(value);
  const parsed = Messages.safeParse(value);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0] ?? { path: [], message: "" };
  throw new TypeError(`not a list of messages: ${path.join(".")}: ${message}`);
}

/**
 * Makes a bare string one message of role `text`. Throws TypeError for anything else, since authors may write
 * JavaScript.
 */
export function asMessages(value: Messages | string): Messages {
  if (typeof value === "string") return [{ role: "text", content: value }];
  if (Array.isArray(value)) return value;
  throw new TypeError("neither a text nor a list of messages");
}

/** How many messages two histories have in common from the start. */
export function commonPrefix(a: Messages, b: Messages): number {
  const limit = Math.min(a.length, b.length);
  let shared = 0;
  while (shared < limit && sameMessage(a[shared], b[shared])) shared += 1;
  return shared;
}

function sameMessage(a: Message | undefined, b: Message | undefined): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/**
 * Converts flat calls (`{id, name, arguments}`, the arguments as text) and OpenAI's calls, whose id may be missing and
 * whose arguments may be an object. Anything else is left to the schema.
 */
function asWireCall(call: unknown): unknown {
  if (!isRecord(call)) return call;
  const { id, type, function: called } = call;
  if (!isRecord(called)) {
    const { name, arguments: args } = call;
    return { id, type, function: { name, arguments: args } };
  }
  const { name, arguments: args } = called;
  const text = typeof args === "string" ? args : JSON.stringify(args ?? {});
  const { provider_fields } = call;
  return { id: typeof id === "string" ? id : name, type, function: { name, arguments: text }, provider_fields };
}

/** A message without the fields that only its server needs back. */
export function publicMessage({ provider_fields: _, reasoning_name: __, ...message }: Message): Message {
  if (message.tool_calls?.some(({ provider_fields }) => provider_fields !== undefined) !== true) return message;
  return { ...message, tool_calls: message.tool_calls.map(({ provider_fields: ___, ...call }) => call) };
}

function withoutNulls(message: unknown): unknown {
  if (!isRecord(message)) return message;
  return Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null));
}
