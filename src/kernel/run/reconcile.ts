/**
 * Reconciliation: asks what is silent, one slice per alarm. Queues only make things faster; reconciliation is the
 * reason that a run finishes if a message is lost, an object was never reached, or the process was killed.
 */

import type { RolloutEntry } from "../messages/run-records.ts";
import type { RolloutStanding, RunSpec } from "../messages/wire.ts";
import { completedScoringGroup, FIRST_ASK_MS, giveUp, SCORING_DEADLINE_MS } from "./accounting.ts";
import { JUDGED_LOOK_MS } from "./judging-store.ts";
import { waitingRows } from "./scoring-groups.ts";
import type { RunStore } from "./store.ts";

/** A rollout is given up after this many misses in a row. */
const MOST_MISSES = 12;
/** An object whose storage cannot be read will not answer: its rollouts are given up within a minute. */
const MOST_UNREADABLE = 4;
const UNREADABLE_ASK_MS = 10_000;
/** With the waits between them they take about 15 minutes. */
const MOST_SCORING_TRIES = 5;
const LONGEST_ASK_MS = 10 * 60_000;
/** With the longest wait before each they take a week, many times the longest time of a rollout. */
const MOST_ASKS = 1000;

/**
 * Handles scoring without a result: returns the scoring groups to send again, and ends those that had too many tries as
 * unscored. A group's members are tried together. `isUnsent`: the scoring group still waits to be sent, which is no
 * try.
 */
export function reconcileScoring(
  store: RunStore,
  spec: RunSpec,
  rows: readonly RolloutEntry[],
  now: number,
  isUnsent: (scoringGroup: number) => boolean = () => false,
): number[] {
  const scoringGroups = new Set<number>();
  for (const row of rows) {
    const scoringGroup = completedScoringGroup(store, spec, row);
    // Its judges are being called: judging has its own reconciliation.
    if (scoringGroup !== null && store.judging.scoringGroup(scoringGroup) !== null) {
      store.setRollout(row.seq, { ask_at: now + JUDGED_LOOK_MS });
      continue;
    }
    // Null: other members of its group have not reported. Nothing is lost, and a group is never scored in part.
    if (scoringGroup === null || isUnsent(scoringGroup)) {
      store.setRollout(row.seq, { ask_at: now + SCORING_DEADLINE_MS });
    } else scoringGroups.add(scoringGroup);
  }
  return [...scoringGroups].filter((scoringGroup) => {
    const members = waitingRows(store, spec, scoringGroup);
    // After a restart `ask_at` is 0: this look is not due to silence and does not count as a try.
    const silent = members.some((row) => row.ask_at > 0 && row.ask_at <= now);
    const asks = (silent ? 1 : 0) + Math.max(...members.map((row) => row.asks));
    if (asks > MOST_SCORING_TRIES) {
      for (const row of members) giveUp(store, spec, row, UNSCORED, now);
      return false;
    }
    // The wait doubles, so that a store that is unavailable for minutes costs no score.
    const ask_at = now + SCORING_DEADLINE_MS * 2 ** Math.max(0, asks - 1);
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
 * `unreachable`: the call itself failed, which says nothing about the rollout. `unavailable`: it failed because of a
 * temporary fault below the platform. `unreadable`: the rollout's object reports it, or does not open although other
 * objects do.
 */
export type RolloutAnswer = RolloutStanding | { readonly state: "unreachable" | "unavailable" };

export const UNREADABLE = "the storage of its object cannot be read";

/**
 * Applies a silent rollout's answer. `resend`: its start must be sent again. `row` is the current row: the rollout may
 * have reported while it was being asked, and then there is nothing to do.
 */
export function takeAnswer(
  store: RunStore,
  spec: RunSpec,
  row: RolloutEntry | null,
  answer: RolloutAnswer,
  now: number,
): { resend: boolean; unit: number | null } {
  if (row?.status !== "running") return { resend: false, unit: null };
  const wait = waitAfterAsk(row.asks);
  const asks = row.asks + 1;
  switch (answer.state) {
    case "running": {
      const ask_at = askAgainAt(row.asks, answer.next_event_at, now);
      store.setRollout(row.seq, { asks, ask_at, misses: 0 });
      return { resend: false, unit: null };
    }
    case "unknown":
    case "expired":
    case "unreachable": {
      const misses = row.misses + 1;
      if (misses > MOST_MISSES) return lost(store, spec, row, "its object could not be reached", now);
      store.setRollout(row.seq, { asks, ask_at: now + wait, misses });
      // A start that arrives twice has the effect of one.
      return { resend: true, unit: null };
    }
    case "unavailable":
      // Not a miss: a fault that passes costs no rollout. But one that never passes must not keep a run from its end.
      if (asks > MOST_ASKS) return lost(store, spec, row, "its object was unavailable for a week", now);
      store.setRollout(row.seq, { asks, ask_at: now + wait });
      return { resend: false, unit: null };
    case "unreadable": {
      const misses = row.misses + 1;
      if (misses > MOST_UNREADABLE) return lost(store, spec, row, `${UNREADABLE}: ${row.id}`, now);
      store.setRollout(row.seq, { asks, ask_at: now + UNREADABLE_ASK_MS, misses });
      return { resend: false, unit: null };
    }
    case "answered":
      // The rollout was acknowledged but its report is missing: our storage is older. It cannot be sent again.
      return lost(store, spec, row, "its answer was acknowledged but is missing", now);
  }
}

/** When a rollout that is running is asked again. `asks`: how often it was asked before; times are epoch milliseconds. */
export function askAgainAt(asks: number, nextEventAt: number, now: number): number {
  return Math.min(now + LONGEST_ASK_MS, Math.max(nextEventAt, now + waitAfterAsk(asks)));
}

function waitAfterAsk(asks: number): number {
  return Math.min(LONGEST_ASK_MS, FIRST_ASK_MS * 2 ** asks);
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
