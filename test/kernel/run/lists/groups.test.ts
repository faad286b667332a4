/** A run's groups and histograms: their numbers agree with those of the rollouts in them. */
import { expect, test } from "vitest";
import type { ListedRollout } from "../../../../src/kernel/messages/list-wire.ts";
import { edgesOf } from "../../../../src/kernel/service/read-histogram.ts";
import { type MadeUp, madeUpRun, rowTermsOf } from "./made-up-run.ts";

const ROLLOUTS = 120;
const membersOf = ({ look }: MadeUp, group: number) => look("group", group).found?.members ?? [];
const rewardsOf = (members: readonly ListedRollout[]) =>
  members.flatMap(({ reward }) => (reward === null ? [] : [reward]));

function groups({ look }: MadeUp, filter: string) {
  const sort = { by: "group" as const, descending: false };
  return look("groups", { terms: rowTermsOf(filter), sort, after: null, slice: 0, limit: 500 });
}

test("a group's numbers are those of its members, and superseded attempts are counted separately", () =>
  madeUpRun(ROLLOUTS, (run) => {
    run.sql.exec("update rollouts set superseded_by = 'ro_later', reward = 7 where seq = 8");
    const { rows, slices } = groups(run, "");
    expect([rows.length, slices]).toEqual([30, 1]);
    for (const { group, task_text, counts, reward, zero_variance, mean_turns } of rows) {
      expect(task_text).toBe(`What is ${group} twice?`);
      const members = membersOf(run, group).filter(({ superseded_by }) => superseded_by === null);
      const rewards = rewardsOf(members);
      const mean = rewards.reduce((sum, one) => sum + one, 0) / rewards.length;
      const squares = rewards.reduce((sum, one) => sum + (one - mean) ** 2, 0);
      expect(counts.dispatched).toBe(members.length);
      expect(counts.superseded).toBe(group === 1 ? 1 : 0);
      expect(counts.scored).toBe(rewards.length);
      if (rewards.length === 0) expect(reward).toEqual({ mean: null, min: null, max: null, sd: null });
      else expect([reward.mean, reward.max]).toEqual([expect.closeTo(mean), Math.max(...rewards)]);
      if (rewards.length < 2) expect(reward.sd).toBeNull();
      else expect(reward.sd).toBeCloseTo(Math.sqrt(squares / (rewards.length - 1)));
      expect(zero_variance).toBe(rewards.length > 1 && new Set(rewards).size === 1);
      const ended = members.filter(({ status }) => status === "done");
      const turns = ended.reduce((sum, one) => sum + (one.turns ?? 0), 0) / ended.length;
      expect(mean_turns).toEqual(ended.length === 0 ? null : expect.closeTo(turns));
    }
    const failing = groups(run, "outcome:failed").rows.map(({ group }) => group);
    expect(failing).toEqual(rows.filter(({ counts }) => counts.failed > 0).map(({ group }) => group));
    expect(run.look("group", 30)).toEqual({ found: null });
  }));

test("groups with equal rewards have no variance, whatever their rewards are as binary fractions", () =>
  madeUpRun(8, (run) => {
    run.sql.exec("update rollouts set reward = 0.1, status = 'done', outcome = 'scored' where group_index = 1");
    expect(groups(run, "group:1").rows).toMatchObject([{ zero_variance: true, reward: { sd: 0 } }]);
  }));

test("groups whose rewards differ only by rounding have no variance", () =>
  madeUpRun(8, (run) => {
    run.sql.exec("update rollouts set reward = 0.3, status = 'done', outcome = 'scored' where group_index = 1");
    run.sql.exec("update rollouts set reward = 0.1 + 0.2 where group_index = 1 and slot = 0");
    const [group] = groups(run, "group:1").rows;
    expect(group?.reward.min).toBeLessThan(group?.reward.max ?? 0);
    expect(group).toMatchObject({ zero_variance: true, reward: { sd: 0 } });
  }));

test("groups sorted by a number continue after any of them, and those without it come last", () =>
  madeUpRun(ROLLOUTS, (run) => {
    for (const descending of [false, true]) {
      const ask = { terms: [], sort: { by: "reward" as const, descending }, slice: 0 };
      const all = run.look("groups", { ...ask, after: null, limit: 500 }).rows;
      const walked = all.flatMap(({ value, group }, at) => {
        expect(run.look("groups", { ...ask, after: { value, group }, limit: 1 }).rows[0]?.group).toBe(
          all[at + 1]?.group,
        );
        return value === null ? [] : [value];
      });
      expect(walked).toEqual([...walked].sort((a, b) => (descending ? b - a : a - b)));
      const without = all.slice(walked.length);
      expect(without.length).toBeGreaterThan(0);
      expect(without.every(({ value }) => value === null)).toBe(true);
    }
  }));

test("every rollout of a histogram is in one bin, or counted by the reason why it has no value", () =>
  madeUpRun(ROLLOUTS, (run) => {
    const ask = { terms: [], of: { kind: "field", field: "reward" } as const, slice: 0 };
    const spread = run.look("spread", { ...ask, upto: null });
    const edges = edgesOf(spread, 8);
    const counts = run.look("bins", { ...ask, upto: spread.upto, edges: edges.slice(1, -1), steps: null });
    const rows = Array.from({ length: ROLLOUTS / 4 }, (_, group) => membersOf(run, group)).flat();
    const rewards = rewardsOf(rows);
    const within = edges.slice(0, -1).map((from, at) => {
      const to = at === edges.length - 2 ? Number.POSITIVE_INFINITY : (edges[at + 1] ?? 0);
      return rewards.filter((reward) => reward >= from && reward < to).length;
    });
    expect(counts.bins).toEqual(within);
    const of = (outcomes: readonly string[]) => rows.filter(({ outcome }) => outcomes.includes(outcome ?? "")).length;
    expect(counts).toMatchObject({ null: of(["unscored", "cancelled"]), failed: of(["failed"]), in_flight: 24 });
    const later = run.look("bins", { ...ask, upto: spread.upto - 10, edges: edges.slice(1, -1), steps: null });
    expect(later.in_flight).toBe(34);
  }));

test("steps have the same bins, and contain the groups that were shipped in their batches", () =>
  madeUpRun(40, (run) => {
    run.sql.exec(`insert into train_groups (group_index, example_index, dispatch_version, state, step)
      select value, value, 0, 'shipped', 1 + value / 5 from json_each('[0,1,2,3,4,5,6,7,8,9]')`);
    const ask = { terms: [], of: { kind: "field", field: "reward" } as const, upto: 1000, slice: 0 };
    const steps = { after: 0, most: 500 };
    const { bins, by_step } = run.look("bins", { ...ask, edges: [0.5], steps });
    expect(by_step.map(({ step }) => step)).toEqual([1, 2]);
    expect(by_step[0]?.bins.map((n, at) => n + (by_step[1]?.bins[at] ?? 0))).toEqual(bins);
    const named = run.look("bins", { ...ask, terms: rowTermsOf("step:2"), edges: [0.5], steps: null });
    expect(named.bins).toEqual(by_step[1]?.bins);
  }));

test("whole numbers get bins of whole width, others of equal width, one value one bin, and no value none", () => {
  expect(edgesOf({ min: 1, max: 4, whole: true }, 20)).toEqual([1, 2, 3, 4, 5]);
  expect(edgesOf({ min: 0, max: 99, whole: true }, 20)).toHaveLength(21);
  expect(edgesOf({ min: 0, max: 0.5, whole: false }, 2)).toEqual([0, 0.25, 0.5]);
  expect(edgesOf({ min: 0.3, max: 0.3, whole: false }, 20)).toEqual([0.3, 0.3]);
  expect(edgesOf({ min: null, max: null, whole: true }, 20)).toEqual([]);
});

test("groups and histograms are the same in slices of any size", () =>
  madeUpRun(ROLLOUTS, (run) => {
    const terms = rowTermsOf('-"is 7 TWICE"');
    const sort = { by: "group" as const, descending: false };
    const slices = Array.from({ length: 10 }, (_, slice) =>
      run.look("groups", { terms, sort, after: null, slice, limit: 500, rows: 12 }),
    );
    expect(slices.map((one) => one.slices)).toEqual(Array(10).fill(10));
    expect(slices.flatMap(({ rows }) => rows)).toEqual(groups(run, '-"is 7 TWICE"').rows);
    const of = { kind: "field", field: "reward" } as const;
    const ask = { terms, of, upto: ROLLOUTS, edges: [0.5], steps: null };
    const bins = Array.from({ length: 10 }, (_, slice) => run.look("bins", { ...ask, slice, rows: 12 }));
    const whole = run.look("bins", { ...ask, slice: 0 });
    expect(bins.reduce((sum, one) => sum + (one.bins[0] ?? 0), 0)).toBe(whole.bins[0]);
    expect(run.look("spread", { terms, of, upto: null, slice: 3, rows: 12 }).slices).toBe(10);
  }));
