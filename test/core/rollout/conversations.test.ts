/** An agent that has several conversations: what a rollout stores of them, and what is read again. */
import { expect, test } from "vitest";
import type { Message, Messages } from "../../../src/contract/messages.ts";
import type { ModelResponse, Turn } from "../../../src/contract/trajectory.ts";
import { historyOf, promptOf } from "../../../src/contract/trajectory.ts";
import { forkedRollout, forkPoint } from "../../../src/core/rollout/fork.ts";
import {
  advance,
  newRollout,
  outstandingPrompt,
  type Rollout,
  trajectoryOf,
} from "../../../src/core/rollout/rollout.ts";
import { storedPrompt } from "../../../src/core/rollout/stored-messages.ts";
import { samplesOf } from "../../../src/core/training/samples.ts";
import { rollout as asRollout, DISPATCHED, type Sampled, stored } from "../training/sampled-turns.ts";
import { unpackTokens } from "./unpacked-tokens.ts";

const user = (content: string): Message => ({ role: "user", content });
const start = advance(
  newRollout({ id: "ro", task_key: "k", example_id: 0, task: {}, prompt: [user("q")], answer: "", info: {} }, 0),
  { type: "set_up", state: {} },
);

/** Ids that a template gives these messages: those of a longer conversation begin with them. */
function idsOf(messages: Messages): number[] {
  return messages.flatMap(({ role, content }) => [role.length, String(content).length, numberIn(String(content))]);
}

function numberIn(text: string): number {
  return Array.from(text).reduce((sum, character) => (31 * sum + character.charCodeAt(0)) % 100_003, 0);
}

/** The agent calls the model with these messages, as they come over the wire, and gets an answer. */
function call(rollout: Rollout, messages: Messages, content: string): Rollout {
  const sent: Messages = JSON.parse(JSON.stringify(messages));
  const message: Message = { role: "assistant", content };
  const response: ModelResponse = {
    ...{ id: null, model: null, message, finish_reason: "stop", usage: null, policy_version: null, latency_ms: 1 },
    prompt_ids: idsOf(messages),
    completion_ids: idsOf([message]),
    completion_logprobs: idsOf([message]).map(() => -0.5),
  };
  const asked = { hash: "h", lease: 1, sampling: {} };
  const prompt = storedPrompt(sent, rollout.turns);
  const outstanding = advance(rollout, { type: "replied", ...prompt, state: {}, final_env_response: null, asked });
  if (rollout.turns.length < 20) expect(outstandingPrompt(outstanding)).toEqual(messages);
  return advance(advance(outstanding, { type: "sent" }), { type: "answered", response, at: 1 });
}

/** Plays conversations in turn, each of which grows by a question and an answer in every round. */
function alternate(beginnings: readonly Messages[], rounds: number): { rollout: Rollout; prompts: Messages[] } {
  let rollout = start;
  const prompts: Messages[] = [];
  const now = [...beginnings];
  for (let round = 0; round < rounds; round += 1) {
    for (const [at, before] of now.entries()) {
      const prompt = [...before, user(`question ${1000 + round} of ${at}`)];
      const answer = `answer ${1000 + round} of ${at}`;
      rollout = call(rollout, prompt, answer);
      prompts.push(prompt);
      now[at] = [...prompt, { role: "assistant", content: answer }];
    }
  }
  return { rollout, prompts };
}

/** The size of each turn, as if all of its numbers had the same digits. */
function bytesOf(turns: readonly Turn[]): number[] {
  const same = { after: 100, keep: 100 };
  return turns.map(({ tokens, ...turn }) => {
    const stored = {
      ...turn,
      index: 100,
      prompt: { ...turn.prompt, ...same },
      tokens: { ...tokens, prompt_length: 100 },
      state_after: null,
    };
    return JSON.stringify(stored).length;
  });
}

const SYSTEM: Message = { role: "system", content: "You are one of several.".repeat(20) };

test.each([
  ["two conversations", [[user("main")], [user("side")]]],
  ["three conversations", [[user("main")], [user("side")], [user("judge")]]],
  [
    "an agent and a sub-agent with the same system message",
    [
      [SYSTEM, user("main")],
      [SYSTEM, user("sub")],
    ],
  ],
])("%s that alternate for 200 rounds store as much in each round, and are read as they were", (_, beginnings) => {
  const { rollout, prompts } = alternate(beginnings, 200);
  const { turns } = rollout;
  const round = beginnings.length;
  expect(new Set(bytesOf(turns.slice(2 * round))).size).toBe(1);
  expect(turns.map(({ index, prompt }) => promptOf(turns, index, prompt))).toEqual(prompts);
  expect(unpackTokens(turns.slice(0, 100)).map((one) => one?.prompt_ids)).toEqual(prompts.slice(0, 100).map(idsOf));
  expect(turns.filter(({ tokens }) => tokens?.forked).length).toBe(round - 1);
});

test("the samples of conversations that alternate are those of ids that are stored against the turn before", () => {
  const { rollout, prompts } = alternate([[SYSTEM, user("main")], [SYSTEM, user("sub")], [user("judge")]], 20);
  const sampled = prompts.map((prompt, at): Sampled => {
    const answers = rollout.turns.slice(at, at + 1).map(({ completion }) => completion);
    return { prompt: idsOf(prompt), answer: idsOf(answers), version: null };
  });
  const made = samplesOf(trajectoryOf(rollout), DISPATCHED);
  const before = samplesOf(asRollout(stored(sampled)), DISPATCHED);
  expect(made.samples).toEqual(before.samples);
  expect(made.transitions).toEqual(before.transitions);
  expect(made.samples).toHaveLength(3);
});

test("a conversation that is compacted is stored from the messages on that are new", () => {
  const summary = [SYSTEM, user("in short: 1, 2"), user("question 3")];
  const { rollout } = alternate([[SYSTEM, user("main")], [user("side")]], 3);
  const compacted = call(rollout, summary, "three");
  expect(compacted.turns.at(-1)?.prompt).toEqual({ after: 4, keep: 1, append: summary.slice(1) });
  const on = call(compacted, [...summary, { role: "assistant", content: "three" }, user("question 4")], "four");
  expect(on.turns.at(-1)?.prompt).toEqual({ keep: 4, append: [user("question 4")] });
});

test("a fork after a turn of a side conversation continues that conversation, with its token ids", () => {
  const { rollout, prompts } = alternate([[user("main")], [user("side")]], 4);
  const ended = advance(rollout, { type: "stopped", condition: "agent_completed", state: {} });
  const trajectory = trajectoryOf(
    advance(ended, { type: "closed", state: {}, error: null, cleanup_errors: [], at: 9 }),
  );
  const forked = forkedRollout("ro_2", JSON.parse(JSON.stringify(forkPoint(trajectory, 5))), 10);
  expect(forked.intent).toMatchObject({ after: 4 });
  expect(outstandingPrompt(forked)).toEqual(prompts[6]);
  expect(forked.last_ids).toEqual(idsOf(historyOf(rollout.turns.slice(0, 6))));
  const last = rollout.turns[6]?.completion;
  const response = {
    ...{ id: null, model: null, finish_reason: "stop", usage: null, policy_version: null, latency_ms: 1 },
    message: last,
    prompt_ids: idsOf(prompts[6] ?? []),
    completion_ids: [1],
    completion_logprobs: null,
  } as ModelResponse;
  const answered = advance(forked, { type: "answered", response, at: 11 });
  expect(answered.turns[6]?.tokens).toMatchObject({ forked: false });
  expect(answered.turns[6]?.prompt).toEqual(rollout.turns[6]?.prompt);
});

test("a turn of an environment's own loop is stored without the turn that it continues", () => {
  const replied = { type: "replied", prompt: [user("q")], state: {}, final_env_response: null } as const;
  expect(advance(start, replied).intent).toEqual({
    ...{ keep: 0, append: [user("q")] },
    ...{ calls: 0, failures: 0, not_before: 0 },
  });
});
