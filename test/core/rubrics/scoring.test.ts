/** The arguments and the results of scoring functions, through the interface with which authors test rubrics. */
import { expect, test } from "vitest";
import type { StoredTurn } from "../../../src/contract/trajectory.ts";
import { Parser } from "../../../src/core/parsers/parser.ts";
import { Rubric, RubricGroup } from "../../../src/core/rubrics/rubric.ts";
import { scoreScoringGroup } from "../../../src/core/rubrics/score.ts";
import { type StateToScore, scoreGroup, scoreState } from "../../../src/core/rubrics/score-states.ts";
import { finishedTrajectory } from "../../fixtures/finished-trajectory.ts";

interface Extra {
  readonly [name: string]: unknown;
}

function state(more: Partial<StateToScore> = {}): StateToScore {
  return { prompt: [{ role: "user", content: "q" }], completion: [], answer: "a", ...more };
}

/** A rubric of one function that records its arguments. */
function looking(options: ConstructorParameters<typeof Rubric>[0] = {}): {
  rubric: Rubric;
  seen: Extra[];
} {
  const seen: Extra[] = [];
  const rubric = new Rubric({
    ...options,
    metrics: {
      look: (args) => {
        seen.push({ ...args });
        return 0;
      },
    },
  });
  return { rubric, seen };
}

test("A2: every injectable name is a property of the argument: columns, fields, parser, task", async () => {
  const { rubric, seen } = looking();
  const given = state({ difficulty: "hard" });
  await scoreState(rubric, given);
  expect(seen[0]).toMatchObject({
    ...{ prompt: given.prompt, completion: [], answer: "a", info: {}, task: null },
    difficulty: "hard",
  });
  expect(seen[0]?.["state"]).toBe(given);
  expect(seen[0]?.["parser"]).toBeInstanceOf(Parser);
});

test("a class object has precedence over a column and over a field of its name", async () => {
  const { rubric, seen } = looking({ objects: { answer: "overridden", difficulty: "easy" } });
  rubric.addClassObject("lexicon", ["word"]);
  await scoreState(rubric, state({ difficulty: "hard" }));
  expect(seen[0]).toMatchObject({ answer: "overridden", difficulty: "easy", lexicon: ["word"] });
});

test("score objects are made for each call, see what functions wrote, and have precedence over everything", async () => {
  const { rubric, seen } = looking({
    objects: { count: -1 },
    provide: ({ state: { completion } }) => ({ count: completion.length, task: "provided" }),
  });
  rubric.addScoreProvider(({ state: shared }) => ({ written: "mark" in shared }));
  const writing = new Rubric({
    metrics: { write: (args) => Object.keys(Object.assign(args.state, { mark: 1 })).length },
  });
  const second = looking();
  await scoreState(new RubricGroup([rubric, writing]), state({ task: "given" }));
  expect(seen[0]).toMatchObject({ count: 0, task: "provided", written: false });
  const group = new RubricGroup([writing, second.rubric]);
  group.addScoreProvider(({ state: shared }) => ({ written: "mark" in shared }));
  await scoreState(group, state());
  expect(second.seen[0]).toMatchObject({ written: true, task: null });
});

test("if a provider throws, the functions of its rubric have no scores, with the reason", async () => {
  const failing = new Rubric({
    rewards: { f: () => 1 },
    provide: () => Promise.reject(new Error("no lexicon")),
  });
  const scored = await scoreState(new RubricGroup([failing, new Rubric({ metrics: { g: () => 2 } })]), state());
  expect(scored).toMatchObject({ reward: null, metrics: { f: null, g: 2 } });
  expect(scored.scoring_errors).toMatchObject([{ function: "f", error: "Error: no lexicon" }]);
});

test("group functions and group metrics get every member, and the class objects", async () => {
  const objects: unknown[] = [];
  const rubric = new Rubric({
    objects: { bonus: 2 },
    groupRewards: {
      rank: {
        weight: 0.5,
        fn: (group, shared) => {
          objects.push(shared.bonus);
          return group.map((_, at) => at);
        },
      },
    },
    groupMetrics: { size: (group) => group.map(() => group.length) },
  });
  const scored = await scoreGroup(rubric, [state(), state(), state()]);
  expect(scored.map(({ reward, metrics }) => [reward, metrics])).toEqual([
    [0, { rank: 0, size: 3 }],
    [0.5, { rank: 1, size: 3 }],
    [1, { rank: 2, size: 3 }],
  ]);
  expect(objects).toEqual([2]);
  expect(rubric.functions.map(({ weight }) => weight)).toEqual([0.5, 0]);
});

test.each([1, 3])("D1: %i scores for a group of two leave both members without one", async (count) => {
  const rubric = new Rubric({ groupRewards: { rank: () => Array<number>(count).fill(1) } });
  const error = `NoScoreError: returned ${count} scores for a group of 2`;
  const unscored = { reward: null, scoring_errors: [{ function: "rank", error }] };
  expect(await scoreGroup(rubric, [state(), state()])).toMatchObject([unscored, unscored]);
});

test("a single rollout is not scored by a rubric that needs its group", async () => {
  const rubric = Rubric.fromLists({
    funcs: [{ name: "rank", group: true, fn: (group) => group.map(() => 1) }],
  });
  await expect(scoreState(rubric, state())).rejects.toThrow(RangeError);
  expect(await scoreGroup(rubric, [state()])).toMatchObject([{ reward: 1, advantage: 0 }]);
});

test("D6: the advantage is over the mean of the existing rewards, and steps without numbers get the rollout's", async () => {
  const rubric = new RubricGroup([
    new Rubric({ rewards: { right: ({ answer }) => (answer === "" ? null : Number(answer)) } }),
    new Rubric({ rewards: { half: () => 0.5 } }),
  ]);
  const steps = [{ reward: 0.9, advantage: null }, { reward: null, advantage: 7 }, {}];
  const scored = await scoreGroup(rubric, [
    state({ answer: "1", trajectory: steps }),
    state({ answer: "0" }),
    state({ answer: "" }),
  ]);
  expect(scored.map(({ reward, advantage }) => [reward, advantage])).toEqual([
    [1.5, 0.5],
    [0.5, -0.5],
    [null, null],
  ]);
  expect(scored[0]?.steps).toEqual([
    { reward: 0.9, advantage: 0.5 },
    { reward: 1.5, advantage: 7 },
    { reward: 1.5, advantage: 0.5 },
  ]);
});

test("R-rubric-3: an empty group has no scores, and group functions are not called", async () => {
  const never = new Rubric({
    groupRewards: {
      never: () => {
        throw new Error("called");
      },
    },
  });
  expect(await scoreGroup(never, [])).toEqual([]);
});

test("R-rubric-4: without scoring, a rollout that ended well has reward 0 and no metrics", async () => {
  const rubric = new RubricGroup([new Rubric({ rewards: { f: () => 1 } })]);
  const [record] = await scoreScoringGroup({ rubric, scoreRollouts: false }, [finishedTrajectory()]);
  expect(record).toMatchObject({ reward: 0, scores: [], scoring_errors: [], unscored: null });
});

test("a group inside a group is flattened; additions go to the first rubric", async () => {
  const first = new Rubric<unknown, unknown, { lexicon: string }>();
  const second = new Rubric({ rewards: { s: () => 1 } });
  const group = new RubricGroup([new RubricGroup([first, second]), new Rubric()]);
  group.addRewardFunc("added", () => 2, 3);
  first.addMetric("noted", ({ lexicon }) => (lexicon === "words" ? 1 : null));
  group.addMetric("last", () => 0);
  group.addClassObject("lexicon", "words");
  expect(group.rubrics).toHaveLength(3);
  expect(first.functions.map(({ name }) => name)).toEqual(["added", "noted", "last"]);
  expect(await scoreState(group, state())).toMatchObject({
    reward: 7,
    metrics: { added: 2, noted: 1, last: 0, s: 1 },
  });
});

test("cleanup runs by priority, then name, on the scored state, and an error in it removes no score", async () => {
  const ran: string[] = [];
  const rubrics = new RubricGroup([
    new Rubric<unknown, { mark?: number }>({
      rewards: { f: ({ state: shared }) => Object.keys(Object.assign(shared, { mark: 3 })).length },
      cleanup: {
        second: () => void ran.push("second"),
        fails: {
          priority: 5,
          run: () => {
            ran.push("fails");
            throw new Error("nobody home");
          },
        },
        first: { priority: 9, run: ({ mark }) => void ran.push(`first ${mark}`) },
      },
    }),
    new Rubric({ cleanup: { before_second: () => void ran.push("before_second") } }),
  ]);
  const [record, failed] = await scoreScoringGroup({ rubric: rubrics }, [
    finishedTrajectory(),
    finishedTrajectory({ cancelled: "user" }),
  ]);
  expect(ran).toEqual(["first 3", "fails", "before_second", "second"]);
  expect(record?.reward).not.toBeNull();
  expect(record?.scoring_errors).toEqual([
    { function: "cleanup.fails", error: "Error: nobody home", retryable: false },
  ]);
  expect(failed?.scoring_errors).toEqual([]);
});

test("a cleanup that does not finish in time is recorded as an error, and the scores stay", async () => {
  const rubric = new RubricGroup([
    new Rubric({
      rewards: { f: () => 1 },
      cleanup: { hangs: () => Promise.withResolvers<void>().promise },
    }),
  ]);
  const [record] = await scoreScoringGroup({ rubric }, [finishedTrajectory()], {
    limit: (what, work) => (what === "scoring" ? work : Promise.reject(new Error("too late"))),
  });
  expect(record).toMatchObject({
    reward: 1,
    scoring_errors: [{ function: "cleanup.rubric", error: "Error: too late" }],
  });
});

test("values that functions write on a turn are kept with its scores; otherwise nothing is stored", async () => {
  const turn: StoredTurn = {
    ...{ index: 0, prompt: { keep: 0, append: [] }, finish_reason: "stop", usage: null },
    completion: { role: "assistant", content: "hi" },
    ...{ tokens: null, is_truncated: false, calls: 1, latency_ms: 1, response_id: null },
    ...{ model: null, policy_version: null, answered_at: 0, state_after: { set: {} } },
  };
  const turns = [turn, { ...turn, index: 1 }];
  const rubric = new RubricGroup([
    new Rubric({
      rewards: {
        f: ({ state: { trajectory } }) => {
          const [first, second] = trajectory;
          if (first) first.reward = 0.25;
          if (second) second.advantage = Number.NaN;
          return 1;
        },
      },
    }),
  ]);
  const [record] = await scoreScoringGroup({ rubric }, [finishedTrajectory({ turns })]);
  expect(record?.steps).toEqual([
    { reward: 0.25, advantage: null },
    { reward: null, advantage: null },
  ]);
  const silent = new RubricGroup([new Rubric({ rewards: { f: () => 1 } })]);
  expect((await scoreScoringGroup({ rubric: silent }, [finishedTrajectory({ turns })]))[0]).not.toHaveProperty("steps");
});

test("the needs of a rubric are those declared by its environment", async () => {
  const rubric = new RubricGroup([new Rubric({ rewards: { f: ({ can }) => can.secret("KEY").length } })]);
  const capabilities = { now: () => 0, secret: () => "12345" };
  const score = (needs: readonly "secret:KEY"[]) =>
    scoreScoringGroup({ rubric, needs }, [finishedTrajectory()], { capabilities });
  expect((await score(["secret:KEY"]))[0]?.reward).toBe(5);
  expect((await score([]))[0]?.scoring_errors).toMatchObject([
    { error: 'EnvError: secret:KEY is used but not declared: add "secret:KEY" to needs' },
  ]);
});

test("rows that no environment of a group plays have no score, and failed rollouts stay failed", async () => {
  const rubric = new RubricGroup([new Rubric({ rewards: { f: () => 1 } })]);
  const route = () => {
    throw new RangeError("no environment plays this row");
  };
  const cancelled = finishedTrajectory({ cancelled: "user" });
  const records = await scoreScoringGroup({ rubric, route }, [finishedTrajectory(), cancelled]);
  expect(records).toMatchObject([
    { reward: null, unscored: "scorer", scoring_errors: [{ function: "rubric" }] },
    { reward: null, unscored: null, scoring_errors: [] },
  ]);
});
