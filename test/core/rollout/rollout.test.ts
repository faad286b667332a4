import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Messages } from "../../../src/contract/messages.ts";
import type { ModelResponse } from "../../../src/contract/trajectory.ts";
import {
  advance,
  callsOf,
  completionOf,
  type Event,
  newRollout,
  nextEffect,
  outstandingPrompt,
  type Rollout,
  trajectoryOf,
} from "../../../src/core/rollout/rollout.ts";

const prompt: Messages = [{ role: "user", content: "q" }];
const start = newRollout({ id: "ro", task_key: "k", example_id: 0, task: {}, prompt, answer: "", info: {} }, 100);
const error = {
  error: "EnvError",
  message: "m",
  error_chain_str: "EnvError",
  error_chain_repr: "EnvError",
  retryable: false,
};

function answered(content: string, change: Partial<ModelResponse> = {}): Event {
  const response: ModelResponse = {
    id: null,
    model: null,
    message: { role: "assistant", content },
    finish_reason: "stop",
    usage: null,
    prompt_ids: null,
    completion_ids: null,
    completion_logprobs: null,
    policy_version: null,
    latency_ms: 1,
    ...change,
  };
  return { type: "answered", response, at: 200 };
}

function replied(messages: Messages, state = {}, final: Messages | null = null): Event {
  return { type: "replied", prompt: messages, state, final_env_response: final };
}

const setUp: Event = { type: "set_up", state: { n: 0 } };
const sent: Event = { type: "sent" };
const closed: Event = { type: "closed", state: { n: 9 }, error: null, cleanup_errors: [], at: 300 };
const failed: Event = { type: "failed", failure: "provider", error };

function after(events: readonly Event[], from: Rollout = start): Rollout {
  return events.reduce(advance, from);
}

const sampling = after([setUp, replied(prompt, { n: 0 }), sent]);

test("a rollout of two turns goes setup, reply, sample, reply, sample, reply, close, done", () => {
  const second = [...prompt, { role: "assistant", content: "a" }, { role: "user", content: "more" }];
  const events: Event[] = [
    setUp,
    replied(prompt, { n: 0 }),
    answered("a"),
    replied(second as Messages, { n: 1 }),
    answered("b"),
    { type: "stopped", condition: "max_turns_reached", state: { n: 2 } },
    closed,
  ];
  const kinds = events.map((_, count) => nextEffect(after(events.slice(0, count))).kind);
  expect(kinds).toEqual(["setup", "reply", "sample", "reply", "sample", "reply", "close"]);
  const done = after(events);
  expect(nextEffect(done)).toEqual({ kind: "done" });
  expect(completionOf(done).map((message) => message.content)).toEqual(["a", "more", "b"]);
  expect(done.turns.map((turn) => turn.state_after)).toEqual([{ n: 1 }, { n: 9 }]);
  expect(trajectoryOf(done)).toMatchObject({
    initial_state: { n: 0 },
    final_state: { n: 9 },
    stop_condition: "max_turns_reached",
    started_at: 100,
    ended_at: 300,
  });
});

test("calls count every send of a turn, so they show the cost of retries and restarts", () => {
  const resent = after([{ type: "call_failed", not_before: 500 }, sent, sent], sampling);
  expect(nextEffect(resent)).toEqual({ kind: "sample", turn: 0, not_before: 500 });
  expect(resent.intent).toMatchObject({ calls: 3, failures: 1 });
  const turned = advance(resent, answered("a"));
  expect(turned.turns[0]?.calls).toBe(3);
  expect(callsOf(turned)).toBe(3);
});

test("a failed call is listed with its turn and its number, and a free one costs no retry", () => {
  const as = { at: 7, failure: "provider", error: "ModelError", message: "503" } as const;
  const failed = after(
    [sent, { type: "call_failed", not_before: 9, as }, sent],
    after([{ type: "call_failed", not_before: 5, as, free: true }], sampling),
  );
  expect(failed.intent).toMatchObject({ failures: 1, not_before: 9 });
  expect(failed.failed_calls.map(({ turn, call }) => [turn, call])).toEqual([
    [0, 1],
    [0, 2],
  ]);
  expect(trajectoryOf(failed).failed_calls?.[0]).toEqual({ turn: 0, call: 1, ...as });
  const early = advance(start, { type: "call_failed", not_before: 5, as });
  expect(early).toBe(start);
});

test("an answer that comes twice or too late changes nothing", () => {
  const once = advance(sampling, answered("a"));
  expect(advance(once, answered("again"))).toBe(once);
  expect(advance(start, answered("early"))).toBe(start);
  expect(advance(once, { type: "sent" })).toBe(once);
});

test("the outstanding prompt is the whole history, also when a hook rewrote it", () => {
  const turned = advance(sampling, answered("a"));
  const rewritten: Messages = [...prompt, { role: "user", content: "in short" }];
  const next = advance(turned, replied(rewritten));
  expect(next.intent).toMatchObject({ keep: 1 });
  expect(outstandingPrompt(next)).toEqual(rewritten);
  expect(outstandingPrompt(start)).toEqual(prompt);
});

test("after a final reply there is no call: the stop conditions are checked again", () => {
  const final: Messages = [{ role: "user", content: "bye" }];
  const given = after([answered("a"), replied([], { n: 1 }, final)], sampling);
  expect(nextEffect(given)).toEqual({ kind: "reply" });
  expect(completionOf(given).map((message) => message.content)).toEqual(["a", "bye"]);
});

test("a truncated answer does not end the rollout, but marks it when it stops", () => {
  const cut = advance(sampling, answered("a", { finish_reason: "length" }));
  expect([cut.turns[0]?.is_truncated, cut.is_truncated]).toEqual([true, false]);
  const stopped = advance(cut, { type: "stopped", condition: "done", state: {} });
  expect(stopped.is_truncated).toBe(true);
});

test("a turn whose ids were cut counts as truncated", () => {
  const cut = advance(sampling, answered("a", { tokens_cut: true }));
  expect(cut.turns[0]?.is_truncated).toBe(true);
});

test("a time limit stops the rollout as it is: without an error, and truncation is not determined again", () => {
  const cut = advance(sampling, answered("a", { finish_reason: "length" }));
  expect(advance(cut, { type: "timed_out" })).toMatchObject({
    phase: "close",
    stop_condition: "timeout_reached",
    error: null,
    is_truncated: false,
  });
});

test("a prompt that is too long is a truncation and not an error", () => {
  expect(advance(sampling, { type: "prompt_too_long" })).toMatchObject({
    phase: "close",
    stop_condition: "prompt_too_long",
    is_truncated: true,
    error: null,
  });
});

test("a failure keeps its class while closing, and closing cannot replace its error", () => {
  const ended = after([failed, { ...closed, error: { ...error, message: "second" } }], sampling);
  expect(ended).toMatchObject({
    phase: "done",
    failure: "provider",
    error: { message: "m" },
    stop_condition: "has_error",
  });
});

test("an error while closing fails a rollout that had ended well", () => {
  const stopped = advance(sampling, { type: "timed_out" });
  expect(advance(stopped, { ...closed, error })).toMatchObject({
    failure: "environment",
    stop_condition: "has_error",
    error,
  });
});

test("a cancelled rollout closes and keeps its reason, and late events change nothing", () => {
  const cancelled = advance(sampling, { type: "cancelled", reason: "user" });
  expect(cancelled).toMatchObject({ phase: "close", cancelled: "user", stop_condition: null });
  for (const late of [failed, answered("a"), { type: "timed_out" } as const, sent]) {
    expect(advance(cancelled, late)).toEqual(cancelled);
  }
});

const QUARTER = LIMITS.rolloutCharacters / 4;

/** Plays turns of a model with this reply until the machine makes no more calls. */
function talking(said: string, told: string, state: (turn: number) => object): Rollout {
  let rollout = after([setUp, replied(prompt, { n: 0 })]);
  let history: Messages = [...prompt, { role: "assistant", content: said }];
  for (let turn = 0; rollout.phase === "sample" && turn < 50; turn += 1) {
    history = [...history, { role: "user", content: told }];
    rollout = after([sent, answered(said), replied(history, { ...state(turn) })], rollout);
    history = [...history, { role: "assistant", content: said }];
  }
  return rollout;
}

test("a rollout whose turns reach the size limit is truncated, with that stop condition, and keeps its turns", () => {
  const rollout = talking("a".repeat(QUARTER), "more", () => ({}));
  expect(rollout).toMatchObject({
    phase: "close",
    stop_condition: "max_size_reached",
    is_truncated: true,
    error: null,
    failure: null,
  });
  expect(rollout.turns.length).toBe(4);
  const done = after([closed], rollout);
  expect(trajectoryOf(done)).toMatchObject({ stop_condition: "max_size_reached", usage: {} });
});

test("a rollout with a smaller limit stops there", () => {
  const small = { ...sampling, most_characters: 100 };
  const stopped = after(
    [answered("a".repeat(60)), replied([...prompt, { role: "user", content: "m".repeat(60) }], {})],
    small,
  );
  expect(stopped).toMatchObject({ stop_condition: "max_size_reached", is_truncated: true });
});

test("the environment's replies and states count towards the size like the model's replies", () => {
  expect(talking("a", "m".repeat(QUARTER), () => ({})).turns.length).toBe(4);
  const grown = (turn: number) => ({ kept: `${turn}${"s".repeat(QUARTER)}` });
  expect(talking("a", "more", grown).turns.length).toBe(4);
  // An unchanged state is still stored whole every eighth turn.
  const same = "s".repeat(QUARTER);
  expect(talking("a", "more", () => ({ same })).turns.length).toBe(24);
});

test("a final reply that is too large is left out, and a rollout within the limit ends by its own condition", () => {
  const final = [{ role: "user", content: "f".repeat(LIMITS.rolloutCharacters) }] as const;
  const stopped = after([answered("a"), replied(prompt, { n: 1 }, final)], sampling);
  expect(stopped).toMatchObject({ stop_condition: "max_size_reached", final_env_response: null });
  const fits = after([answered("a"), replied(prompt, { n: 1 }, [{ role: "user", content: "f" }])], sampling);
  expect(fits).toMatchObject({ phase: "reply", is_truncated: false });
});

test("a rollout stored by a release that did not count sizes continues from zero", () => {
  const { held: _, ...uncounted } = sampling;
  expect(after([answered("a"), replied(prompt, { n: 1 })], uncounted).phase).toBe("sample");
});
