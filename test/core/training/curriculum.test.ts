import { expect, test } from "vitest";
import { Curriculum } from "../../../src/contract/training-request.ts";
import { type CurriculumState, TaskPicker } from "../../../src/core/training/curriculum.ts";

const difficulty = Curriculum.parse({ name: "difficulty" });
const upTo = (count: number) => Array.from({ length: count }, (_, at) => at);

test("the cycle takes every task in turn, and never ends for a generated dataset", () => {
  const finite = new TaskPicker({ curriculum: { name: "cycle" }, rows: 3, seed: 1 });
  expect(upTo(7).map((group) => finite.example(group))).toEqual([0, 1, 2, 0, 1, 2, 0]);
  finite.note(0, 1);
  expect(finite.toJSON()).toEqual({ hard: [], normal: [], easy: [] });
  const endless = new TaskPicker({ curriculum: { name: "cycle" }, rows: null, seed: 1 });
  expect(endless.example(1_000_000)).toBe(1_000_000);
});

test("tasks go to the pool of their latest mean reward; a boundary belongs to the lower pool", () => {
  const picker = new TaskPicker({ curriculum: difficulty, rows: 100, seed: 1 });
  const rewards = [0, 0.25, 0.26, 0.75, 0.76, 1];
  for (const [example, mean] of rewards.entries()) picker.note(example, mean);
  expect(picker.toJSON()).toEqual({ hard: [0, 1], normal: [2, 3], easy: [4, 5] });
  picker.note(0, 0.5);
  picker.note(0, 0.6);
  picker.note(5, 0.1);
  expect(picker.toJSON()).toEqual({ hard: [1, 5], normal: [2, 3, 0], easy: [4] });
});

test("however often tasks move between pools, each is only in the pool of its latest mean reward", () => {
  const picker = new TaskPicker({ curriculum: difficulty, rows: 100, seed: 1 });
  const latest = new Map<number, number>();
  for (const step of upTo(200)) {
    const [example, mean] = [(step * step) % 11, ((step * 7) % 5) / 4];
    picker.note(example, mean);
    latest.set(example, mean);
    const { hard, normal, easy } = picker.toJSON();
    const within = (from: number, to: number) =>
      [...latest].filter(([, reward]) => reward > from && reward <= to).map(([seen]) => seen);
    expect([hard, normal, easy].map((pool) => pool.toSorted())).toEqual([
      within(-1, 0.25).toSorted(),
      within(0.25, 0.75).toSorted(),
      within(0.75, 1).toSorted(),
    ]);
  }
});

test("while nothing has been seen, every group takes a different task", () => {
  const picker = new TaskPicker({ curriculum: difficulty, rows: 50, seed: 1 });
  expect(upTo(50).map((group) => picker.example(group))).toEqual(upTo(50));
});

const SEEN: CurriculumState = {
  hard: upTo(100),
  normal: upTo(100).map((at) => 100 + at),
  easy: [],
};

test("draws follow the weights of the pools, and are uniform within a pool", () => {
  const picker = new TaskPicker({ curriculum: difficulty, rows: 200, seed: 7 }, SEEN);
  const drawn = upTo(2400).map((group) => picker.example(group));
  const hard = drawn.filter((example) => example < 100).length;
  // .2 : 1 with equally many tasks; four standard deviations.
  expect(Math.abs(hard - 400)).toBeLessThan(4 * Math.sqrt((2400 * 5) / 36));
  expect(new Set(drawn.filter((example) => example >= 100)).size).toBe(100);
});

test("unseen tasks are among the draws, also of an endless dataset", () => {
  const finite = new TaskPicker({ curriculum: difficulty, rows: 300, seed: 7 }, SEEN);
  const drawn = upTo(200).map((group) => finite.example(group));
  expect(drawn.some((example) => example >= 200)).toBe(true);
  expect(Math.max(...drawn)).toBeLessThan(300);
  const endless = new TaskPicker({ curriculum: difficulty, rows: null, seed: 7 }, SEEN);
  const groups = upTo(200).map((at) => 1000 + at);
  const fresh = groups.filter((group) => endless.example(group) === group);
  // 200 seen with weight .2 and 1, 200 unseen with weight 1.
  expect(fresh.length).toBeGreaterThan(90);
  expect(fresh.length).toBeLessThan(160);
});

test("a pool with weight 0 is never drawn from", () => {
  const only = Curriculum.parse({
    name: "difficulty",
    hard: { up_to: 0.25, weight: 0 },
    unseen: { weight: 0 },
  });
  const picker = new TaskPicker({ curriculum: only, rows: 300, seed: 3 }, SEEN);
  const drawn = upTo(100).map((group) => picker.example(group));
  expect(drawn.every((example) => example >= 100 && example < 200)).toBe(true);
});

test("a picker rebuilt from its state, or from the finished groups, continues like the original", () => {
  const choice = { curriculum: difficulty, rows: 40, seed: 11 };
  const picker = new TaskPicker(choice);
  const finished = upTo(60).map((group): [number, number] => [picker.example(group), (group % 5) / 4]);
  for (const [example, mean] of finished) picker.note(example, mean);
  const stored = new TaskPicker(choice, JSON.parse(JSON.stringify(picker)) as CurriculumState);
  const replayed = new TaskPicker(choice);
  for (const [example, mean] of finished) replayed.note(example, mean);
  const next = upTo(50).map((at) => 60 + at);
  const draws = next.map((group) => picker.example(group));
  expect(next.map((group) => stored.example(group))).toEqual(draws);
  expect(next.map((group) => replayed.example(group))).toEqual(draws);
  // Choosing an example changes nothing.
  expect(next.map((group) => picker.example(group))).toEqual(draws);
});
