/** Chat completions as a server sends them, whole and as a stream, and how they are read. */
import { expect } from "vitest";
import type { ModelResponse } from "../../../src/contract/trajectory.ts";
import { readChatCompletion } from "../../../src/core/rollout/chat-completion.ts";
import { readReplyText } from "../../../src/core/rollout/reply-text.ts";
import { streamOf } from "../../fakes/streamed-completion.ts";

export type Members = Readonly<Record<string, unknown>>;

export const USAGE = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 };

export function reply(message: Members, choice: Members = {}, top: Members = {}): Members {
  const said = { role: "assistant", ...message };
  return {
    id: "r-1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, finish_reason: "stop", message: said, ...choice }],
    usage: USAGE,
    ...top,
  };
}

export const FORMS: Readonly<Record<string, (body: Members) => string>> = {
  whole: (body) => JSON.stringify(body),
  streamed: (body) => streamOf(body),
};

export function read(text: string): ModelResponse {
  return readChatCompletion(readReplyText(text), 1);
}

/** Reads the same reply in both forms. */
export function readBoth(body: Members): ModelResponse {
  const [whole, streamed] = [FORMS["whole"], FORMS["streamed"]].map((form) => read(form?.(body) ?? ""));
  if (whole === undefined) throw new Error("there are two forms");
  expect(streamed).toEqual(whole);
  return whole;
}
