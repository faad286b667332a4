/** Each format against its golden file, which is written by hand from the trainer's source. */
import { expect, test } from "vitest";
import { markLastRows, type PlacedRow } from "../../../../src/core/training/formats/credited-row.ts";
import { formatNamed } from "../../../../src/core/training/formats/formats.ts";
import { decodeRows } from "../../../../src/core/training/sample-row.ts";
import { creditedRow, GOLDEN_ROW, goldenRow } from "./golden-row.ts";
import skyrl from "./skyrl.json" with { type: "json" };
import slime from "./slime.json" with { type: "json" };
import tinker from "./tinker.json" with { type: "json" };
import trl from "./trl.json" with { type: "json" };
import trlRollout from "./trl-rollout.json" with { type: "json" };
import verl from "./verl.json" with { type: "json" };

const PLACE = { index: 5, group: 2, member: 1 };
const GOLDENS = { trl, "trl-rollout": trlRollout, tinker, slime, verl, skyrl } as const;
const linesOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

test.each(Object.entries(GOLDENS))("the golden row as %s equals its golden file", (name, golden) => {
  const line = formatNamed(name as keyof typeof GOLDENS).line(goldenRow(PLACE));
  expect(JSON.parse(linesOf(line))).toEqual(golden);
});

test("the neutral line of the golden row, with its credit, is parsed as the same row", () => {
  const line = formatNamed("neutral").line(goldenRow(PLACE));
  expect(decodeRows(line, "jsonl")).toEqual([GOLDEN_ROW]);
});

test("the credits have precedence over the row's own figures", () => {
  const credit = { sample_id: "s_01", reward: 0.25, advantage: -2, outcome: "scored" };
  const credited = goldenRow(PLACE, credit);
  const line = (name: "trl" | "slime" | "tinker") => JSON.parse(linesOf(formatNamed(name).line(credited)));
  expect(line("trl")).toMatchObject({ advantage: -2, metrics: { reward: 0.25 } });
  expect(line("slime").reward).toBe(0.25);
  expect(line("tinker").loss_fn_inputs.advantages.data).toEqual([0, 0, -2, -2, 0, -2]);
});

test("a row's weight is in rl_weights of the neutral line, and in the advantage of every other format", () => {
  const credit = { sample_id: "s_01", reward: 1, advantage: -2, outcome: "scored", weight: 1.5 };
  const line = (name: keyof typeof GOLDENS | "neutral") =>
    JSON.parse(linesOf(formatNamed(name).line(goldenRow(PLACE, credit))));
  expect(line("neutral")).toMatchObject({ advantage: -2, rl_weights: [0, 0, 0, 1.5, 1.5, 0, 1.5] });
  for (const name of ["trl", "trl-rollout", "slime", "verl", "skyrl"] as const) {
    expect(line(name), name).toMatchObject({ advantage: -3 });
  }
  expect(line("tinker").loss_fn_inputs.advantages.data).toEqual([0, 0, -3, -3, 0, -3]);
});

test("a logprob is the shortest decimal of its float32", () => {
  const row = { ...GOLDEN_ROW, logprobs: Float32Array.of(0, 0, 0, -0.1, -1 / 3, 0, -1e-7) };
  const text = linesOf(formatNamed("trl").line(goldenRow(PLACE, undefined, row)));
  expect(text).toContain('"old_log_probs":[0,0,0,-0.1,-0.33333334,0,-1e-7]');
});

const BASELINES = ["trl-rollout", "slime", "verl", "skyrl"] as const;
const lineOf = (name: (typeof BASELINES)[number], row: ReturnType<typeof goldenRow>) => {
  return JSON.parse(linesOf(formatNamed(name).line(row)));
};

test.each(BASELINES)("a line of %s has the run's own advantage, and the rollout's id, for every branch", (name) => {
  const branch = (sample_id: string, rollout_id: string, advantage: number | null) => {
    const credit = { sample_id, reward: 1, advantage, outcome: "scored" };
    return lineOf(name, goldenRow(PLACE, credit, { ...GOLDEN_ROW, sample_id, rollout_id }));
  };
  const [first, second] = [branch("r_01.0", "r_01", -0.25), branch("r_01.1", "r_01", -0.25)];
  const [other, none] = [branch("r_02.0", "r_02", 0.75), branch("r_03.0", "r_03", null)];
  expect([first, second, other, none].map(({ advantage }) => advantage)).toEqual([-0.25, -0.25, 0.75, null]);
  expect(first.rollout_id).toBe(second.rollout_id);
  expect(new Set([first, other, none].map(({ rollout_id }) => rollout_id)).size).toBe(3);
});

test.each(["r_01", "ro_a_1_0_0", "r", "0", "ro_ü", "x".repeat(200)])(
  "slime's rollout_id of %s is a whole number",
  (id) => {
    const { rollout_id } = lineOf("slime", goldenRow(PLACE, undefined, { ...GOLDEN_ROW, rollout_id: id }));
    expect([Number.isSafeInteger(rollout_id), rollout_id >= 0]).toEqual([true, true]);
  },
);

test.each([
  [
    "spans",
    {
      weight_versions: [
        { version: 5, start: 3, end: 5 },
        { version: 3, start: 6, end: 7 },
      ],
    },
    [3, 5],
  ],
  ["one span", { weight_versions: [{ version: 4, start: 3, end: 7 }] }, [4, 4]],
  ["no spans", { weight_versions: undefined }, [3, 4]],
  ["an empty list of spans", { weight_versions: [] }, [3, 4]],
  ["no spans and one version", { weight_versions: undefined, policy_version_end: 3 }, [3, 3]],
  ["version 0", { weight_versions: undefined, policy_version_start: 0, policy_version_end: 0 }, [0, 0]],
])("verl gets the oldest and the newest version of a row with %s", (_, more, versions) => {
  const { extra_fields, metrics } = lineOf("verl", goldenRow(PLACE, undefined, { ...GOLDEN_ROW, ...more }));
  expect([extra_fields.min_global_steps, extra_fields.max_global_steps]).toEqual(versions);
  expect(metrics).toEqual({});
});

test.each([
  ["", []],
  ["a", [true]],
  ["aa", [false, true]],
  ["ab", [true, true]],
  ["aabccc", [false, true, true, false, false, true]],
  ["aaab", [false, false, true, true]],
])("of the rollouts %j the last row of each is marked, as skyrl requires", async (ids, marks) => {
  async function* rows(): AsyncGenerator<PlacedRow> {
    for (const rollout_id of ids) yield creditedRow(3, { rollout_id });
  }
  const lines: { is_last_step: boolean }[] = [];
  for await (const row of markLastRows(rows())) lines.push(lineOf("skyrl", row));
  expect(lines.map(({ is_last_step }) => is_last_step)).toEqual(marks);
});

test("a row without spans has the version with which its group was dispatched", () => {
  const { weight_versions: _, ...row } = GOLDEN_ROW;
  const line = formatNamed("slime").line(goldenRow(PLACE, undefined, row));
  expect(JSON.parse(linesOf(line)).weight_versions).toEqual(["3"]);
});
