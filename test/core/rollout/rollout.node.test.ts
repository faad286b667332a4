/** Properties that hold for every order of events: retries, restarts and late events may come in any order. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { cloneJson } from "../../../src/contract/json.ts";
import { unpackTurns } from "../../../src/contract/trajectory.ts";
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

const message = fc.record({
  role: fc.constantFrom("user" as const, "assistant" as const, "tool" as const),
  content: fc.constantFrom("a", "b", null),
});
const messages = fc.array(message, { maxLength: 4 });
const state = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.constantFrom(0, null, "x", [1]));
const ids = fc.option(fc.array(fc.nat({ max: 3 }), { maxLength: 4 }));
const error = fc.constant({
  error: "EnvError",
  message: "m",
  error_chain_str: "EnvError",
  error_chain_repr: "EnvError",
  retryable: false,
});
const response = fc.record({
  id: fc.constant(null),
  model: fc.constant(null),
  message,
  finish_reason: fc.constantFrom("stop" as const, "length" as const, null),
  usage: fc.constant(null),
  prompt_ids: ids,
  completion_ids: ids,
  completion_logprobs: fc.constant(null),
  policy_version: fc.constant(null),
  latency_ms: fc.nat({ max: 9 }),
});
const at = fc.nat({ max: 1000 });
const of = <T extends string>(type: T) => fc.constant(type);

const going: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ type: of("set_up"), state }),
  fc.record({
    type: of("replied"),
    prompt: messages,
    state,
    final_env_response: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, messages),
  }),
  fc.record({ type: of("sent") }),
  fc.record({ type: of("answered"), response, at }),
  fc.record({ type: of("call_failed"), not_before: at }),
);
const ending: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ type: of("stopped"), condition: fc.constantFrom("x", "y"), state }),
  fc.record({ type: of("prompt_too_long") }),
  fc.record({ type: of("timed_out") }),
  fc.record({
    type: of("failed"),
    failure: fc.constantFrom("provider" as const, "environment" as const),
    error,
  }),
  fc.record({ type: of("cancelled"), reason: fc.constantFrom("user" as const, "budget" as const) }),
  fc.record({
    type: of("closed"),
    state,
    error: fc.option(error),
    cleanup_errors: fc.constant([]),
    at,
  }),
);
const events = fc.array(fc.oneof({ weight: 9, arbitrary: going }, { weight: 1, arbitrary: ending }), {
  maxLength: 40,
});

const start = newRollout(
  {
    id: "ro",
    task_key: "k",
    example_id: 0,
    task: {},
    prompt: [{ role: "user", content: "a" }],
    answer: "",
    info: {},
  },
  0,
);

/** Every state of a sequence, including the first. */
function walk(sequence: readonly Event[]): Rollout[] {
  const states = [start];
  for (const event of sequence) states.push(advance(states.at(-1) ?? start, event));
  return states;
}

function holds(check: (states: Rollout[], sequence: Event[]) => void): void {
  fc.assert(fc.property(events, (sequence) => check(walk(sequence), sequence)));
}

test("no order of events throws, and every reached state can be read", () => {
  holds((states) => {
    for (const rollout of states) {
      nextEffect(rollout);
      outstandingPrompt(rollout);
      completionOf(rollout);
      trajectoryOf(rollout);
    }
  });
});

test("storing and loading after every step changes nothing", () => {
  holds((states, sequence) => {
    const restarted = sequence.reduce((rollout, event) => cloneJson(advance(rollout, cloneJson(event))), start);
    expect(restarted).toEqual(cloneJson(states.at(-1)));
  });
});

test("replaying the events gives the same state, and no state is changed in place", () => {
  holds((states, sequence) => {
    const before = JSON.stringify(states);
    expect(walk(sequence)).toEqual(states);
    expect(JSON.stringify(states)).toBe(before);
  });
});

test("done is final, and only a close leads there", () => {
  holds((states, sequence) => {
    for (const [at, event] of sequence.entries()) {
      const [before, after] = [states[at], states[at + 1]];
      if (before?.phase === "done") expect(after).toBe(before);
      else if (after?.phase === "done") expect([before?.phase, event.type]).toEqual(["close", "closed"]);
    }
  });
});

test("an answered turn never changes; only the state of the last one may still be set", () => {
  holds((states) => {
    for (const [at, after] of states.entries()) {
      const before = states[at - 1]?.turns ?? [];
      expect(after.turns.length - before.length).toBeOneOf([0, 1]);
      const stripped = (turns: Rollout["turns"]) => turns.map((turn) => ({ ...turn, state_after: null }));
      expect(stripped(after.turns.slice(0, before.length))).toEqual(stripped(before));
    }
  });
});

test("no turn is answered without a recorded call, if senders record calls", () => {
  const recorded = events.map((sequence) =>
    sequence.flatMap((event): Event[] => (event.type === "answered" ? [{ type: "sent" }, event] : [event])),
  );
  fc.assert(
    fc.property(recorded, (sequence) => {
      for (const rollout of walk(sequence)) {
        expect(callsOf(rollout)).toBeGreaterThanOrEqual(rollout.turns.length);
      }
    }),
  );
});

test("a stored trajectory has every turn with its state, and the last one is the final state", () => {
  holds((states) => {
    const done = states.at(-1) ?? start;
    const stored = trajectoryOf(done);
    expect(unpackTurns(stored.initial_state, stored.turns)).toEqual(done.turns);
    const last = done.turns.at(-1);
    if (done.phase === "done" && last !== undefined) expect(last.state_after).toEqual(done.state);
  });
});
