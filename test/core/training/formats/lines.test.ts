/** Each format against its golden file, which is written by hand from what its trainer reads. */
import { expect, test } from "vitest";
import { creditRow } from "../../../../src/core/training/formats/credited-row.ts";
import { formatNamed } from "../../../../src/core/training/formats/formats.ts";
import { decodeRows } from "../../../../src/core/training/sample-row.ts";
import { GOLDEN_ROW } from "./golden-row.ts";
import skyrl from "./skyrl.json" with { type: "json" };
import slime from "./slime.json" with { type: "json" };
import tinker from "./tinker.json" with { type: "json" };
import trl from "./trl.json" with { type: "json" };
import trlRollout from "./trl-rollout.json" with { type: "json" };
import verl from "./verl.json" with { type: "json" };

const PLACE = { index: 5, group: 2, member: 1 };
const GOLDENS = { trl, "trl-rollout": trlRollout, tinker, slime, verl, skyrl } as const;
const linesOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

test.each(Object.entries(GOLDENS))("the golden row as %s is its golden file, value by value", (name, golden) => {
  const line = formatNamed(name as keyof typeof GOLDENS).line(creditRow(GOLDEN_ROW, undefined, PLACE));
  expect(JSON.parse(linesOf(line))).toEqual(golden);
});

test("the golden row as it is, with its credit in it, is read again as the same row", () => {
  const line = formatNamed("neutral").line(creditRow(GOLDEN_ROW, undefined, PLACE));
  expect(decodeRows(line, "jsonl")).toEqual([GOLDEN_ROW]);
});

test("what the credits say wins over what the row says", () => {
  const credit = { sample_id: "s_01", reward: 0.25, advantage: -2, outcome: "scored" };
  const credited = creditRow(GOLDEN_ROW, credit, PLACE);
  const line = (name: "trl" | "slime" | "tinker") => JSON.parse(linesOf(formatNamed(name).line(credited)));
  expect(line("trl")).toMatchObject({ advantage: -2, metrics: { reward: 0.25 } });
  expect(line("slime").reward).toBe(0.25);
  expect(line("tinker").loss_fn_inputs.advantages.data).toEqual([0, 0, -2, -2, 0, -2]);
});

test("a logprob is the shortest decimal of its float32", () => {
  const row = { ...GOLDEN_ROW, logprobs: Float32Array.of(0, 0, 0, -0.1, -1 / 3, 0, -1e-7) };
  const text = linesOf(formatNamed("trl").line(creditRow(row, undefined, PLACE)));
  expect(text).toContain('"old_log_probs":[0,0,0,-0.1,-0.33333334,0,-1e-7]');
});

test("a row without spans has the version its group was dispatched with", () => {
  const { weight_versions: _, ...row } = GOLDEN_ROW;
  const line = formatNamed("slime").line(creditRow(row, undefined, PLACE));
  expect(JSON.parse(linesOf(line)).weight_versions).toEqual(["3"]);
});
