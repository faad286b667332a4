/** When a schedule starts runs: the five fields of cron, in a time zone. Pure, except for the zones that ICU has. */
import { Cron } from "croner";
import { LIMITS } from "../contract/limits.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import type { TriggerSchedule } from "./wire.ts";

/** More times than an hour has minutes: two that are too close are among them. */
const LOOKED_AT = 62;
const MINUTE_MS = 60_000;

/** The first time after `after` (epoch milliseconds); null if none comes. */
export function nextDue(schedule: TriggerSchedule, after: number): number | null {
  return cronOf(schedule).nextRun(new Date(after))?.getTime() ?? null;
}

/** Refuses what is no schedule, never comes, or comes more often than every `LIMITS.scheduleMinutes` minutes. */
export function checkSchedule(schedule: TriggerSchedule, now: number): Result<null> {
  const { timezone } = schedule;
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    return refuseField("timezone", `${timezone} is not a time zone: use a name such as Europe/Berlin`);
  }
  let times: Date[];
  try {
    times = cronOf(schedule).nextRuns(LOOKED_AT, new Date(now));
  } catch (thrown) {
    if (!(thrown instanceof Error)) throw thrown;
    return refuseField("cron", `is not a schedule: ${thrown.message.replace(/^CronPattern: /, "")}`);
  }
  if (times.length === 0) return refuseField("cron", "no such time ever comes");
  const close = times.some((time, at) => {
    const before = times[at - 1];
    return before !== undefined && time.getTime() - before.getTime() < LIMITS.scheduleMinutes * MINUTE_MS;
  });
  if (!close) return { ok: true, value: null };
  return refuseField("cron", `two of its times are less than ${LIMITS.scheduleMinutes} minutes apart, the minimum`);
}

function cronOf({ cron, timezone }: TriggerSchedule): Cron {
  return new Cron(cron, { mode: "5-part", timezone, paused: true });
}

function refuseField(field: "cron" | "timezone", why: string): Result<never> {
  return refuse("invalid_request", `schedule.${field}: ${why}`, `schedule.${field}`);
}
