/**
 * Messages, tools, usage and finish reasons in OpenAI's chat-completion wire shape.
 * Source: the chat-completion objects of the OpenAI API. Two readings are ours, both verifiers': the role `developer`
 * is read as `system`, and the role `text` is a bare string (a prompt or an environment's reply), sent as `user`.
 */
import * as z from "zod";

export const ToolCall = z.object({
  id: z.string(),
  type: z.literal("function").default("function"),
  function: z.object({ name: z.string(), arguments: z.string() }),
});
export type ToolCall = Readonly<z.infer<typeof ToolCall>>;

const ROLES = ["system", "user", "assistant", "tool", "text"] as const;

export const Message = z.object({
  role: z.preprocess((role) => (role === "developer" ? "system" : role), z.enum(ROLES)),
  content: z.string().nullable().default(null),
  reasoning_content: z.string().optional(),
  tool_calls: z.array(ToolCall).optional(),
  tool_call_id: z.string().optional(),
});
export interface Message {
  readonly role: (typeof ROLES)[number];
  readonly content: string | null;
  readonly reasoning_content?: string | undefined;
  readonly tool_calls?: readonly ToolCall[] | undefined;
  readonly tool_call_id?: string | undefined;
}
export type Messages = readonly Message[];

export const Messages = z.array(Message);

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
  prompt_tokens: z.int().nonnegative(),
  completion_tokens: z.int().nonnegative(),
  total_tokens: z.int().nonnegative(),
});
export type Usage = Readonly<z.infer<typeof Usage>>;

/** Anything an endpoint says beyond these three is kept as null, as verifiers does; `abort` is vLLM's, kept apart. */
export const FinishReason = z.enum(["stop", "length", "tool_calls", "abort"]).nullable();
export type FinishReason = z.infer<typeof FinishReason>;

/** A bare string is one message of role `text`. Throws TypeError for what is neither: authors are not always typed. */
export function asMessages(value: Messages | string): Messages {
  if (typeof value === "string") return [{ role: "text", content: value }];
  if (Array.isArray(value)) return value;
  throw new TypeError("neither a text nor a list of messages");
}

/** How many messages two histories share from the start. */
export function commonPrefix(a: Messages, b: Messages): number {
  const limit = Math.min(a.length, b.length);
  let shared = 0;
  while (shared < limit && sameMessage(a[shared], b[shared])) shared += 1;
  return shared;
}

function sameMessage(a: Message | undefined, b: Message | undefined): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
