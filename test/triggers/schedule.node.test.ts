/** Which schedules are accepted, and when they start runs. */
import { expect, test } from "vitest";
import { checkSchedule, nextDue } from "../../src/triggers/schedule.ts";

const NOW = Date.UTC(2026, 10, 30, 6, 0);

function times(cron: string, timezone: string, count: number): string[] {
  const found: string[] = [];
  for (let at: number | null = NOW; found.length < count; ) {
    at = nextDue({ cron, timezone }, at);
    if (at === null) break;
    found.push(new Date(at).toISOString());
  }
  return found;
}

test("the next time is after the given one, in UTC", () => {
  expect(times("0 6 * * 1", "UTC", 2)).toEqual(["2026-12-07T06:00:00.000Z", "2026-12-14T06:00:00.000Z"]);
});

test("in a time zone the local time stays the same when its clocks change", () => {
  expect(nextDue({ cron: "0 6 * * *", timezone: "Europe/Berlin" }, Date.UTC(2027, 2, 27, 12))).toBe(
    Date.UTC(2027, 2, 28, 4),
  );
  expect(times("0 6 1 * *", "Europe/Berlin", 1)).toEqual(["2026-12-01T05:00:00.000Z"]);
});

test.each([["0 6 * * 1"], ["*/5 * * * *"], ["0,5 6 * * *"], ["0 0 29 2 *"], ["0 0 L * *"], ["0 9 * JAN-MAR MON#1"]])(
  "%s is accepted",
  (cron) => {
    expect(checkSchedule({ cron, timezone: "UTC" }, NOW)).toEqual({ ok: true, value: null });
  },
);

test.each([
  ["*/4 * * * *", "UTC", "schedule.cron: two of its times are less than 5 minutes apart, the minimum"],
  ["58,0 * 1 1 *", "UTC", "schedule.cron: two of its times are less than 5 minutes apart, the minimum"],
  ["0 0 31 2 *", "UTC", "schedule.cron: no such time ever comes"],
  ["61 0 * * *", "UTC", "schedule.cron: is not a schedule: "],
  ["a b c d e", "UTC", "schedule.cron: is not a schedule: "],
  ["0 6 * * 1", "Nowhere/City", "schedule.timezone: Nowhere/City is not a time zone: use a name such as Europe/Berlin"],
])("%s in %s is refused", (cron, timezone, message) => {
  const checked = checkSchedule({ cron, timezone }, NOW);
  expect(checked.ok ? "" : checked.error.message).toContain(message);
});
