import { expect, test } from "vitest";
import type { JsonObject } from "../../../src/contract/json.ts";
import type { Messages } from "../../../src/contract/messages.ts";
import type { Trajectory } from "../../../src/contract/trajectory.ts";
import { forkableTurns, forkedRollout, forkPoint } from "../../../src/core/rollout/fork.ts";
import {
  advance,
  type Event,
  newRollout,
  nextEffect,
  outstandingPrompt,
  type Rollout,
  trajectoryOf,
} from "../../../src/core/rollout/rollout.ts";

const prompt: Messages = [{ role: "user", content: "q" }];
const TURNS = 10;

/** The answer to turn `turn`: its number, with usage and ids of its own. */
function answer(turn: number): Event {
  return {
    type: "answered",
    at: 200 + turn,
    response: {
      id: null,
      model: "m",
      message: { role: "assistant", content: `a${turn}` },
      finish_reason: "stop",
      usage: { prompt_tokens: turn, completion_tokens: 1, total_tokens: turn + 1 },
      prompt_ids: Array.from({ length: 2 * turn + 1 }, (_, id) => id),
      completion_ids: [2 * turn + 1],
      completion_logprobs: null,
      policy_version: null,
      latency_ms: 1,
    },
  };
}

/** The environment's reply counts the turns, sometimes removes a name, and never rewrites the history. */
function stateAfter(turn: number): JsonObject {
  return turn % 3 === 2 ? { count: turn + 1 } : { count: turn + 1, last: `a${turn}` };
}

function next(rollout: Rollout): Rollout {
  const turn = rollout.turns.length;
  switch (nextEffect(rollout).kind) {
    case "setup":
      return advance(rollout, { type: "set_up", state: { count: 0 } });
    case "reply": {
      const state = turn === 0 ? rollout.state : stateAfter(turn - 1);
      if (turn === TURNS) return advance(rollout, { type: "stopped", condition: "full", state });
      const said: Messages = [{ role: "user", content: `go on ${turn}` }];
      const history: Messages = turn === 0 ? prompt : [...historyOf(rollout), ...said];
      return advance(rollout, {
        type: "replied",
        prompt: history,
        state,
        final_env_response: null,
      });
    }
    case "sample":
      return advance(advance(rollout, { type: "sent" }), answer(turn));
    default: {
      const { state } = rollout;
      return advance(rollout, { type: "closed", state, error: null, cleanup_errors: [], at: 999 });
    }
  }
}

function historyOf({ turns }: Rollout): Messages {
  return turns.reduce<Messages>(
    (history, { prompt: { keep, append }, completion }) => [...history.slice(0, keep), ...append, completion],
    [],
  );
}

function finish(rollout: Rollout): Trajectory {
  let at = rollout;
  while (at.phase !== "done") at = next(at);
  return trajectoryOf(at);
}

const task = { id: "ro_1", task_key: "k", example_id: 3, task: { question: "q" }, prompt };
const whole = finish(newRollout({ ...task, answer: "4", info: {} }, 100));

test.each(Array.from({ length: TURNS - 1 }, (_, turn) => turn))(
  "a rollout forked after turn %i and given the same answers ends like the original",
  (turn) => {
    const stored = JSON.parse(JSON.stringify(forkPoint(whole, turn)));
    const forked = forkedRollout("ro_2", stored, 500);
    expect(nextEffect(forked)).toEqual({ kind: "sample", turn: turn + 1, not_before: 0 });
    expect(forked.state).toEqual(stateAfter(turn));
    expect(outstandingPrompt(forked).at(-1)?.content).toBe(`go on ${turn + 1}`);
    const ended = finish(forked);
    const { usage, calls } = ended;
    const own = Array.from({ length: TURNS - turn - 1 }, (_, at) => turn + 1 + at);
    expect(usage.prompt_tokens).toBe(own.reduce((sum, tokens) => sum + tokens, 0));
    expect(calls).toBe(own.length);
    const here = { rollout_id: "ro_2", started_at: 500, usage, calls };
    const forked_from = { rollout_id: "ro_1", turn };
    expect(ended).toEqual({ ...whole, ...here, forked_from });
  },
);

test("a fork of a fork has all the turns that are shown, and names only its direct origin", () => {
  const once = finish(forkedRollout("ro_2", forkPoint(whole, 2), 500));
  const again = finish(forkedRollout("ro_3", forkPoint(once, 5), 600));
  expect(again.turns).toEqual(whole.turns);
  expect(again.forked_from).toEqual({ rollout_id: "ro_2", turn: 5 });
  expect(again.calls).toBe(TURNS - 6);
});

test("a rollout cannot be forked after its last turn", () => {
  expect(forkableTurns(whole)).toBe(TURNS - 1);
  expect(forkableTurns({ turns: [] })).toBe(0);
  const beyond = forkPoint(whole, TURNS - 1);
  expect(() => forkedRollout("ro_2", beyond, 500)).toThrow(/nothing follows turn 9/);
});
