/**
 * The judgements of a run: one function for each change of what its scoring groups wait for and got, in one
 * transaction.
 *
 * Invariants. A settled judgement never changes, and the outcome of a call is counted once: a message that arrives
 * twice or late changes nothing. One claim at a time works on a scoring group, and a consumer that lost its claim gets
 * that as the reply. Only this file decides which scoring group is tried again, when, and how often; `judgement.ts`
 * decides how one call changes one judgement. A scoring group without members that wait for scores waits for no judge;
 * neither does a retried group before it is complete. A judge that refuses its key ends the run, as the policy's
 * endpoint does: every other call would be refused too (refusals.ts).
 */
import type { CancelReason } from "../../../contract/errors.ts";
import type { Judgement } from "../../../contract/judgement.ts";
import { LIMITS } from "../../../contract/limits.ts";
import type { RunView } from "../../../contract/run.ts";
import { capOf } from "../../../core/costs/run-costs.ts";
import { afterEnd, type LeaseState, leaseStatusReason, type Met, NEW_LEASE } from "../../endpoint/run-lease.ts";
import { orRefusal } from "../../kit/storage-faults.ts";
import type {
  ClaimSpending,
  JudgedAsk,
  JudgedReply,
  JudgementRequest,
  JudgingScoringGroup,
  KnownResult,
  ReportedOutcome,
} from "../../messages/judge-outcome.ts";
import { latenciesOf } from "../../messages/latency.ts";
import type { Delivery, RunSpec } from "../../messages/wire.ts";
import { giveUp } from "../accounting.ts";
import { takeLate } from "../cap.ts";
import { cancelReasonOf, stopsJudging } from "../control.ts";
import { JUDGED_LOOK_MS, type JudgementEntry, type JudgingEntry } from "../judging-store.ts";
import { nameOfClaim } from "../lost-reservations.ts";
import { afterAnswer, afterForbidden, taskOf } from "../refusals.ts";
import { scoringGroupsWaiting, waitingRows, wholeScoringGroup } from "../scoring-groups.ts";
import type { RunStore } from "../store.ts";
import { reasonOf } from "../take-scores.ts";
import { closeClaim, dropScoringGroup, openClaim } from "./cap.ts";
import { afterOutcome, hasReply, isCounted, knownResult, metBy, NEW_JUDGEMENT } from "./judgement.ts";
import { noteAnswer, noteHeavy, noteSilent, PATIENCE_MS, paceOf } from "./pace.ts";

/** A scoring group sent but not taken is sent again after this time, then after twice as long: a copy is cheap. */
export const SENT_MS = 10_000;
/** Hours in all: with slow judges a scoring group may wait long in the queue. */
export const MOST_UNHEARD = 10;
/** Added to the time of a call: a call may be in flight when its claim must be renewed. */
const LEASE_SLACK_MS = 60_000;
export const MOST_LOSSES = 5;
/** A scoring group whose work failed waits this long, then twice as long each time: a store may be down for minutes. */
const AFTER_FAILURE_MS = 5000;

/** Registers scoring groups that wait for judgements, and takes back claimed ones that still wait. */
export function requestJudgements(
  store: RunStore,
  spec: RunSpec,
  requests: readonly JudgementRequest[],
  now: number,
): void {
  store.transaction(() => {
    for (const one of requests) requestOne(store, spec, one, now);
  });
}

function requestOne(store: RunStore, spec: RunSpec, request: JudgementRequest, now: number): void {
  const { unit: scoringGroup, endpoint_id, calls, not_before = now, claim, heavy, bound_micros: needs = 0 } = request;
  if (heavy === true) noteHeavy(store);
  const entry = store.judging.scoringGroup(scoringGroup);
  const members = wholeScoringGroup(store, spec, scoringGroup);
  const given = entry !== null && isClaim(entry, claim);
  if (given) closeClaim(store, entry, request.spent);
  else if (claim !== undefined) takeLate(store, nameOfClaim(scoringGroup, claim), request.spent);
  if (members.length === 0) {
    dropScoringGroup(store, scoringGroup);
  } else if (entry === null && claim === undefined) {
    store.judging.addScoringGroup({ unit: scoringGroup, endpoint_id, calls, ask_at: not_before, needs });
    for (const { seq } of members) store.setRollout(seq, { ask_at: now + JUDGED_LOOK_MS });
  } else if (given) {
    giveBack(store, spec, entry, request, now);
  }
}

function giveBack(store: RunStore, spec: RunSpec, entry: JudgingEntry, request: JudgementRequest, now: number): void {
  const {
    unit: scoringGroup,
    endpoint_id,
    calls,
    not_before = now,
    failed = false,
    silent = false,
    // If its needs were not computed to the end, the old bound stays.
    bound_micros: needs = entry.needs,
  } = request;
  store.judging.setScoringGroup(scoringGroup, {
    endpoint_id,
    calls,
    lanes: 0,
    stage: "waiting",
    ask_at: not_before,
    needs,
  });
  if (silent) noteSilent(store, entry.endpoint_id);
  if (!failed) return;
  const wait = AFTER_FAILURE_MS * 2 ** entry.losses;
  store.judging.setScoringGroup(scoringGroup, { ask_at: now + wait });
  lose(store, spec, entry, now);
}

/**
 * Claims a scoring group for a consumer; null if it must not be taken, or another consumer has it. A later delivery of
 * the same message takes the claim over: the earlier one never got the reply, or is gone.
 */
export function takeScoringGroup(
  store: RunStore,
  spec: RunSpec,
  { unit: number, by }: { readonly unit: number; readonly by: Delivery },
  now: number,
  quarantineUpTo = 0,
): JudgingScoringGroup | null {
  return store.transaction(() => {
    const entry = store.judging.scoringGroup(number);
    if (entry === null || !mayTake(entry, by) || stopsJudging(store.head())) return null;
    const [scoringGroup] = scoringGroupsWaiting(store, spec, [number], quarantineUpTo);
    if (scoringGroup === undefined) {
      dropScoringGroup(store, number);
      return null;
    }
    const { endpoint_id, calls, lanes } = entry;
    const { pace } = paceOf(store.head(), endpoint_id);
    if (pace !== undefined && by.pace === undefined) {
      // It was sent for a quick judge, but the judge is not quick any more: it goes to another queue.
      store.judging.setScoringGroup(number, { stage: "waiting", lanes: 0, ask_at: now });
      return null;
    }
    const paid = openClaim(store, spec, entry);
    if (paid === null) {
      store.judging.setScoringGroup(number, { stage: "waiting", lanes: 0, ask_at: now });
      return null;
    }
    // Greater than every earlier claim, also if the scoring group was deleted: the same number may be judged again.
    const claim = Math.max(entry.claim + 1, now);
    const taken = { taker: by.id, attempt: by.attempt, unheard: 0 };
    const ask_at = now + leaseOf(spec);
    store.judging.setScoringGroup(number, { ...taken, stage: "claimed", claim, ask_at });
    const judgements = store.judging.judgements(number);
    const failed = judgements.flatMap(({ key, verdict: judgement, calls: made, replies, next_at }) =>
      judgement === null ? [{ key, calls: made, replies, next_at }] : [],
    );
    const settled = [...judgements.flatMap(knownResult), ...inheritResults(store, spec, number)];
    const patience = by.pace === undefined ? { patience_ms: PATIENCE_MS } : {};
    const money = capOf(spec) === null ? {} : { allowance_micros: paid.allowance };
    return { spec, unit: scoringGroup, claim, endpoint_id, calls, lanes, ...patience, ...money, settled, failed };
  });
}

/** The consumer has finished with the judges and reports what was spent. */
export function endClaim(store: RunStore, { unit: scoringGroup, claim, spent }: ClaimSpending): void {
  store.transaction(() => {
    const entry = store.judging.scoringGroup(scoringGroup);
    if (entry !== null && isClaim(entry, claim)) closeClaim(store, entry, spent);
    else takeLate(store, nameOfClaim(scoringGroup, claim), spent);
  });
}

/** Stores the outcomes of some calls of a scoring group. With no `asks` it only returns the state of the group. */
export function takeResults(
  store: RunStore,
  spec: RunSpec,
  { unit: scoringGroup, claim }: Pick<JudgingEntry, "unit" | "claim">,
  asks: readonly JudgedAsk[],
  now: number,
): JudgedReply {
  return store.transaction(() => {
    const members = wholeScoringGroup(store, spec, scoringGroup);
    if (members.length === 0) return NOTHING_MORE;
    // An outcome about an earlier attempt in the same group is dropped: that attempt has ended without it.
    const ours = asks.filter(({ rollout_id: whose }) => whose === null || members.some(({ id }) => id === whose));
    const task = taskOf(members[0]?.task_key ?? null, members[0]?.group_index ?? scoringGroup);
    const entries = ours.map((ask) => takeIn(store, spec, { unit: scoringGroup, task }, ask, now));
    const pending = entries.filter(({ verdict: judgement }) => judgement === null);
    const entry = store.judging.scoringGroup(scoringGroup);
    const mine = entry !== null && isClaim(entry, claim);
    const cancelled = stopsJudging(store.head());
    if (mine && cancelled) endScoringGroup(store, spec, scoringGroup, now);
    // A check without outcomes does not prove that results arrive.
    else if (mine && asks.length > 0)
      store.judging.setScoringGroup(scoringGroup, { losses: 0, ask_at: now + leaseOf(spec) });
    return {
      settled: entries.flatMap((settled) => knownResult(settled)),
      next_at: pending.length === 0 ? null : Math.min(...pending.map(({ next_at }) => next_at)),
      go_on: mine && !cancelled,
      over: cancelled,
    };
  });
}

/**
 * `takeResults`. If the store refuses a judgement because of its content, the ask ends without a judgement, with a
 * short reason.
 */
export function takeJudgements(
  store: RunStore,
  spec: RunSpec,
  of: Pick<JudgingEntry, "unit" | "claim">,
  asks: readonly JudgedAsk[],
  now: number,
): JudgedReply {
  const taken = orRefusal(() => takeResults(store, spec, of, asks, now));
  if (!("refused" in taken)) return taken;
  const without = asks.map((ask) => ({ ...ask, outcome: withoutJudgement(ask, taken.refused) }));
  return takeResults(store, spec, of, without, now);
}

function withoutJudgement({ outcome }: JudgedAsk, why: string): ReportedOutcome {
  const error = reasonOf("its judgement", why);
  const none = { kind: "failed", retryable: false, retry_after_ms: null, replied: true } as const;
  return { ...none, error, usage: outcome.usage, recorded: outcome.recorded };
}

const NOTHING_MORE: JudgedReply = { settled: [], next_at: null, go_on: false, over: true };

/** Judgements of the attempts whose trajectories its members took over: they are not requested again. */
function inheritResults(store: RunStore, spec: RunSpec, scoringGroup: number): KnownResult[] {
  return waitingRows(store, spec, scoringGroup).flatMap(({ carries }) => {
    const before = carries === null ? null : store.bySeq(carries);
    const said = JSON.parse(before?.judgements ?? "[]") as Judgement[];
    return said.flatMap(({ key, verdict: judgement, reason }): KnownResult[] =>
      judgement === null ? [] : [[key, { value: judgement, reason }]],
    );
  });
}

function takeIn(
  store: RunStore,
  spec: RunSpec,
  { unit: scoringGroup, task }: { readonly unit: number; readonly task: string },
  { outcome, ...ask }: JudgedAsk,
  now: number,
): JudgementEntry {
  const before = store.judging.judgement(scoringGroup, ask.key) ?? { ...NEW_JUDGEMENT, ...ask, unit: scoringGroup };
  if (before.verdict !== null || isCounted(before, outcome)) return before;
  const after = afterOutcome(spec, before, outcome, now);
  store.judging.saveJudgement(after);
  meet(store, spec, ask.judge, { met: metBy(outcome, after), outcome }, now);
  noteRefusal(store, spec, ask.judge, { outcome, task });
  return after;
}

/** A judge that refuses its key ends the run at once. A judge that forbids a call may forbid only that one. */
function noteRefusal(
  store: RunStore,
  { judges }: RunSpec,
  judge: string,
  { outcome, task }: { readonly outcome: ReportedOutcome; readonly task: string },
): void {
  const head = store.head();
  const endpoint_id = judges?.[judge]?.endpoint_id;
  if (endpoint_id === undefined) return;
  if (hasReply(outcome)) {
    store.saveHead({ ...head, refusals: afterAnswer(head.refusals, endpoint_id) });
  } else if (outcome.kind === "failed" && !outcome.free) {
    const message = `the judge ${judge}: ${outcome.error}`;
    const stop = head.stop ?? { kind: "fail", code: "endpoint_unauthorized", message };
    if (outcome.unauthorized) store.saveHead({ ...head, stop, row_current: false });
    if (!outcome.forbidden) return;
    store.saveHead({ ...head, refusals: afterForbidden(head.refusals, endpoint_id, { task, said: message }) });
  }
}

function meet(
  store: RunStore,
  { judges }: RunSpec,
  judge: string,
  { met, outcome }: { readonly met: Met; readonly outcome: ReportedOutcome },
  now: number,
): void {
  const endpoint_id = judges?.[judge]?.endpoint_id;
  if (endpoint_id === undefined) return;
  if (outcome.kind === "failed" && outcome.silent) noteSilent(store, endpoint_id);
  else if (outcome.kind === "failed" || !outcome.cached) noteAnswer(store, endpoint_id, outcome.took_ms);
  const timed =
    met.turns > 0 && outcome.took_ms !== undefined ? { latencies: latenciesOf([{ latency_ms: outcome.took_ms }]) } : {};
  setJudgeLease(store, endpoint_id, afterEnd(judgeLeaseOf(store, endpoint_id), { ...met, ...timed }, now));
}

export function judgeLeaseOf(store: RunStore, endpointId: string): LeaseState {
  return store.head().judge_gates[endpointId] ?? NEW_LEASE;
}

export function setJudgeLease(store: RunStore, endpointId: string, gate: LeaseState): void {
  const head = store.head();
  store.saveHead({ ...head, judge_gates: { ...head.judge_gates, [endpointId]: gate } });
}

/** Why judgements wait for an endpoint; null if none does. */
export function judgeStatusReason(store: RunStore, spec: RunSpec, now: number): RunView["status_reason"] {
  if (spec.judges === undefined) return null;
  for (const endpoint of store.judging.endpoints()) {
    const { running, waiting } = store.judging.load(endpoint, now);
    const reason = waiting > 0 ? leaseStatusReason(judgeLeaseOf(store, endpoint), running, now) : null;
    if (reason !== null) return { ...reason, reason: `judges wait: ${reason.reason}` };
  }
  return null;
}

/**
 * Scoring groups that are silent for too long are tried again, or given up after too many tries. Those that were sent
 * but not taken keep their part of the lease and are returned, to be sent again. Those that were taken wait for a lease
 * again.
 */
export function reconcileJudging(store: RunStore, spec: RunSpec, now: number, limit: number): JudgingEntry[] {
  return store.judging.silent(now, limit).flatMap((entry) =>
    store.transaction(() => {
      const { unit: scoringGroup, stage, unheard } = entry;
      if (stage === "sent" && unheard < MOST_UNHEARD) {
        const ask_at = now + SENT_MS * 2 ** Math.max(0, unheard + 1);
        store.judging.setScoringGroup(scoringGroup, { unheard: unheard + 1, ask_at });
        return [entry];
      }
      closeClaim(store, entry, undefined);
      store.judging.setScoringGroup(scoringGroup, { stage: "waiting", lanes: 0, ask_at: now });
      if (stage === "sent") giveUpScoringGroup(store, spec, scoringGroup, unheard, now);
      else lose(store, spec, entry, now);
      return [];
    }),
  );
}

function lose(store: RunStore, spec: RunSpec, { unit: scoringGroup, losses }: JudgingEntry, now: number): void {
  if (losses < MOST_LOSSES) store.judging.setScoringGroup(scoringGroup, { losses: losses + 1 });
  else giveUpScoringGroup(store, spec, scoringGroup, MOST_LOSSES, now);
}

function giveUpScoringGroup(store: RunStore, spec: RunSpec, scoringGroup: number, tries: number, now: number) {
  const message = `judging did not finish in ${tries} attempts`;
  for (const row of waitingRows(store, spec, scoringGroup)) {
    giveUp(store, spec, row, { from: "scoring", outcome: "unscored", reason: "judge", message }, now);
  }
  dropScoringGroup(store, scoringGroup);
}

/** A cancelled run calls no judge: unclaimed scoring groups end at once, claimed ones at their next report. */
export function endCancelled(store: RunStore, spec: RunSpec, now: number, limit: number): void {
  if (!stopsJudging(store.head())) return;
  store.transaction(() => {
    for (const { unit: scoringGroup } of store.judging.unclaimed(limit))
      endScoringGroup(store, spec, scoringGroup, now);
  });
}

/** Ends scoring groups whose judges can never be paid from the cap. */
export function endUnpaid(store: RunStore, spec: RunSpec, now: number): void {
  store.transaction(() => {
    for (const { unit: scoringGroup } of store.judging.unclaimed(LIMITS.sliceRows))
      endScoringGroup(store, spec, scoringGroup, now, "budget");
  });
}

function endScoringGroup(
  store: RunStore,
  spec: RunSpec,
  scoringGroup: number,
  now: number,
  why: CancelReason = "user",
): void {
  const message = "cancelled before its judges had answered";
  for (const row of waitingRows(store, spec, scoringGroup)) {
    const reason = cancelReasonOf(store.head(), row) ?? why;
    giveUp(store, spec, row, { from: "scoring", outcome: "cancelled", reason, message }, now);
  }
  dropScoringGroup(store, scoringGroup);
}

function mayTake({ stage, taker, attempt }: JudgingEntry, by: Delivery): boolean {
  if (stage !== "claimed") return stage === "sent";
  return taker === by.id && attempt < by.attempt;
}

function isClaim({ stage, claim }: JudgingEntry, by: number | undefined): boolean {
  return stage === "claimed" && claim === by;
}

function leaseOf({ limits }: RunSpec): number {
  return limits.call_timeout_s * 1000 + LEASE_SLACK_MS;
}
