/**
 * The schedule of a trigger as its object has it: the next due time, and when the object must read the trigger again.
 *
 * A change of a schedule is announced to the object before it is written to the database (`expect`). If the platform
 * stops in between, the object reads the trigger when that time comes, so no schedule is lost. Until then only the
 * change itself takes its announcement back: another change may have read the trigger before it was written.
 *
 * Reads of the trigger can overlap. A change is written before its read begins, so a read has all changes of the reads
 * that began before it. A read that ends after a later one changes no schedule.
 */
import { nextDue } from "./schedule.ts";
import type { TriggerSchedule } from "./wire.ts";

const ARMED = "schedule";
const EXPECTED = "schedule-change";
/** A change takes less. */
const EXPECTED_MS = 60_000;

/** `next`: epoch milliseconds. */
export interface Armed {
  readonly schedule: TriggerSchedule;
  readonly next: number;
  /** The platform's origin in the request that set the schedule. */
  readonly origin: string;
}

interface Expected {
  readonly at: number;
  readonly origin: string;
  /** The announced change; null if there are several, or if an earlier release announced it. */
  readonly change?: string | null;
}

/** A read of the trigger. */
export interface ScheduleRead {
  readonly began: number;
  /** The change after which it was made; null if that was not announced. */
  readonly change: string | null;
  /** Counts the reads of this object, which begin in this order and may end in another. */
  readonly order: number;
}

export class ArmedSchedule {
  readonly #kv: SyncKvStorage;
  #begunReads = 0;
  /** The order of the latest read that was taken over. */
  #latestRead = 0;

  constructor({ kv }: DurableObjectStorage) {
    this.#kv = kv;
  }

  get armed(): Armed | null {
    return this.#kv.get<Armed>(ARMED) ?? null;
  }

  /** When the alarm has something to do; null: never. */
  get dueAt(): number | null {
    const times = [this.armed?.next, this.#kv.get<Expected>(EXPECTED)?.at].filter((time) => time !== undefined);
    return times.length === 0 ? null : Math.min(...times);
  }

  /** Whether an announced change must be looked for now. */
  isOverdue(now: number): boolean {
    const expected = this.#kv.get<Expected>(EXPECTED);
    return expected !== undefined && expected.at <= now;
  }

  expect(origin: string, change: string | null, now: number): void {
    const expected = this.#kv.get<Expected>(EXPECTED);
    const isOnly = expected === undefined || expected.change === change;
    this.#kv.put<Expected>(EXPECTED, { at: now + EXPECTED_MS, origin, change: isOnly ? change : null });
  }

  /** Whether the stored schedule and its next time are still these. */
  has({ schedule, next }: Armed): boolean {
    const { armed } = this;
    return armed !== null && armed.next === next && isSame(armed.schedule, schedule);
  }

  /** Call it before the trigger is read. `change`: the announced change that has been made. */
  beginRead(change: string | null, now: number): ScheduleRead {
    this.#begunReads += 1;
    return { began: now, change, order: this.#begunReads };
  }

  /** `wanted`: what the read found; null: no schedule, or disabled. The same schedule keeps its next time. */
  set(wanted: TriggerSchedule | null, { began, change, order }: ScheduleRead, now: number): void {
    const { armed } = this;
    const expected = this.#kv.get<Expected>(EXPECTED);
    const origin = expected?.origin ?? armed?.origin ?? "";
    const isOwn = change !== null && expected?.change === change;
    if (expected !== undefined && (isOwn || expected.at <= began)) this.#kv.delete(EXPECTED);
    if (order < this.#latestRead) return;
    this.#latestRead = order;
    if (wanted !== null && armed !== null && isSame(wanted, armed.schedule)) return;
    this.#put(wanted, origin, now);
  }

  /** The due time has come. Times that were missed are skipped. */
  advance({ schedule, origin, next }: Armed, now: number): void {
    this.#put(schedule, origin, Math.max(next, now));
  }

  #put(schedule: TriggerSchedule | null, origin: string, after: number): void {
    const next = schedule === null ? null : nextDue(schedule, after);
    if (schedule !== null && next !== null) this.#kv.put<Armed>(ARMED, { schedule, next, origin });
    else if (this.armed !== null) this.#kv.delete(ARMED);
  }
}

export function isSame(one: TriggerSchedule, other: TriggerSchedule): boolean {
  return one.cron === other.cron && one.timezone === other.timezone;
}
