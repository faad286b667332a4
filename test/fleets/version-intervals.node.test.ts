/** Which version interval a call belongs to, number by number, and what confirms it. */
import { expect, test } from "vitest";
import { FleetUpdate } from "../../src/contract/fleet.ts";
import {
  beginInterval,
  confirm,
  endInterval,
  type VersionInterval,
  versionOf,
} from "../../src/fleets/version-intervals.ts";

const RELOAD = FleetUpdate.parse({ mode: "reload" });
const RUN = { run_id: "run_a", generation: 0 };
const SHOWN = { process: "1", label: null };
const CALL = { replica_id: "a", model: "base" };
const UNSHOWN = { process: null, label: null };

function interval(changes: Partial<VersionInterval> = {}): VersionInterval {
  const weights = { ...RUN, version: 3 };
  return { from: 10, to: 20, weights, proof: SHOWN, confirmed: 100, ...changes };
}

function told(intervals: readonly VersionInterval[], number: number, end: number | null, of = RUN) {
  return versionOf(RELOAD, intervals, of, { ...CALL, number, end });
}

test("a call has the version of the interval with both its numbers, and the ends are exclusive", () => {
  const at = (number: number, end: number) => told([interval()], number, end);
  expect([at(11, 19), at(10, 19), at(11, 20), at(9, 15), at(15, 21)]).toEqual([3, null, null, null, null]);
  expect([told([interval()], 15, 15), told([interval()], 15, null)]).toEqual([null, null]);
});

test("another run's weights, and those of an earlier generation, give a run's call no version", () => {
  const other = { run_id: "run_b", generation: 0 };
  const later = { run_id: "run_a", generation: 1 };
  expect([told([interval()], 11, 19, other), told([interval()], 11, 19, later)]).toEqual([null, null]);
  expect(versionOf(RELOAD, [interval()], { ...RUN, generation: null }, { ...CALL, number: 11, end: 19 })).toBe(3);
});

test("a call gets its version once a probe that started after its end found the same server", () => {
  const looked = (confirmed: number, changes: Partial<VersionInterval> = {}) =>
    told([interval({ confirmed, ...changes })], 12, 15);
  expect([looked(16), looked(15), looked(14)]).toEqual([3, "unconfirmed", "unconfirmed"]);
  // The interval is over, and its server reports nothing to recognise it by.
  expect([looked(14, { proof: UNSHOWN }), looked(14, { proof: UNSHOWN, to: null })]).toEqual([null, "unconfirmed"]);
  expect(looked(14, { weights: "start" })).toBe(0);
});

test("an interval is confirmed from its start, and by a probe that started later", () => {
  const [begun] = beginInterval([], { from: 10, weights: "start", proof: SHOWN });
  expect(begun).toMatchObject({ from: 10, to: null, confirmed: 10 });
  const met = (at: number, changes: Partial<VersionInterval>, going = true) =>
    confirm([interval(changes)], SHOWN, { at, going })[0]?.confirmed;
  const open = { to: null, confirmed: 10 };
  expect([met(9, open), met(10, open), met(11, open), met(11, open, false)]).toEqual([10, 10, 11, 10]);
  // An interval that has ended is only confirmed by its process, and is complete once that was found after its end.
  const ended = { confirmed: 12 };
  expect([met(30, ended, false), met(30, { confirmed: 20 }), met(30, { ...ended, proof: UNSHOWN })]).toEqual([
    30, 20, 12,
  ]);
  expect(confirm([interval({ from: 31, to: null, confirmed: 5 })], SHOWN, { at: 30, going: true })[0]?.confirmed).toBe(
    5,
  );
});

test("a new interval ends the previous one, whose end then never changes", () => {
  const first = beginInterval([], { from: 1, weights: "start", proof: SHOWN });
  const second = beginInterval(first, { from: 5, weights: { ...RUN, version: 1 }, proof: SHOWN });
  expect(second.map(({ from, to }) => [from, to])).toEqual([
    [1, 5],
    [5, null],
  ]);
  expect(endInterval(endInterval(second, 7), 9).at(-1)?.to).toBe(7);
});
