/**
 * The sweep: asks whatever is silent, one slice an alarm. Queues are accelerators; this is what makes a run finish when
 * a message is lost, an object was never reached, or the process was killed.
 */

import { completedUnit, FIRST_ASK_MS, giveUp, SCORING_DEADLINE_MS } from "./run-ledger.ts";
import type { RolloutEntry } from "./run-schema.ts";
import type { RunStore } from "./run-store.ts";
import type { RolloutStanding, RunSpec } from "./wire.ts";

/** A rollout that could not be started, or scored, in so many tries is given up, with its class. */
const MOST_START_TRIES = 12;
const MOST_SCORING_TRIES = 5;
const LONGEST_ASK_MS = 10 * 60_000;

/** Scoring that was not heard of: sent again, or after k tries unscored. */
export function sweepScoring(
  store: RunStore,
  spec: RunSpec,
  rows: readonly RolloutEntry[],
  now: number,
): number[] {
  const units: number[] = [];
  const ask_at = now + SCORING_DEADLINE_MS;
  for (const row of rows) {
    const complete = completedUnit(store, spec, row);
    if (complete === null) {
      // The rest of its group has not answered: nothing is lost, and a group is never scored in part.
      store.setRollout(row.seq, { ask_at });
    } else if (row.asks < MOST_SCORING_TRIES) {
      store.setRollout(row.seq, { asks: row.asks + 1, ask_at });
      units.push(complete);
    } else {
      const unit = giveUp(store, spec, row, { outcome: "unscored", reason: "scorer" }, now);
      if (unit !== null) units.push(unit);
    }
  }
  return units;
}

/** What a silent rollout said of itself. True when its start must be sent again. */
export function heardFrom(
  store: RunStore,
  spec: RunSpec,
  row: RolloutEntry,
  standing: RolloutStanding,
  now: number,
): { resend: boolean; unit: number | null } {
  const wait = Math.min(LONGEST_ASK_MS, FIRST_ASK_MS * 2 ** row.asks);
  const asks = row.asks + 1;
  switch (standing.state) {
    case "running": {
      const ask_at = Math.min(now + LONGEST_ASK_MS, Math.max(standing.next_event_at, now + wait));
      store.setRollout(row.seq, { asks, ask_at });
      return { resend: false, unit: null };
    }
    case "unknown":
    case "expired":
      if (row.asks < MOST_START_TRIES) {
        store.setRollout(row.seq, { asks, ask_at: now + wait });
        return { resend: true, unit: null };
      }
      return {
        resend: false,
        unit: giveUp(store, spec, row, { outcome: "failed", reason: "platform" }, now),
      };
    case "answered":
      // It holds our acknowledgement and we hold no answer: our storage is the older one. It cannot be asked again.
      return {
        resend: false,
        unit: giveUp(store, spec, row, { outcome: "failed", reason: "platform" }, now),
      };
  }
}
