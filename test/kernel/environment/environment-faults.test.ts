import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { dataset, SingleTurnEnv } from "../../../src/core/entry.ts";
import { codeOf } from "../../../src/core/protocol/in-process.ts";
import { type Scoring, scoreInTime } from "../../../src/kernel/scoring/scoring-pass.ts";
import { finishedTrajectory } from "../../fixtures/finished-trajectory.ts";
import { registerFaulty } from "../faulty.ts";
import { openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  registerFaulty();
  platform = await openPlatform();
});

/** Seconds: short enough to wait for, long enough for a busy machine. */
const limits = {
  setup_timeout_s: 1,
  turn_timeout_s: 1.5,
  tool_timeout_s: 1,
  cleanup_timeout_s: 1,
};
const PATIENCE = 30_000;

/** How the rollout ends whose hook does this: [hook, way, reason, what its error says]. */
const FAULTS: readonly (readonly [hook: string, way: string, reason: string | null, RegExp])[] = [
  ["setupState", "throws", "environment", /^setupState: setupState broke$/],
  ["setupState", "hangs", "timeout", /^setupState did not finish within 1 s$/],
  ["setupState", "gives 7", "environment", /^setupState must return an object/],
  ["setupState", "gives null", "environment", /^setupState must return an object/],
  ["setupState", "gives [1]", "environment", /^setupState must return an object/],
  ["setupState", 'gives {"turn": 1}', "environment", /^state.turn is a field of the rollout/],
  ["setupState", "exits", "environment", /^setupState: process.exit was called/],
  ["postRollout", "exits", "environment", /^postRollout: process.exit was called/],
  ["stop", "exits", "environment", /^stop condition never: process.exit was called/],
  ["setupState", "aborts", "environment", /^setupState: process.abort was called/],
  ["openLive", "throws", "environment", /^openLive: openLive broke$/],
  ["openLive", "hangs", "timeout", /^openLive did not finish within 1 s$/],
  ["stop", "throws", "environment", /^stop condition never: stop broke$/],
  ["stop", "hangs", "timeout", /^the environment's reply did not finish within 1.5 s$/],
  ["envResponse", "throws", "environment", /^envResponse: envResponse broke$/],
  ["envResponse", "hangs", "timeout", /^the environment's reply did not finish within 1.5 s$/],
  ["envResponse", "gives 42", "environment", /^envResponse: neither a text nor a list/],
  ["envResponse", "gives null", "environment", /^envResponse: neither a text nor a list/],
  ["envResponse", 'gives [{"role": "king"}]', "environment", /is not a list of messages: 0.role/],
  ["envResponse", "grows", "environment", /^the state is \d+ bytes as JSON; the maximum is 262144/],
  ["tool", "hangs", "timeout", /^the tool work did not finish within 1 s$/],
  ["postRollout", "throws", "environment", /^postRollout: postRollout broke$/],
  ["postRollout", "hangs", "timeout", /^postRollout did not finish within 1 s$/],
];
/** The rollout itself ends well and is scored. */
const LATE_FAULTS: readonly (readonly [hook: string, way: string, RegExp])[] = [
  ["cleanup", "throws", /^cleanup first: cleanup broke$/],
  ["cleanup", "hangs", /^cleanup first did not finish within 1 s$/],
  ["cleanup", "exits", /^cleanup first: process.exit was called/],
  ["closeLive", "aborts", /^closeLive: process.abort was called/],
  ["closeLive", "throws", /^closeLive: closeLive broke$/],
  ["closeLive", "hangs", /^closeLive did not finish within 1 s$/],
];

const TURNS = [{ tool_calls: [{ name: "work", arguments: {} }] }, "Done."];

async function rolloutsOf(rows: readonly (readonly [hook: string, way: string])[]) {
  const dataset = rows.map(([hook, way]) => ({ question: `${hook} ${way}`, hook, way }));
  const request = { environment: "faulty", dataset, limits, min_scored: 0, model: script(TURNS) };
  const run = await platform.finish(request);
  const results = await platform.results(run.id);
  const byRow = results.sort((a, b) => a.example_id - b.example_id);
  const rollouts = await Promise.all(byRow.map(({ rollout_id }) => platform.rollout(rollout_id)));
  return { run, rollouts };
}

test(
  "R-gen-6: a hook that throws, hangs, returns nonsense or grows its state ends its own rollout with the cause, and cleanup runs",
  async () => {
    const well = ["nobody", "behaves"] as const;
    const rows = FAULTS.map(([hook, way]) => [hook, way] as const);
    const { run, rollouts } = await rolloutsOf([...rows, well]);
    expect(run).toMatchObject({ status: "completed", counts: { in_flight: 0, scored: 1 } });
    for (const [at, [hook, way, reason, message]] of FAULTS.entries()) {
      const rollout = rollouts[at];
      const named = `${hook} ${way}`;
      expect(rollout, named).toMatchObject({ outcome: "failed", reason, reward: null });
      expect(rollout?.error?.message, named).toMatch(message);
      expect(rollout?.state, named).toMatchObject({ swept: true });
    }
    expect(rollouts.at(-1)).toMatchObject({ outcome: "scored", reward: 1, cleanup_errors: [] });
  },
  PATIENCE,
);

test(
  "a cleanup handler that throws or hangs is recorded, and neither stops the next one nor loses the score",
  async () => {
    const { rollouts } = await rolloutsOf(LATE_FAULTS.map(([hook, way]) => [hook, way]));
    for (const [at, [hook, way, message]] of LATE_FAULTS.entries()) {
      const rollout = rollouts[at];
      expect(rollout, `${hook} ${way}`).toMatchObject({ outcome: "scored", error: null });
      expect(rollout?.cleanup_errors.map((error) => error.message)).toEqual([expect.stringMatching(message)]);
      expect(rollout?.state).toMatchObject({ swept: true });
    }
  },
  PATIENCE,
);

test("a hook that hangs past rollout_timeout_s ends its rollout, which is scored as it is", async () => {
  const dataset = [{ question: "?", hook: "tool", way: "hangs" }];
  const model = script(TURNS);
  const short = { rollout_timeout_s: 1 };
  const run = await platform.finish({ environment: "faulty", dataset, model, limits: short });
  expect(run).toMatchObject({ status: "completed", counts: { scored: 1 } });
  const [row] = await platform.results(run.id);
  expect(row).toMatchObject({ stop_condition: "timeout_reached", turns: 1, error: null });
});

test("cancelling does not wait for a hook that hangs", async () => {
  const dataset = [{ question: "?", hook: "tool", way: "hangs" }];
  const model = script(TURNS);
  const run = await platform.start({ environment: "faulty", dataset, model });
  await requestsOf(model, 1);
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  expect(await platform.ended(run.id)).toMatchObject({
    status: "cancelled",
    counts: { cancelled: { user: 1 } },
  });
});

function scoringWith(rewards: Record<string, () => Promise<number> | number>): Scoring {
  const rows = dataset(z.object({ question: z.string() }), []);
  const environment = codeOf(new SingleTurnEnv({ dataset: rows, rubric: { rewards } }));
  return { environment, fetch: () => Promise.reject(new Error("no network")), secrets: {} };
}

test("a scoring function that hangs leaves its scoring group without a score, with an error", async () => {
  const scoring = scoringWith({ never: () => Promise.withResolvers<number>().promise });
  const [record] = (await scoreInTime(scoring, [finishedTrajectory()], {}, 50)).records;
  expect(record).toMatchObject({
    reward: null,
    unscored: "scorer",
    scoring_errors: [{ error: "StageTimeoutError: scoring did not finish within 0.05 s" }],
  });
});

test("a scoring function that calls process.exit leaves its scoring group without a score, with an error", async () => {
  const scoring = scoringWith({ leaves: () => process.exit(1) });
  const [record] = (await scoreInTime(scoring, [finishedTrajectory()])).records;
  const error = expect.stringMatching(/process\.exit was called/);
  expect(record).toMatchObject({ reward: null, unscored: "scorer", scoring_errors: [{ error }] });
});
