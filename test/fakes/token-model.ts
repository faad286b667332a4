/**
 * Adds an engine's data for training to a reply: the ids of the prompt and of the sampled tokens, with logprobs. A
 * token is a byte. A message has the same tokens in any position, so a prompt continues the turn before it.
 */
import type { Message } from "../../src/contract/messages.ts";
import type { ReplyParts } from "./completion-body.ts";

const ROLES = ["system", "user", "assistant", "tool", "developer"];
/** The first token of a message, by role; smaller ids are bytes. */
const FIRST_ROLE = 256;
const END = 255;

/** The reply with the ids of the prompt and of the answer. */
export function withTokens(reply: ReplyParts, messages: readonly Message[]): ReplyParts {
  const sampled = [...bytesOf(reply.content ?? "", reply.tool_calls), END];
  return {
    ...reply,
    prompt_token_ids: [...messages.flatMap(tokensOf), opening("assistant")],
    token_ids: sampled,
    logprobs: sampled.map((id) => -((id % 7) + 1) / 8),
  };
}

function tokensOf(message: Message): number[] {
  const calls = message.role === "assistant" ? message.tool_calls : undefined;
  const said = calls?.map((call) => ({
    name: call.function.name,
    arguments: call.function.arguments,
  }));
  const content = typeof message.content === "string" ? message.content : "";
  return [opening(message.role), ...bytesOf(content, said), END];
}

function opening(role: string): number {
  return FIRST_ROLE + ROLES.indexOf(role);
}

interface SaidCall {
  readonly name: string;
  readonly arguments: string | Readonly<Record<string, unknown>>;
}

function bytesOf(content: string, calls: readonly SaidCall[] = []): number[] {
  const asked = calls.map((call) => {
    const sent = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);
    return `${call.name}(${sent})`;
  });
  return [...new TextEncoder().encode([content, ...asked].join(" "))];
}
