/** Completions of prompts of token ids, read as chat completions. */
import { expect, test } from "vitest";
import { readChatCompletion } from "../../../src/core/rollout/chat-completion.ts";
import { readReplyText } from "../../../src/core/rollout/reply-text.ts";
import { completionBody } from "../../fakes/completion-body.ts";
import { streamOf } from "../../fakes/streamed-completion.ts";
import { textCompletionBody, textStreamOf } from "../../fakes/text-completion.ts";

const PARTS = {
  content: "<think>a</think> b",
  prompt_token_ids: [1, 2],
  token_ids: [3, 4, 5],
  logprobs: [-1, -0.5, -2],
};

test("a completion of ids is the same response as a chat completion, whole and streamed", () => {
  const chat = completionBody(PARTS, "m", 1, 2);
  const whole = textCompletionBody(chat);
  const expected = readChatCompletion(readReplyText(streamOf(chat)), 7);
  expect(expected).toMatchObject({ completion_ids: [3, 4, 5], completion_logprobs: [-1, -0.5, -2] });
  expect(readChatCompletion(readReplyText(JSON.stringify(whole)), 7)).toEqual(expected);
  expect(readChatCompletion(readReplyText(textStreamOf(whole)), 7)).toEqual(expected);
});

test("a completion whose stream ends early is rejected", () => {
  const text = textStreamOf(textCompletionBody(completionBody(PARTS, "m", 1, 2)));
  const cut = text.slice(0, text.indexOf('"finish_reason":"stop"') - 200);
  expect(() => readChatCompletion(readReplyText(cut.slice(0, cut.lastIndexOf("\n\n") + 2)), 7)).toThrow(/broken off/);
});
