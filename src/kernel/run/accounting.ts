/**
 * The accounting of a run: one function for each change of a rollout's state, inside one transaction. What judging and
 * training add at an end (`AccountingHooks`) is written in the same transaction as the end.
 *
 * Invariants. planned = pending + dispatched, and dispatched = in_flight + scored + unscored + failed + cancelled,
 * after every function here. An ended rollout never changes again: a report that arrives twice or late changes nothing.
 * Ends are numbered without gaps, and each adds one `rollout.finished` event.
 */
import {
  type CancelReason,
  type FailureClass,
  InfraError,
  serializeError,
  type UnscoredCause,
} from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Outcome, RolloutFinished } from "../../contract/run.ts";
import { letOut } from "../../core/costs/call-budget.ts";
import type { ScoreRecord } from "../../core/rubrics/score.ts";
import { largestGroup } from "../../core/training/members.ts";
import { afterDispatch, afterEnd } from "../endpoint/run-lease.ts";
import { orRefusal } from "../kit/storage-faults.ts";
import { addCounted } from "../messages/latency.ts";
import type { Answered } from "../messages/rpc.ts";
import type { Ending, RolloutEntry } from "../messages/run-records.ts";
import type { GroupSamples } from "../messages/training-wire.ts";
import type { RolloutReport, RolloutSlot, RunSpec, ScoredMember } from "../messages/wire.ts";
import { closeRollout, quotaAtStart, takeLate } from "./cap.ts";
import { chargedBy } from "./charged.ts";
import { nameOfRollout } from "./lost-reservations.ts";
import { afterReport } from "./refusals.ts";
import type { RunHead } from "./schema.ts";
import { rolloutsPerShard } from "./shards.ts";
import { appendEvent, groupSizeIn, settle } from "./standing.ts";
import type { RunStore } from "./store.ts";

/** A dispatched rollout is asked when it has been silent for this time, then after twice as long each time. */
export const FIRST_ASK_MS = 5000;
/** A scoring group is sent for scoring again if its scores have not arrived after this time. */
export const SCORING_DEADLINE_MS = 30_000;
/** A reader holds up to ten segments in memory at once. */
export const SEGMENT_BYTES = 2 * 1024 * 1024;

/** Dispatches the next `count` rollouts, retries first, then group by group. Returns their slots. */
export function dispatch(
  store: RunStore,
  spec: RunSpec,
  count: number,
  idOf: (place: RolloutSlot) => string,
  now: number,
): RolloutSlot[] {
  return store.transaction(() => {
    const retries = dispatchRetries(store, spec, count, idOf);
    const head = store.head();
    const first = head.dispatched - head.retries_dispatched;
    const firsts = firstSlots(store, spec, first, count - retries.length);
    const askAt = now + FIRST_ASK_MS;
    let { hosts: shards } = head;
    const most = rolloutsPerShard(spec, head);
    const shardOf = (carries: number | null) => {
      if (spec.rescore !== undefined || carries !== null) return null;
      return store.shards.take(() => {
        shards += 1;
        return shards;
      }, most);
    };
    let out = 0;
    for (const { place, carries } of [...retries, ...firsts.map((place) => ({ place, carries: null }))]) {
      const shard = shardOf(carries);
      const quota = quotaAtStart(store, spec, shard === null, count);
      out += quota;
      store.addRollout(place, { id: idOf(place), at: now, askAt, carries, host: shard, ceiling: quota });
    }
    store.saveHead({
      ...head,
      hosts: shards,
      dispatched: head.dispatched + count,
      retries_dispatched: head.retries_dispatched + retries.length,
      in_flight: head.in_flight + count,
      running: head.running + count,
      gate: afterDispatch(head.gate, count, now),
      cap: { ...head.cap, ...letOut(head.cap, out) },
      row_current: false,
    });
    return [...retries.map(({ place }) => place), ...firsts];
  });
}

/** The next `count` slots whose first attempts are dispatched, after the first `before`. */
function firstSlots(store: RunStore, spec: RunSpec, before: number, count: number): RolloutSlot[] {
  const { rollouts_per_example: size } = spec;
  if (store.head().training?.shared !== undefined) {
    const slots = store.training.slotsAfter(before, count, largestGroup(spec));
    return slots.map((slot) => ({ ...slot, attempt: 0 }));
  }
  return Array.from({ length: count }, (_, index) => {
    const position = before + index;
    return { group: Math.floor(position / size), slot: position % size, attempt: 0 };
  });
}

/** The next attempts in slots that are retried. From now on these count; the earlier attempts keep their ends. */
function dispatchRetries(
  store: RunStore,
  { whole_groups }: RunSpec,
  count: number,
  idOf: (place: RolloutSlot) => string,
): { readonly place: RolloutSlot; readonly carries: number | null }[] {
  if (store.head().retried === store.head().retries_dispatched) return [];
  const before = store.retries.first(count);
  const next = before.map((row) => {
    const place = { group: row.group_index, slot: row.slot, attempt: row.attempt + 1 };
    return { row, place, carries: isAnswered(row) ? row.seq : null };
  });
  for (const { row, place } of next) {
    store.setRollout(row.seq, { superseded_by: idOf(place) });
    store.retries.drop(row.seq);
    // An attempt has a new id, but a group keeps its number: deaths during its earlier scoring no longer count.
    if (whole_groups) store.quarantine.drop(`unit/${row.group_index}`);
  }
  return next;
}

/** True if the attempt ended with a trajectory to score, or to score again: then nothing is sampled again. */
function isAnswered({ outcome, digest }: RolloutEntry): boolean {
  return (outcome === "scored" || outcome === "unscored") && digest !== null;
}

/** The result for one report: also the scoring group that is now complete, if any. */
type Taken = Answered & { readonly unit?: number | null };

/** Adds the platform's time in this report's turns to the run's total, and notes how the model replied. */
function withReplies(
  head: RunHead,
  { latencies, replies_whole }: RolloutReport,
): Pick<RunHead, "platform" | "replies_whole"> {
  const platform = addCounted(head.platform, latencies?.platform);
  return { ...(platform !== undefined && { platform }), ...(replies_whole !== undefined && { replies_whole }) };
}

/** Stores final reports together. If that is refused they are stored one by one, so that only a bad one is refused. */
export function answerAll(
  store: RunStore,
  spec: RunSpec,
  reports: readonly RolloutReport[],
  now: number,
): readonly Taken[] {
  const together = orRefusal(() => store.transaction(() => reports.map((report) => answer(store, spec, report, now))));
  if (!("refused" in together)) return together;
  const [only, ...others] = reports;
  if (others.length > 0) return reports.flatMap((report) => answerAll(store, spec, [report], now));
  if (only?.record === undefined) return [{ known: true, ...together }];
  // Its scores may be the reason. Without them it is scored again, and that error names what was refused.
  const { record: _, ...unscored } = only;
  return answerAll(store, spec, [unscored], now);
}

/** Stores a final report. Returns the scoring group that is now complete, if any, and whether the rollout is known. */
export function answer(
  store: RunStore,
  spec: RunSpec,
  report: RolloutReport,
  now: number,
): { known: boolean; unit: number | null } {
  return store.transaction(() => {
    const row = store.rollout(report);
    if (row === null) return { known: false, unit: null };
    if (row.status !== "running") {
      takeLate(store, nameOfRollout(row.seq), report.spent);
      return { known: true, unit: null };
    }
    store.shards.leave(row.host);
    const columns = { ...columnsOf(report), ...closeRollout(store, spec, row, report.spent) };
    const head = store.head();
    store.saveHead({
      ...head,
      running: head.running - 1,
      gate: afterEnd(head.gate, report, now),
      refusals: afterReport(head.refusals, spec, row, report),
      ...withReplies(head, report),
      stop: head.stop ?? (report.stop_run === null ? null : { kind: "fail", ...report.stop_run }),
    });
    if (report.trajectory !== null) store.addTrajectory(row.seq, report.trajectory);
    const ended = endOf(report);
    if (ended === null && report.record !== undefined) {
      end(store, row, columns, scoredEnd(report.record));
      store.hooks.onGroupEnded(store, spec, row.group_index, null);
    } else if (ended === null) {
      const ask_at = now + SCORING_DEADLINE_MS;
      store.setRollout(row.seq, { ...columns, status: "scoring", ask_at, asks: 0 });
    } else {
      end(store, row, columns, { ...ended, reward: null, record: null });
      store.hooks.onGroupEnded(store, spec, row.group_index, null);
    }
    const scoringGroup = completedScoringGroup(store, spec, row);
    settle(store, spec, now);
    return { known: true, unit: scoringGroup };
  });
}

/** Stores scores of scoring groups, and the training samples of whole groups. The first record of a rollout wins. */
export function score(
  store: RunStore,
  spec: RunSpec,
  members: readonly ScoredMember[],
  now: number,
  samples: readonly GroupSamples[] = [],
): void {
  store.transaction(() => {
    for (const member of members) scoreOne(store, member);
    for (const group of new Set(members.map(({ group }) => group))) {
      store.hooks.onGroupEnded(store, spec, group, samples.find((made) => made.group === group) ?? null);
    }
    settle(store, spec, now);
  });
}

function scoreOne(store: RunStore, { record, ...place }: ScoredMember): void {
  const row = store.rollout(place);
  if (row === null || row.status !== "scoring") return;
  end(store, row, {}, scoredEnd(record));
}

function scoredEnd(record: ScoreRecord): Parameters<typeof end>[3] {
  const { reward, unscored } = record;
  if (reward === null) return { outcome: "unscored", reason: unscored ?? "scorer", reward, record };
  return { outcome: "scored", reason: null, reward, record };
}

/** The end that the platform writes for a rollout that did not end by itself. */
export type GivenUp = { readonly from: "running" | "scoring"; readonly message: string } & (
  | { readonly outcome: "failed"; readonly reason: FailureClass }
  | { readonly outcome: "unscored"; readonly reason: UnscoredCause }
  | { readonly outcome: "cancelled"; readonly reason: CancelReason }
);

/** Ends the rollout with this reason, unless it is no longer in the state `from`. */
export function giveUp(
  store: RunStore,
  spec: RunSpec,
  row: RolloutEntry,
  { from, message, outcome, reason }: GivenUp,
  now: number,
): number | null {
  return store.transaction(() => {
    const current = store.bySeq(row.seq);
    if (current === null || current.status !== from) return null;
    const closed = from === "running" ? closeRollout(store, spec, current, undefined) : {};
    if (from === "running") {
      store.shards.drop(current.host);
      const head = store.head();
      store.saveHead({ ...head, running: head.running - 1 });
    }
    const ended_at = current.ended_at ?? now;
    const failed = outcome === "failed" ? JSON.stringify(serializeError(new InfraError(message))) : null;
    const scoring_errors = [{ function: "rubric", error: message, retryable: true }];
    end(
      store,
      current,
      { ...closed, ended_at, ...(failed === null ? {} : { error: failed }) },
      { outcome, reason, reward: null, record: null },
    );
    if (outcome === "unscored") {
      store.setRollout(row.seq, { scoring_errors: JSON.stringify(scoring_errors) });
    }
    store.hooks.onGroupEnded(store, spec, current.group_index, null);
    const scoringGroup = completedScoringGroup(store, spec, current);
    settle(store, spec, now);
    return scoringGroup;
  });
}

/** Ends the run early: nothing more is dispatched, and running rollouts are notified. */
export function requestCancel(store: RunStore, spec: RunSpec, reason: "user" | "deadline", now: number): void {
  store.transaction(() => {
    const head = store.head();
    if (head.settled_at !== null || head.stop !== null) return;
    store.saveHead({ ...head, stop: { kind: "cancel", reason, at: now }, row_current: false });
    settle(store, spec, now);
  });
}

/** Stores a segment's key and deletes the trajectories that it covers. */
export function fold(store: RunStore, segment: number, key: string): void {
  store.transaction(() => {
    const entry = store.segment(segment);
    if (entry === null || entry.key !== null) return;
    store.setSegment(segment, { key });
    store.dropTrajectories(entry);
  });
}

/** Cuts the next segment if enough rollouts have ended, or the run has. Null if there is none to cut. */
export function cutSegment(store: RunStore, now: number): number | null {
  return store.transaction(() => {
    const head = store.head();
    const waiting = head.finished - head.segmented;
    const full = waiting >= LIMITS.segmentRollouts || head.unsegmented_bytes >= SEGMENT_BYTES;
    if (waiting <= 0 || !(full || head.settled_at !== null)) return null;
    const { count, bytes } = segmentOf(store.ended.bytes(head.segmented, LIMITS.segmentRollouts));
    // The head counts rows that do not exist: the audit reports that, and there is nothing to cut.
    if (count === 0) return null;
    const last = head.segmented + count;
    const segment = store.addSegment(head.segmented + 1, last, now + SCORING_DEADLINE_MS);
    const unsegmented_bytes = head.unsegmented_bytes - bytes;
    store.saveHead({ ...head, segmented: last, unsegmented_bytes });
    return segment;
  });
}

/** As many of these sizes as fit into one segment, at least one. Compacting holds at most that much in memory. */
function segmentOf(sizes: readonly number[]): { count: number; bytes: number } {
  let [count, bytes] = [0, 0];
  for (const size of sizes) {
    if (count > 0 && bytes + size > SEGMENT_BYTES) break;
    count += 1;
    bytes += size;
  }
  return { count, bytes };
}

/** The rollout's scoring group (itself, or its group) if all of it has reported and waits for scores; else null. */
export function completedScoringGroup(store: RunStore, spec: RunSpec, row: RolloutEntry): number | null {
  if (!spec.whole_groups) return store.bySeq(row.seq)?.status === "scoring" ? row.seq : null;
  const members = store.groupRewards(row.group_index);
  const whole = members.length === groupSizeIn(store, spec, row.group_index) && !store.retries.awaits(row.group_index);
  const all = whole || store.head().stop !== null;
  const silent = members.some(({ status }) => status === "running");
  const waits = members.some(({ status }) => status === "scoring");
  return all && !silent && waits ? row.group_index : null;
}

/** `columns`: further values that became known with the end. */
function end(
  store: RunStore,
  row: RolloutEntry,
  columns: Partial<RolloutEntry>,
  ending: Ending & { readonly reward: number | null; readonly record: ScoreRecord | null },
): void {
  const { outcome, reason, reward, record } = ending;
  const head = store.head();
  const known = { ...row, ...columns };
  const { id, example_id, group_index, turns, stop_condition, bytes } = known;
  const also = store.hooks.onEnded(store, known, ending);
  store.setRollout(row.seq, {
    ...columns,
    ...also,
    status: "done",
    outcome,
    reason,
    reward,
    scores: JSON.stringify(record?.scores ?? []),
    scoring_errors: JSON.stringify(record?.scoring_errors ?? []),
    steps: record?.steps === undefined ? null : JSON.stringify(record.steps),
    finish_seq: head.finished + 1,
  });
  store.saveHead({
    ...head,
    ...countOutcome(head, outcome, reason),
    in_flight: head.in_flight - 1,
    finished: head.finished + 1,
    unsegmented_bytes: head.unsegmented_bytes + bytes,
    stored_bytes: head.stored_bytes + bytes,
    books: { ...head.books, charged: head.books.charged + chargedBy(also) },
    row_current: false,
  });
  appendEvent(store, "rollout.finished", {
    rollout_id: id,
    example_id: example_id ?? group_index,
    outcome,
    reason,
    reward,
    turns,
    stop_condition,
  } satisfies RolloutFinished);
}

function countOutcome(head: RunHead, outcome: Outcome, reason: string | null): Partial<RunHead> {
  if (outcome === "scored") return { scored: head.scored + 1 };
  const name = reason ?? "platform";
  return { [outcome]: { ...head[outcome], [name]: (head[outcome][name] ?? 0) + 1 } };
}

function endOf(report: RolloutReport): { outcome: Outcome; reason: string } | null {
  if (report.cancelled !== null) return { outcome: "cancelled", reason: report.cancelled };
  if (report.failure !== null) return { outcome: "failed", reason: report.failure };
  return report.digest === null ? { outcome: "failed", reason: "platform" } : null;
}

function columnsOf(report: RolloutReport): Partial<RolloutEntry> {
  return {
    example_id: report.example_id,
    task_key: report.task_key,
    task_text: report.task_text ?? null,
    member: report.member ?? null,
    digest: report.digest,
    said: report.said ?? null,
    bytes: report.bytes,
    stop_condition: report.stop_condition,
    is_truncated: report.is_truncated ? 1 : 0,
    turns: report.turns,
    calls: report.calls,
    prompt_tokens: report.usage.prompt_tokens,
    completion_tokens: report.usage.completion_tokens,
    cached_tokens: report.usage.cached_tokens ?? 0,
    unmetered: report.unmetered ?? 0,
    reused_turns: report.reused?.turns ?? 0,
    reused_tokens: report.reused?.tokens ?? 0,
    started_at: report.started_at,
    ended_at: report.ended_at,
    error: report.error === null ? null : JSON.stringify(report.error),
  };
}
