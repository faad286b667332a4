import { expect, test } from "vitest";
import { LeftOutTally } from "../../src/cli/commands/run-rows.ts";

test("what the pages of an export left out is added up by reason, and the first rollouts are named", () => {
  const tally = new LeftOutTally();
  expect([tally.asJson(), tally.lines()]).toEqual([null, []]);
  tally.add({ rows: 2, reasons: { invalid_json: 2 }, rollouts: ["ro_1", "ro_2"] });
  tally.add({
    rows: 4,
    reasons: { invalid_json: 1, of_a_newer_platform: 3 },
    rollouts: ["ro_3", "ro_4", "ro_5", "ro_6"],
  });
  expect(tally.asJson()).toEqual({
    rows: 6,
    reasons: { invalid_json: 3, of_a_newer_platform: 3 },
    rollouts: ["ro_1", "ro_2", "ro_3", "ro_4", "ro_5"],
  });
  expect(tally.lines()).toEqual([
    "3 left out: the arguments of a call are not JSON",
    "3 left out: of_a_newer_platform",
    "of ro_1, ro_2, ro_3, ro_4, ro_5, …",
  ]);
});
