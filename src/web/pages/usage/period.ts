/** The periods of the page of usage: whole days of UTC, named in the URL. Pure. Times are seconds since the epoch. */
import type { Search } from "../../address.ts";

export const DAY_S = 86_400;
/** The days of the chart, today included. */
export const DAYS = 31;

export interface Period {
  /** Its name in the URL: `today`, `week`, or a day such as `2026-11-30`. */
  readonly id: string;
  /** "today", "the last 7 days". */
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/** The periods to choose from, and one day of the chart if the URL names it; the first is the default. */
export function periodsAt(now: number): readonly Period[] {
  const today = now - (now % DAY_S);
  const last = (days: number) => ({ start: today - (days - 1) * DAY_S, end: today + DAY_S });
  return [
    { id: "today", name: "today", ...last(1) },
    { id: "yesterday", name: "yesterday", start: today - DAY_S, end: today },
    { id: "week", name: "the last 7 days", ...last(7) },
    { id: "month", name: `the last ${DAYS} days`, ...last(DAYS) },
  ];
}

/** The period that the URL names. A day before the days of the chart, and anything else unknown, is today. */
export function periodOf(search: Search, now: number): Period {
  const periods = periodsAt(now);
  const asked = search["period"] ?? "";
  const [today] = periods;
  if (today === undefined) throw new Error("the list of periods is empty");
  const start = Date.parse(`${asked}T00:00:00Z`) / 1000;
  const isDay = /^\d{4}-\d\d-\d\d$/.test(asked) && start > today.start - DAYS * DAY_S && start <= today.start;
  if (isDay) return { id: asked, name: dayText(start), start, end: start + DAY_S };
  return periods.find(({ id }) => id === asked) ?? today;
}

/** The name of a day in the URL. */
export function dayId(start: number): string {
  return new Date(start * 1000).toISOString().slice(0, "2026-11-30".length);
}

/** "30 Nov", in UTC. */
export function dayText(start: number): string {
  return new Date(start * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
}

/** "14:00", in UTC. */
export function hourText(start: number): string {
  return new Date(start * 1000).toISOString().slice("2026-11-30T".length, "2026-11-30T14:00".length);
}
