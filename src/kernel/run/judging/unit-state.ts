/**
 * The verdicts of a run: every change of what its units wait for and what they got, one function each, in one transaction.
 *
 * Invariants. A verdict that is settled never changes, and what came of a call is counted once: what arrives twice or late
 * changes nothing. One claimant at a time asks for a unit, and who lost the claim is told so. Which unit is asked for
 * again, when, and how often stands here and nowhere else; what one call makes of one verdict in `verdict.ts`. A unit
 * without members that wait for scores waits for no judge, nor does a group that is retried before it is whole. A judge
 * that refuses its key ends the run, as the policy's endpoint does: every other ask would be refused alike (refusals.ts).
 */
import type { CancelReason } from "../../../contract/errors.ts";
import type { Judgement } from "../../../contract/judgement.ts";
import { LIMITS } from "../../../contract/limits.ts";
import type { RunView } from "../../../contract/run.ts";
import { capOf } from "../../../core/costs/run-costs.ts";
import { afterEnd, type LeaseState, leaseFlow, type Met, NEW_LEASE } from "../../endpoint/run-lease.ts";
import { orRefusal } from "../../kit/storage-faults.ts";
import type {
  ClaimSpending,
  JudgedAsk,
  JudgedReply,
  JudgementRequest,
  JudgingUnit,
  KnownResult,
  ToldOutcome,
} from "../../messages/judge-outcome.ts";
import { latenciesOf } from "../../messages/latency.ts";
import type { Delivery, RunSpec } from "../../messages/wire.ts";
import { giveUp } from "../accounting.ts";
import { takeLate } from "../cap.ts";
import { cancelReasonOf, stopsJudging } from "../control.ts";
import { JUDGED_LOOK_MS, type JudgingEntry, type VerdictEntry } from "../judging-store.ts";
import { nameOfClaim } from "../lost-holds.ts";
import { afterAnswer, afterForbidden, taskOf } from "../refusals.ts";
import type { RunStore } from "../store.ts";
import { reasonOf } from "../take-scores.ts";
import { unitsWaiting, waitingRows, wholeUnit } from "../units.ts";
import { closeClaim, dropUnit, openClaim } from "./cap.ts";
import { noteAnswer, noteHeavy, noteSilent, PATIENCE_MS, paceOf } from "./pace.ts";
import { afterOutcome, hasReply, isCounted, knownResult, metBy, NEW_VERDICT } from "./verdict.ts";

/** A unit that was sent and that nobody took is sent again after this, then after twice as long each time: a copy costs little. */
export const SENT_MS = 10_000;
/** Hours in all: behind slow judges a unit may wait long for its turn in the queue. */
export const MOST_UNHEARD = 10;
/** A call in flight when its claimant is to have been heard of, and a little. */
const LEASE_SLACK_MS = 60_000;
export const MOST_LOSSES = 5;
/** A unit that something broke waits so long, then twice as long each time: a store may be away for minutes. */
const AFTER_FAILURE_MS = 5000;

/** Units wait for judgements, or somebody gives one back that still does. */
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
  const { unit, endpoint_id, calls, not_before = now, claim, heavy, bound_micros: needs = 0 } = request;
  if (heavy === true) noteHeavy(store);
  const entry = store.judging.unit(unit);
  const members = wholeUnit(store, spec, unit);
  const given = entry !== null && isClaim(entry, claim);
  if (given) closeClaim(store, entry, request.spent);
  else if (claim !== undefined) takeLate(store, nameOfClaim(unit, claim), request.spent);
  if (members.length === 0) {
    dropUnit(store, unit);
  } else if (entry === null && claim === undefined) {
    store.judging.addUnit({ unit, endpoint_id, calls, ask_at: not_before, needs });
    for (const { seq } of members) store.setRollout(seq, { ask_at: now + JUDGED_LOOK_MS });
  } else if (given) {
    giveBack(store, spec, entry, request, now);
  }
}

function giveBack(store: RunStore, spec: RunSpec, entry: JudgingEntry, request: JudgementRequest, now: number): void {
  const { unit, endpoint_id, calls, not_before = now, failed = false, heavy = false, silent = false } = request;
  // One that failed, or took too much work, was not looked at to its end: it needs what it needed.
  const { bound_micros: needs = 0 } = failed || heavy ? { bound_micros: entry.needs } : request;
  store.judging.setUnit(unit, { endpoint_id, calls, lanes: 0, stage: "waiting", ask_at: not_before, needs });
  if (silent) noteSilent(store, entry.endpoint_id);
  if (!failed) return;
  const wait = AFTER_FAILURE_MS * 2 ** entry.losses;
  store.judging.setUnit(unit, { ask_at: now + wait });
  lose(store, spec, entry, now);
}

/**
 * For whoever asks its judges from now on; null when it is not to be taken, or somebody has it. A later try of the message
 * that took it takes it over: the earlier one never heard that it has it, or is gone.
 */
export function takeUnit(
  store: RunStore,
  spec: RunSpec,
  { unit: number, by }: { readonly unit: number; readonly by: Delivery },
  now: number,
  suspectUpTo = 0,
): JudgingUnit | null {
  return store.transaction(() => {
    const entry = store.judging.unit(number);
    if (entry === null || !mayTake(entry, by) || stopsJudging(store.head())) return null;
    const [unit] = unitsWaiting(store, spec, [number], suspectUpTo);
    if (unit === undefined) {
      dropUnit(store, number);
      return null;
    }
    const { endpoint_id, calls, lanes } = entry;
    const { pace } = paceOf(store.head(), endpoint_id);
    if (pace !== undefined && by.pace === undefined) {
      // It was sent for a judge that answers soon, which is not so any more: it goes to another queue.
      store.judging.setUnit(number, { stage: "waiting", lanes: 0, ask_at: now });
      return null;
    }
    const paid = openClaim(store, spec, entry);
    if (paid === null) {
      store.judging.setUnit(number, { stage: "waiting", lanes: 0, ask_at: now });
      return null;
    }
    // Never one that was given before, whatever became of the unit since: the same number may be judged again.
    const claim = Math.max(entry.claim + 1, now);
    const taken = { taker: by.id, attempt: by.attempt, unheard: 0 };
    const ask_at = now + leaseOf(spec);
    store.judging.setUnit(number, { ...taken, stage: "claimed", claim, ask_at });
    const verdicts = store.judging.verdicts(number);
    const failed = verdicts.flatMap(({ key, verdict, calls: made, replies, next_at }) =>
      verdict === null ? [{ key, calls: made, replies, next_at }] : [],
    );
    const settled = [...verdicts.flatMap(knownResult), ...inheritResults(store, spec, number)];
    const patience = by.pace === undefined ? { patience_ms: PATIENCE_MS } : {};
    const money = capOf(spec) === null ? {} : { allowance_micros: paid.allowance };
    return { spec, unit, claim, endpoint_id, calls, lanes, ...patience, ...money, settled, failed };
  });
}

/** Whoever asks its judges is done with them, and says what that took. */
export function endClaim(store: RunStore, { unit, claim, spent }: ClaimSpending): void {
  store.transaction(() => {
    const entry = store.judging.unit(unit);
    if (entry !== null && isClaim(entry, claim)) closeClaim(store, entry, spent);
    else takeLate(store, nameOfClaim(unit, claim), spent);
  });
}

/** Takes in what came of asking for some of a unit's judgements. With no asks it only says how the unit stands. */
export function takeResults(
  store: RunStore,
  spec: RunSpec,
  { unit, claim }: Pick<JudgingEntry, "unit" | "claim">,
  asks: readonly JudgedAsk[],
  now: number,
): JudgedReply {
  return store.transaction(() => {
    const members = wholeUnit(store, spec, unit);
    if (members.length === 0) return NOTHING_MORE;
    // An attempt before these, in the same group, has ended without it.
    const ours = asks.filter(({ rollout_id: whose }) => whose === null || members.some(({ id }) => id === whose));
    const task = taskOf(members[0]?.task_key ?? null, members[0]?.group_index ?? unit);
    const entries = ours.map((ask) => takeIn(store, spec, { unit, task }, ask, now));
    const pending = entries.filter(({ verdict }) => verdict === null);
    const entry = store.judging.unit(unit);
    const mine = entry !== null && isClaim(entry, claim);
    const cancelled = stopsJudging(store.head());
    if (mine && cancelled) endUnit(store, spec, unit, now);
    // Whoever only looks has not shown that anything comes back.
    else if (mine && asks.length > 0) store.judging.setUnit(unit, { losses: 0, ask_at: now + leaseOf(spec) });
    return {
      settled: entries.flatMap((settled) => knownResult(settled)),
      next_at: pending.length === 0 ? null : Math.min(...pending.map(({ next_at }) => next_at)),
      go_on: mine && !cancelled,
      over: cancelled,
    };
  });
}

/** `takeResults`, where the store may refuse a verdict for what it is: its ask ends without, with a short reason. */
export function takeVerdicts(
  store: RunStore,
  spec: RunSpec,
  of: Pick<JudgingEntry, "unit" | "claim">,
  asks: readonly JudgedAsk[],
  now: number,
): JudgedReply {
  const taken = orRefusal(() => takeResults(store, spec, of, asks, now));
  if (!("refused" in taken)) return taken;
  const without = asks.map((ask) => ({ ...ask, outcome: withoutVerdict(ask, taken.refused) }));
  return takeResults(store, spec, of, without, now);
}

function withoutVerdict({ outcome }: JudgedAsk, why: string): ToldOutcome {
  const error = reasonOf("its verdict", why);
  const none = { kind: "failed", retryable: false, retry_after_ms: null, replied: true } as const;
  return { ...none, error, usage: outcome.usage, recorded: outcome.recorded };
}

const NOTHING_MORE: JudgedReply = { settled: [], next_at: null, go_on: false, over: true };

/** What was said of the attempts whose trajectories its members took over: asked once, whoever is scored by it. */
function inheritResults(store: RunStore, spec: RunSpec, unit: number): KnownResult[] {
  return waitingRows(store, spec, unit).flatMap(({ carries }) => {
    const before = carries === null ? null : store.bySeq(carries);
    const said = JSON.parse(before?.judgements ?? "[]") as Judgement[];
    return said.flatMap(({ key, verdict, reason }): KnownResult[] =>
      verdict === null ? [] : [[key, { value: verdict, reason }]],
    );
  });
}

function takeIn(
  store: RunStore,
  spec: RunSpec,
  { unit, task }: { readonly unit: number; readonly task: string },
  { outcome, ...ask }: JudgedAsk,
  now: number,
): VerdictEntry {
  const before = store.judging.verdict(unit, ask.key) ?? { ...NEW_VERDICT, ...ask, unit };
  if (before.verdict !== null || isCounted(before, outcome)) return before;
  const after = afterOutcome(spec, before, outcome, now);
  store.judging.saveVerdict(after);
  meet(store, spec, ask.judge, { met: metBy(outcome, after), outcome }, now);
  noteRefusal(store, spec, ask.judge, { outcome, task });
  return after;
}

/** A judge that refuses its key ends the run at once; one that forbids a call may forbid that one alone. */
function noteRefusal(
  store: RunStore,
  { judges }: RunSpec,
  judge: string,
  { outcome, task }: { readonly outcome: ToldOutcome; readonly task: string },
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
  { met, outcome }: { readonly met: Met; readonly outcome: ToldOutcome },
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

/** Why verdicts wait for an endpoint; null when none does. */
export function judgeFlow(store: RunStore, spec: RunSpec, now: number): RunView["flow"] {
  if (spec.judges === undefined) return null;
  for (const endpoint of store.judging.endpoints()) {
    const { running, waiting } = store.judging.load(endpoint, now);
    const flow = waiting > 0 ? leaseFlow(judgeLeaseOf(store, endpoint), running, now) : null;
    if (flow !== null) return { ...flow, reason: `judges wait: ${flow.reason}` };
  }
  return null;
}

/**
 * Units of which nothing was heard in time are tried once more, or after so many times given up. Those that nobody took keep
 * their permits and are to be sent again: answered. Those that somebody took wait for permits anew.
 */
export function sweepJudging(store: RunStore, spec: RunSpec, now: number, limit: number): JudgingEntry[] {
  return store.judging.silent(now, limit).flatMap((entry) =>
    store.transaction(() => {
      const { unit, stage, unheard } = entry;
      if (stage === "sent" && unheard < MOST_UNHEARD) {
        const ask_at = now + SENT_MS * 2 ** Math.max(0, unheard + 1);
        store.judging.setUnit(unit, { unheard: unheard + 1, ask_at });
        return [entry];
      }
      closeClaim(store, entry, undefined);
      store.judging.setUnit(unit, { stage: "waiting", lanes: 0, ask_at: now });
      if (stage === "sent") giveUpUnit(store, spec, unit, unheard, now);
      else lose(store, spec, entry, now);
      return [];
    }),
  );
}

function lose(store: RunStore, spec: RunSpec, { unit, losses }: JudgingEntry, now: number): void {
  if (losses < MOST_LOSSES) store.judging.setUnit(unit, { losses: losses + 1 });
  else giveUpUnit(store, spec, unit, MOST_LOSSES, now);
}

function giveUpUnit(store: RunStore, spec: RunSpec, unit: number, tries: number, now: number) {
  const message = `judging did not finish in ${tries} attempts`;
  for (const row of waitingRows(store, spec, unit)) {
    giveUp(store, spec, row, { from: "scoring", outcome: "unscored", reason: "judge", message }, now);
  }
  dropUnit(store, unit);
}

/** A cancelled run asks no judge any more: units nobody asks for just now end at once, the others when they are heard of. */
export function endCancelled(store: RunStore, spec: RunSpec, now: number, limit: number): void {
  if (!stopsJudging(store.head())) return;
  store.transaction(() => {
    for (const { unit } of store.judging.unclaimed(limit)) endUnit(store, spec, unit, now);
  });
}

/** Units for whose judges nothing is left, and nothing will be. */
export function endUnpaid(store: RunStore, spec: RunSpec, now: number): void {
  store.transaction(() => {
    for (const { unit } of store.judging.unclaimed(LIMITS.sliceRows)) endUnit(store, spec, unit, now, "budget");
  });
}

function endUnit(store: RunStore, spec: RunSpec, unit: number, now: number, why: CancelReason = "user"): void {
  const message = "cancelled before its judges had answered";
  for (const row of waitingRows(store, spec, unit)) {
    const reason = cancelReasonOf(store.head(), row) ?? why;
    giveUp(store, spec, row, { from: "scoring", outcome: "cancelled", reason, message }, now);
  }
  dropUnit(store, unit);
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
