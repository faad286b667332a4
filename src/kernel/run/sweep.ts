/**
 * The sweep: asks whatever is silent, one slice an alarm. Queues are accelerators; this is what makes a run finish when
 * a message is lost, an object was never reached, or the process was killed.
 */

import type { RolloutEntry } from "../messages/run-records.ts";
import type { RolloutStanding, RunSpec } from "../messages/wire.ts";
import { completedUnit, FIRST_ASK_MS, giveUp, SCORING_DEADLINE_MS } from "./accounting.ts";
import { JUDGED_LOOK_MS } from "./judging-store.ts";
import type { RunStore } from "./store.ts";
import { waitingRows } from "./units.ts";

/** A rollout whose object was not there so many times in a row is given up; so is scoring that never came back. */
const MOST_MISSES = 12;
/** One whose storage cannot be read will not answer: within a minute it is given up. */
const MOST_UNREADABLE = 4;
const UNREADABLE_ASK_MS = 10_000;
const MOST_SCORING_TRIES = 5;
const LONGEST_ASK_MS = 10 * 60_000;

/**
 * Scoring that was not heard of: sent again, or after k tries unscored. A group's members are tried as one. `isUnsent`: it
 * waits for its place in the queue, which is no try.
 */
export function sweepScoring(
  store: RunStore,
  spec: RunSpec,
  rows: readonly RolloutEntry[],
  now: number,
  isUnsent: (unit: number) => boolean = () => false,
): number[] {
  const ask_at = now + SCORING_DEADLINE_MS;
  const units = new Set<number>();
  for (const row of rows) {
    const unit = completedUnit(store, spec, row);
    // Its judges are asked: that is swept by itself.
    if (unit !== null && store.judging.unit(unit) !== null) {
      store.setRollout(row.seq, { ask_at: now + JUDGED_LOOK_MS });
      continue;
    }
    // Null: the rest of its group has not answered. Nothing is lost, and a group is never scored in part.
    if (unit === null || isUnsent(unit)) store.setRollout(row.seq, { ask_at });
    else units.add(unit);
  }
  return [...units].filter((unit) => {
    const members = waitingRows(store, spec, unit);
    // One that is looked at because of a restart was not silent: it was not waited for.
    const silent = members.some((row) => row.ask_at > 0 && row.ask_at <= now);
    const asks = (silent ? 1 : 0) + Math.max(...members.map((row) => row.asks));
    if (asks > MOST_SCORING_TRIES) {
      for (const row of members) giveUp(store, spec, row, UNSCORED, now);
      return false;
    }
    for (const row of members) store.setRollout(row.seq, { asks, ask_at });
    return true;
  });
}

const UNSCORED = {
  from: "scoring",
  outcome: "unscored",
  reason: "scorer",
  message: `scoring did not finish in ${MOST_SCORING_TRIES} attempts`,
} as const;

/**
 * `unreachable`: the call itself failed, which says nothing about the rollout. `unreadable`: its own object says so, or
 * does not open, and others do.
 */
export type Heard = RolloutStanding | { readonly state: "unreachable" };

export const UNREADABLE = "the storage of its object cannot be read";

/**
 * What a silent rollout said of itself. True when its start must be sent again. `row` is as it stands now: it may have
 * answered while it was being asked, and then there is nothing to do.
 */
export function heardFrom(
  store: RunStore,
  spec: RunSpec,
  row: RolloutEntry | null,
  heard: Heard,
  now: number,
): { resend: boolean; unit: number | null } {
  if (row?.status !== "running") return { resend: false, unit: null };
  const wait = Math.min(LONGEST_ASK_MS, FIRST_ASK_MS * 2 ** row.asks);
  const asks = row.asks + 1;
  switch (heard.state) {
    case "running": {
      const ask_at = Math.min(now + LONGEST_ASK_MS, Math.max(heard.next_event_at, now + wait));
      store.setRollout(row.seq, { asks, ask_at, misses: 0 });
      return { resend: false, unit: null };
    }
    case "unknown":
    case "expired":
    case "unreachable": {
      const misses = row.misses + 1;
      if (misses > MOST_MISSES) return lost(store, spec, row, "its object could not be reached", now);
      store.setRollout(row.seq, { asks, ask_at: now + wait, misses });
      // A start that arrives twice begins nothing twice.
      return { resend: true, unit: null };
    }
    case "unreadable": {
      const misses = row.misses + 1;
      if (misses > MOST_UNREADABLE) return lost(store, spec, row, `${UNREADABLE}: ${row.id}`, now);
      store.setRollout(row.seq, { asks, ask_at: now + UNREADABLE_ASK_MS, misses });
      return { resend: false, unit: null };
    }
    case "answered":
      // It holds our acknowledgement and we hold no answer: our storage is the older one. It cannot be asked again.
      return lost(store, spec, row, "its answer was acknowledged but is missing", now);
  }
}

function lost(
  store: RunStore,
  spec: RunSpec,
  row: RolloutEntry,
  message: string,
  now: number,
): { resend: boolean; unit: number | null } {
  const ending = { from: "running", outcome: "failed", reason: "platform", message } as const;
  return { resend: false, unit: giveUp(store, spec, row, ending, now) };
}
