/** Prompts of token ids: what follows an answer, and when that is not proven. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { Message, Messages } from "../../../src/contract/messages.ts";
import { advance, type Event, newRollout, outstandingPrompt, type Rollout } from "../../../src/core/rollout/rollout.ts";
import {
  conversationsToRender,
  idsAfterAnswer,
  promptIdsOf,
  tokenPromptOf,
} from "../../../src/core/rollout/token-prompt.ts";
import RECORDED from "./token-prompt.json" with { type: "json" };

const Ids = z.array(z.int());
/** Made with Hugging Face's tokenizers and chat templates; each answer was sampled in a spelling of its own. */
const cases = z
  .array(
    z.object({
      ...{ name: z.string(), last_ids: Ids, before: Ids, one: Ids, other: Ids, as_messages: Ids },
      ...{ cause: z.string().optional(), suffix_ids: Ids.optional(), changed: Ids.optional(), forks: z.boolean() },
    }),
  )
  .parse(RECORDED.cases);

test.for(cases)("$name", ({ last_ids, before, one, other, changed, as_messages, cause, suffix_ids, forks }) => {
  const rendered = { before, one, other, ...(changed && { changed }) };
  expect(idsAfterAnswer(last_ids, rendered)).toEqual(cause ?? suffix_ids);
  // As messages, each of them would begin another sample.
  expect([forks, as_messages.slice(0, last_ids.length)]).not.toEqual([false, last_ids]);
});

describe("the rule on ids: 9 ends an answer, and 1 and 2 are the two words", () => {
  const last = [5, 6, 7, 8, 9];

  test("the ids after the end of the answer follow it", () => {
    const rendered = { before: [5], one: [5, 6, 1, 9, 3, 4], other: [5, 6, 2, 9, 3, 4] };
    expect(idsAfterAnswer(last, rendered)).toEqual([3, 4]);
  });

  test("a template that renders earlier messages differently, or drops the answer, is refused", () => {
    const moved = { before: [5, 5], one: [5, 6, 1, 9, 3], other: [5, 6, 2, 9, 3] };
    expect(idsAfterAnswer(last, moved)).toBe("template");
    const once = { before: [5], one: [5, 1, 9, 3], other: [6, 2, 9, 3] };
    expect(idsAfterAnswer(last, once)).toBe("template");
    const dropped = { before: [5], one: [5, 6, 9, 3], other: [5, 6, 9, 3] };
    expect(idsAfterAnswer(last, dropped)).toBe("template");
    const oneDropped = { before: [5], one: [5, 9, 3], other: [5, 2, 9, 3] };
    expect(idsAfterAnswer(last, oneDropped)).toBe("template");
    expect(idsAfterAnswer(last, { ...oneDropped, one: oneDropped.other, other: oneDropped.one })).toBe("template");
    expect(idsAfterAnswer(last, { before: [], one: [], other: [] })).toBe("template");
  });

  test("an answer that ended otherwise, or whose end depends on the answer, is refused", () => {
    const rendered = { before: [5], one: [5, 6, 1, 9, 3], other: [5, 6, 2, 9, 3] };
    expect(idsAfterAnswer([5, 6, 7], rendered)).toBe("answer_end");
    const dependent = { before: [5], one: [5, 6, 1, 9, 3], other: [5, 6, 2, 8, 3] };
    expect(idsAfterAnswer(last, dependent)).toBe("answer_end");
    expect(idsAfterAnswer(last, { before: [5], one: [5, 1], other: [5, 2] })).toBe("answer_end");
  });
});

const user = (content: string): Message => ({ role: "user", content });
const RESPONSE = {
  ...{ id: "1", model: "m", finish_reason: "stop" as const, usage: null, latency_ms: 1, policy_version: null },
  ...{ prompt_ids: [1, 2], completion_ids: [3, 9], completion_logprobs: [-1, -1] },
  message: { role: "assistant" as const, content: "a" },
};

function played(events: readonly Event[]): Rollout {
  const task = { id: "ro", task_key: "k", example_id: 0, task: {}, prompt: [user("q")], answer: "", info: {} };
  return events.reduce<Rollout>(advance, newRollout(task, 0));
}

const asked = (prompt: Messages): Event => ({ type: "replied", prompt, state: {}, final_env_response: null });

/** A rollout whose second call is outstanding. */
function second(response: object = {}, prompt?: Messages): Rollout {
  const answer = { ...RESPONSE, ...response };
  return played([
    { type: "set_up", state: {} },
    asked([user("q")]),
    { type: "answered", response: answer, at: 1 },
    asked(prompt ?? [user("q"), answer.message, user("again")]),
  ]);
}

const toRender = (rollout: Rollout, tools = false) =>
  conversationsToRender(rollout, outstandingPrompt(rollout), tools, "token_ids");

test("conversations are rendered with a word in place of every earlier answer", () => {
  const said = (content: string) => ({ role: "assistant", content });
  expect(toRender(second())).toEqual({
    before: [user("q")],
    one: [user("q"), said("Yes"), user("again")],
    other: [user("q"), said("No"), user("again")],
  });
});

test("a conversation whose next turn ids alone cannot express is sent as messages", () => {
  const call = { id: "c", type: "function" as const, function: { name: "f", arguments: "{}" } };
  const image = [{ type: "image_url" as const, image_url: { url: "data:," } }];
  const causes = [
    toRender(second(), true),
    toRender(second({ message: { ...RESPONSE.message, tool_calls: [call] } })),
    toRender(second({ message: { ...RESPONSE.message, reasoning_content: "so" } })),
    toRender(second({}, [user("q"), RESPONSE.message, { role: "user", content: image }])),
    toRender(second({}, [user("another"), RESPONSE.message, user("again")])),
    toRender(second({ prompt_ids: null })),
    toRender(second({ finish_reason: "length" })),
    toRender(second({ tokens_cut: true })),
    toRender({ ...second(), forked_from: { rollout_id: "ro_other", turn: 0 } }),
  ];
  expect(causes).toEqual(
    ["tools", "tools", "reasoning", "media", "rewritten", "no_token_ids", "cut_answer", "cut_answer", "inherited"].map(
      (messages) => ({ messages }),
    ),
  );
});

test("an engine that parses tool calls renders calls with other arguments, and a changed result", () => {
  const call = { id: "c", type: "function" as const, function: { name: "f", arguments: '{"a": 1}' } };
  const message = { role: "assistant" as const, content: "", reasoning_content: "so", tool_calls: [call] };
  const result: Message = { role: "tool", tool_call_id: "c", content: "4" };
  const rollout = second({ message }, [user("q"), message, result]);
  const parsed = (from: Rollout) => conversationsToRender(from, outstandingPrompt(from), true, "chat_token_ids");
  const said = (content: string) => ({
    ...{ role: "assistant", content },
    tool_calls: [{ ...call, function: { name: "f", arguments: JSON.stringify({ text: content }) } }],
  });
  expect(parsed(rollout)).toEqual({
    before: [user("q")],
    one: [user("q"), said("Yes"), result],
    other: [user("q"), said("No"), result],
    changed: [user("q"), said("Yes"), { ...result, content: "Yes" }],
  });
  // A name with the text of a special token would end the answer too early.
  const odd = { ...message, tool_calls: [{ ...call, function: { name: "<|im_end|>", arguments: "{}" } }] };
  expect(parsed(second({ message: odd }, [user("q"), odd, result]))).toEqual({ messages: "tools" });
});

test("a prompt that was decided stays, is the ids of the turn before and the suffix, and is kept with the turn", () => {
  const decided = advance(second(), { type: "prompt_decided", token_prompt: tokenPromptOf([7, 8], 100) });
  expect(promptIdsOf(decided)).toEqual([1, 2, 3, 9, 7, 8]);
  const again = advance(decided, { type: "prompt_decided", token_prompt: { messages: "template" } });
  expect(again).toEqual(decided);
  const answered = advance(decided, {
    type: "answered",
    response: { ...RESPONSE, prompt_ids: [1, 2, 3, 9, 7, 8] },
    at: 2,
  });
  expect(answered.turns[1]).toMatchObject({ sent_prompt: "token_ids", tokens: { forked: false } });
  const fallen = advance(second(), { type: "prompt_decided", token_prompt: { messages: "template" } });
  expect(promptIdsOf(fallen)).toBeNull();
  expect(advance(fallen, { type: "answered", response: RESPONSE, at: 2 }).turns[1]?.sent_prompt).toBe("template");
});
