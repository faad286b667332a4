import { expect, test } from "vitest";
import { histogram, RewardTally } from "../../src/cli/terminal/results.ts";

function tallied(rewards: readonly (number | null)[], most?: number): RewardTally {
  const tally = new RewardTally(most);
  for (const reward of rewards) tally.add(reward);
  return tally;
}

test("few values get a line each, in proportion; rollouts without a reward are left out", () => {
  const rewards = [1, 0, 1, null, 1, 0.5, 1];
  expect(
    histogram(tallied(rewards), { scored: 6, of: " of calculator", width: 26 }),
  ).toBe(`Rewards of 6 scored rollouts of calculator
  0.000 ████            1
  0.500 ████            1
  1.000 ███████████████ 4`);
});

test("many values get a line for each tenth of their range, the largest in the last", () => {
  const text = histogram(tallied(Array.from({ length: 101 }, (_, at) => at / 100)), {
    scored: 101,
    of: "",
    width: 40,
  });
  const lines = text.split("\n").slice(1);
  expect(lines).toHaveLength(10);
  expect(lines[0]).toMatch(/^ {2}0\.000 to 0\.100 █+ +10$/);
  expect(lines[9]).toMatch(/^ {2}0\.900 to 1\.000 █+ 11$/);
  const counts = lines.map((line) => Number(line.split(" ").at(-1)));
  expect(counts.reduce((total, count) => total + count)).toBe(101);
});

test("a histogram of only some of the rewards says so", () => {
  expect(histogram(tallied([0.1, 0.2, 0.3, 0.1], 2), { scored: 4, of: "", width: 80 })).toContain(
    "Rewards of 3 of 4 scored",
  );
});

test("no rewards make no histogram", () => {
  expect(histogram(tallied([null]), { scored: 0, of: "", width: 80 })).toBe("");
});
