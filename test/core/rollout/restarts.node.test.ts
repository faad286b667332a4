/**
 * A rollout driven by its own effects through crashes at any point, like in the object's driver: the intent of a call
 * and its answer are stored, everything else is done again. The replies of the model and the environment depend only on
 * the stored state, as environments promise.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { cloneJson } from "../../../src/contract/json.ts";
import { seededRandom } from "../../../src/contract/random.ts";
import { advance, type Event, newRollout, nextEffect, type Rollout } from "../../../src/core/rollout/rollout.ts";

const start = newRollout(
  {
    ...{ id: "ro", task_key: "k", example_id: 0, task: {}, answer: "", info: {} },
    prompt: [{ role: "user", content: "begin" }],
  },
  0,
);
const ERROR = {
  ...{ error: "ModelError", message: "m", error_chain_str: "m", error_chain_repr: "m" },
  retryable: true,
};
const MOST_STEPS = 500;

interface Walk {
  readonly end: Rollout;
  /** The turn of each call, in the order of sending. */
  readonly sent: readonly number[];
  readonly crashes: number;
}

/** `crashes`: whether the process dies after each step; after the end of the list it no longer dies. */
function drive(seed: number, crashes: readonly boolean[]): Walk {
  let [rollout, stored] = [start, start];
  const save = (changed: Rollout) => {
    stored = cloneJson(changed);
    return changed;
  };
  const sent: number[] = [];
  let died = 0;
  for (let step = 0; step < MOST_STEPS; step += 1) {
    const effect = nextEffect(rollout);
    if (effect.kind === "done") return { end: save(rollout), sent, crashes: died };
    if (effect.kind === "sample") {
      rollout = save(advance(rollout, { type: "sent" }));
      sent.push(effect.turn);
    }
    if (crashes[step] === true) {
      died += 1;
      rollout = stored;
      continue;
    }
    rollout = advance(rollout, eventAfter(seed, rollout));
    if (effect.kind === "sample") save(rollout);
  }
  throw new Error("the rollout does not end");
}

/** The outcome of the next effect: it depends only on the stored state, except for the number of calls. */
function eventAfter(seed: number, rollout: Rollout): Event {
  const { phase, turns, intent, final_env_response } = rollout;
  const failures = intent?.failures ?? 0;
  const random = seededRandom("walk", seed, phase, turns.length, failures, final_env_response ? 1 : 0);
  const state = { turn: turns.length, drawn: random() };
  switch (phase) {
    case "setup":
      return { type: "set_up", state };
    case "sample":
      return sampled(random(), turns.length, failures);
    case "close":
    case "done":
      return { type: "closed", state, error: null, cleanup_errors: [], at: 9 };
    case "reply":
      break;
  }
  if (final_env_response !== null || random() < 0.2) {
    return { type: "stopped", condition: "enough", state };
  }
  const prompt = [...start.prompt, ...turns.map(({ completion }) => completion)];
  const final = random() < 0.1 ? [{ role: "user" as const, content: "that was it" }] : null;
  return { type: "replied", prompt, state, final_env_response: final };
}

function sampled(draw: number, turn: number, failures: number): Event {
  if (draw < 0.03) return { type: "prompt_too_long" };
  if (draw < 0.06) return { type: "failed", failure: "provider", error: ERROR };
  if (draw < 0.3 && failures < 3) return { type: "call_failed", not_before: 0 };
  const response = {
    ...{ id: null, model: null, finish_reason: "stop" as const, usage: null },
    ...{ prompt_ids: null, completion_ids: null, completion_logprobs: null },
    ...{ policy_version: null, latency_ms: 0 },
    message: { role: "assistant" as const, content: `turn ${turn}` },
  };
  return { type: "answered", response, at: 1 };
}

/** All of a rollout except the costs of restarts. */
function content({ turns, intent: _intent, ...rest }: Rollout) {
  return { ...rest, turns: turns.map((turn) => ({ ...turn, calls: 0 })) };
}

const walks = fc.tuple(fc.nat(), fc.array(fc.boolean(), { maxLength: 60 }));

test("a rollout killed at any points, any number of times, ends like one that was never killed", () => {
  fc.assert(
    fc.property(walks, ([seed, crashes]) => {
      expect(content(drive(seed, crashes).end)).toEqual(content(drive(seed, []).end));
    }),
  );
});

test("a kill costs at most one call, and a turn is never sampled again once a later one was", () => {
  fc.assert(
    fc.property(walks, ([seed, crashes]) => {
      const [died, calm] = [drive(seed, crashes), drive(seed, [])];
      expect(died.sent.length).toBeLessThanOrEqual(calm.sent.length + died.crashes);
      expect(died.sent).toEqual(died.sent.toSorted((a, b) => a - b));
    }),
  );
});
