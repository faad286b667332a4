import { extractBoxedAnswer } from "@rollcall/math-equivalence";
import { expect, test } from "vitest";
import { InfraError } from "../../../src/contract/errors.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Trajectory } from "../../../src/contract/trajectory.ts";
import type { ScoringArgs } from "../../../src/core/environments/contract.ts";
import { Parser } from "../../../src/core/parsers/parser.ts";
import { asRubric, Rubric, type RubricLike } from "../../../src/core/rubrics/rubric.ts";
import { type ScoreRecord, scoreScoringGroup } from "../../../src/core/rubrics/score.ts";
import { finishedTrajectory } from "../../fixtures/finished-trajectory.ts";

const failure = {
  error: "EnvError",
  message: "m",
  error_chain_str: "EnvError",
  error_chain_repr: "EnvError",
  retryable: false,
};

function score(like: RubricLike<unknown, unknown>, ...members: Trajectory[]): Promise<ScoreRecord[]> {
  const scoringGroup = members.length === 0 ? [finishedTrajectory()] : members;
  return scoreScoringGroup({ rubric: asRubric(like) }, scoringGroup);
}

function group(...ids: string[]): Trajectory[] {
  return ids.map((rollout_id) => finishedTrajectory({ rollout_id }));
}

test("R-rubric-5: the reward is the sum of score times weight", async () => {
  const weighed = (...weights: number[]) => ({
    rewards: {
      f: { fn: () => 1, weight: weights[0] ?? 1 },
      g: { fn: () => weights[2] ?? 0, weight: weights[1] ?? 1 },
    },
  });
  expect((await score(weighed(1, 0.5, 0.4)))[0]?.reward).toBeCloseTo(1.2, 12);
  expect((await score(weighed(2, 3, 0.5)))[0]?.reward).toBeCloseTo(3.5, 12);
});

test("a metric is reported and is not part of the reward", async () => {
  const [record] = await score({ rewards: { f: () => true }, metrics: { m: () => 7 } });
  expect(record).toEqual({
    rollout_id: "ro_1",
    reward: 1,
    scores: [
      { name: "f", score: 1, weight: 1 },
      { name: "m", score: 7, weight: 0 },
    ],
    scoring_errors: [],
    unscored: null,
  });
});

test("R-gen-13: an empty rubric scores 0 with no metrics, alone and in a group", async () => {
  for (const record of await score({}, ...group("a", "b"))) {
    expect(record).toMatchObject({ reward: 0, scores: [], unscored: null });
  }
});

test("if a function throws, its score is null with the error, and so is the reward; others still run", async () => {
  const [record] = await score({
    rewards: {
      down: () => {
        throw new InfraError("store away");
      },
      after: () => 1,
    },
  });
  expect(record).toEqual({
    rollout_id: "ro_1",
    reward: null,
    scores: [
      { name: "down", score: null, weight: 1 },
      { name: "after", score: 1, weight: 1 },
    ],
    scoring_errors: [{ function: "down", error: "InfraError: store away", retryable: true }],
    unscored: "scorer",
  });
});

test("if a metric throws, it is null with its error, and the reward stays", async () => {
  const [record] = await score({
    rewards: { f: () => 0.5 },
    metrics: { m: () => Promise.reject(new Error("boom")) },
  });
  expect(record).toMatchObject({
    reward: 0.5,
    unscored: null,
    scoring_errors: [{ function: "m", error: "Error: boom", retryable: false }],
  });
});

test("a function that returns null gives no score, with an error", async () => {
  const [record] = await score({ rewards: { f: () => null } });
  expect(record).toMatchObject({ reward: null, unscored: "scorer" });
  expect(record?.scoring_errors).toHaveLength(1);
});

test("R-rubric-1: NaN is a scoring error of cause non_finite, never a score", async () => {
  const [record] = await score({ rewards: { f: () => Number.NaN } });
  expect(record).toMatchObject({
    reward: null,
    unscored: "non_finite",
    scores: [{ name: "f", score: null }],
  });
});

test("finite scores whose sum is not finite give no reward", async () => {
  const huge = { fn: () => Number.MAX_VALUE, weight: 1 };
  const [record] = await score({ rewards: { f: huge, g: huge } });
  expect(record).toMatchObject({
    reward: null,
    unscored: "non_finite",
    scoring_errors: [{ function: "reward" }],
  });
});

test("R-rubric-2: a later function reads what an earlier one wrote on the state", async () => {
  const own = (state: object) => state as { seen?: number };
  const [record] = await score([
    {
      rewards: {
        write: ({ state }) => {
          own(state).seen = 0.25;
          return 0;
        },
      },
    },
    { rewards: { read: ({ state }) => own(state).seen ?? null } },
  ]);
  expect(record?.reward).toBe(0.25);
});

test("each rollout is scored on its own state, and the trajectory is unchanged", async () => {
  const member = finishedTrajectory({ final_state: { list: [1] } });
  const rubric = {
    rewards: { f: ({ state }: ScoringArgs<unknown, unknown>) => grow(state) },
  };
  expect((await score(rubric, member, member)).map((record) => record.reward)).toEqual([2, 2]);
  expect(member.final_state).toEqual({ list: [1] });
});

function grow(state: object): number {
  const { list } = state as { list: number[] };
  return list.push(0);
}

test("functions see the row, the final state and the turns, and no live handles", async () => {
  const seen: ScoringArgs<unknown, unknown>[] = [];
  const rubric = {
    metrics: {
      look: (args: ScoringArgs<unknown, unknown>) => {
        seen.push(args);
        return 0;
      },
    },
  };
  const info = { k: 1 };
  await score(rubric, finishedTrajectory({ final_state: { n: 2 }, info }));
  expect(seen[0]).toMatchObject({
    prompt: [{ role: "user", content: "q" }],
    completion: [],
    answer: "a",
    info,
    task: { question: "q", answer: "a" },
    state: { n: 2, turn: 0, trajectory: [], final_env_response: null, answer: "a", info },
  });
  expect(seen[0]).not.toHaveProperty("state.live");
  expect(Object.isFrozen(seen[0]?.task)).toBe(true);
});

test("a failed or cancelled member is not scored, and group functions do not see it", async () => {
  const sizes: number[] = [];
  const rubric: RubricLike<unknown, unknown> = {
    rewards: { f: () => 1 },
    groupRewards: {
      rank: (members) => {
        sizes.push(members.length);
        return members.map((_, at) => at);
      },
    },
  };
  const [a, b, c, d] = group("a", "b", "c", "d").map((member, at) => ({
    ...member,
    error: at === 0 ? failure : null,
    cancelled: at === 2 ? ("user" as const) : null,
  }));
  if (!(a && b && c && d)) throw new Error("four members");
  const records = await score(rubric, a, b, c, d);
  expect(sizes).toEqual([2]);
  expect(records.map((record) => record.reward)).toEqual([null, 1, null, 2]);
  expect(records[0]).toEqual({
    rollout_id: "a",
    reward: null,
    scores: [],
    scoring_errors: [],
    unscored: null,
  });
});

test("R-rubric-3: with no member left, group functions are not called", async () => {
  const rubric: RubricLike<unknown, unknown> = {
    groupRewards: {
      never: () => {
        throw new Error("called");
      },
    },
  };
  const [record] = await score(rubric, finishedTrajectory({ error: failure }));
  expect(record?.scoring_errors).toEqual([]);
  expect(await scoreScoringGroup({ rubric: asRubric(rubric) }, [])).toEqual([]);
});

test.each([
  ["throws", () => Promise.reject(new Error("boom"))],
  ["returns too few scores", () => [1]],
  ["returns no list", () => 3],
  ["leaves one member without a score", () => [0.5, null]],
  ["gives one member what is no number", () => [0.5, Number.NaN]],
])("a group function that %s is void for the whole group", async (_what, fn) => {
  const rubric = new Rubric();
  Reflect.apply(rubric.addGroupRewardFunc, rubric, ["rank", fn]);
  for (const record of await score(rubric, ...group("a", "b"))) {
    expect(record).toMatchObject({ reward: null, scores: [{ name: "rank", score: null }] });
    expect(record.scoring_errors).toHaveLength(1);
  }
});

test("two functions of one name in a rubric both count, and the last one's score is reported", async () => {
  const rubric = new Rubric();
  rubric.addRewardFunc("same", () => 1);
  rubric.addRewardFunc("same", () => 0.25, 2);
  const [record] = await score(rubric);
  expect(record).toMatchObject({ reward: 1.5, scores: [{ name: "same", score: 0.25 }] });
  expect(record?.scores).toHaveLength(1);
});

test("scores of one name in different rubrics are summed", async () => {
  const [record] = await score([{ rewards: { same: () => 1 } }, { rewards: { same: { fn: () => 0.25, weight: 2 } } }]);
  expect(record).toMatchObject({ reward: 1.5, scores: [{ name: "same", score: 1.25 }] });
});

test("the sum of scores of one name is null if one is missing", async () => {
  const [record] = await score([{ metrics: { same: () => null } }, { rewards: { same: () => 1, other: () => 1 } }]);
  expect(record).toMatchObject({ reward: 2, scores: [{ name: "same", score: null }, {}] });
});

test("a rubric's own parser has precedence over the environment's", async () => {
  const reading = ({ parser, completion }: ScoringArgs<unknown, unknown>) => Number(parser.parseAnswer(completion));
  const rubric = asRubric([
    new Rubric({ metrics: { own: reading }, parser: new Parser(() => "1") }),
    new Rubric({ metrics: { shared: reading } }),
  ]);
  const completion = [{ role: "assistant", content: "\\boxed{2}" }] as const;
  const environment = { rubric, parser: new Parser(extractBoxedAnswer) };
  const [record] = await scoreScoringGroup(environment, [finishedTrajectory({ completion })]);
  expect(record?.scores.map((entry) => entry.score)).toEqual([1, 2]);
});

test("if more functions fail than are listed, the others are counted, and each error is cut", async () => {
  const rewards = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [
      `fn${String(at).padStart(2, "0")}`,
      () => {
        throw new Error("e".repeat(1_000_000));
      },
    ]),
  );
  const [record] = await score([{ rewards }]);
  const errors = record?.scoring_errors ?? [];
  expect(JSON.stringify(errors).length).toBeLessThan(LIMITS.errorListCharacters + 200);
  expect(errors.at(-1)).toMatchObject({
    function: "rubric",
    error: `ScoringError: ${40 - errors.length + 1} more functions or handlers failed`,
  });
});

test("scores or credits of turns that are too long to be stored are voided, with their names", async () => {
  const metrics = Object.fromEntries(
    Array.from({ length: 2000 }, (_, at) => [`metric_${at}_${"n".repeat(100)}`, () => 1]),
  );
  const [record] = await score([{ metrics }]);
  expect(record).toMatchObject({
    reward: null,
    scores: [],
    unscored: "scorer",
    scoring_errors: [
      {
        function: "rubric",
        error: `ScoringError: the scores are more than ${LIMITS.scoresCharacters} characters as JSON`,
      },
    ],
  });
});

test("the name of a score or a handler has a maximal length, since it is stored with every rollout", () => {
  const long = "n".repeat(LIMITS.nameCharacters + 1);
  const refusal = `has at most ${LIMITS.nameCharacters} characters`;
  expect(() => new Rubric({ rewards: { [long]: () => 1 } })).toThrow(refusal);
  expect(() => new Rubric({ cleanup: { [long]: () => undefined } })).toThrow(refusal);
  expect(() => new Rubric({ rewards: { [long.slice(1)]: () => 1 } })).not.toThrow();
});
