/**
 * What must hold after a plan, whatever went wrong in it. Pure: an account in, violations out.
 *
 * A rollout may differ from its calm twin in one way alone: cut off while a tool ran that must not run twice, it ends
 * `tool_outcome_unknown`.
 */
import type { ResultRow, RunCounts } from "../../src/core/run.ts";
import type { Account, Death, Violation } from "./account.ts";
import type { Asked, AskedCall } from "./fault-model.ts";
import { CALL_TIMEOUT_MS, LEAST_IN_FLIGHT, LIMITS_OF } from "./limits.ts";

type Rule = (account: Account) => string[];

const RULES: Readonly<Record<string, Rule>> = {
  ended: ({ told: { run } }) => (run.finished_at === null ? [`the run is ${run.status}`] : []),
  accounting: ({ told }) => lawBreaks(told.run.counts),
  audit: auditHolds,
  rollouts: everyRolloutOnce,
  content: sameAsCalm,
  window: ({ most_open, most_judging, plan: { max_concurrent } }) =>
    [most_open, most_judging]
      .filter((most) => most > max_concurrent)
      .map((most) => `${most} calls at once of ${max_concurrent}`),
  sampled_again: (account) => allCalls(account).flatMap(([key, call]) => again(key, call, account)),
  turn_order: ({ calls, judge_calls }) => [...turnsInOrder(calls), ...turnsInOrder(judge_calls)],
  prompt_changed: (account) =>
    allCalls(account).flatMap(([key, { changed }]) => (changed ? [key] : [])),
  tokens: sameTokens,
  verdicts: oneVerdictEach,
  judge_tokens: sameJudgeTokens,
  tools: toolsRunRight,
  recovery: (account) => account.deaths.flatMap((death) => slowRecovery(death, account)),
};

export function violationsOf(account: Account): Violation[] {
  return Object.entries(RULES).flatMap(([rule, check]) =>
    check(account).map((detail) => ({ rule, detail })),
  );
}

function lawBreaks(counts: RunCounts): string[] {
  const { planned, pending, dispatched, in_flight, scored, unscored, failed, cancelled } = counts;
  const ended = [unscored, failed, cancelled].flatMap((by) => Object.values(by));
  const sum = ended.reduce((total, count) => total + count, in_flight + scored);
  return planned === pending + dispatched && dispatched === sum ? [] : [JSON.stringify(counts)];
}

/** Counters, rows, D1 and R2 agree, and D1 has caught up. */
function auditHolds({ told: { audit, results } }: Account): string[] {
  const { rows } = audit.sources.d1;
  return [
    ...audit.violations.map(({ rule, detail }) => `${rule}: ${detail}`),
    ...(rows === results.length ? [] : [`D1 has ${rows} of ${results.length} rollouts`]),
  ];
}

function everyRolloutOnce({ plan, told: { results }, calls }: Account): string[] {
  const { num_examples, rollouts_per_example } = plan;
  const places = new Set(results.map(placeOf));
  const ids = new Set(results.map(({ rollout_id }) => rollout_id));
  const planned = num_examples * rollouts_per_example;
  const strangers = [...new Set([...calls.values()].map(({ rollout }) => rollout))].filter(
    (rollout) => !ids.has(rollout),
  );
  return [
    ...(results.length === planned && places.size === planned && ids.size === planned
      ? []
      : [`${results.length} results, ${places.size} places, ${ids.size} ids of ${planned}`]),
    ...strangers.map((rollout) => `${rollout} asked the model and has no result`),
  ];
}

function sameAsCalm({ calm, told, deaths }: Account): string[] {
  const expected = new Map(calm.results.map((row) => [placeOf(row), row]));
  return told.results.flatMap((row) => {
    const twin = expected.get(placeOf(row));
    if (twin === undefined || contentOf(row) === contentOf(twin)) return [];
    if (row.reason === "tool_outcome_unknown" && deaths.length > 0) return [];
    return [`${row.rollout_id}: ${contentOf(row)} is not ${contentOf(twin)}`.slice(0, 2000)];
  });
}

/** A call is sent again for a reason only: it failed, its deadline passed, or its sender was killed. */
function again(key: string, { requests }: AskedCall, { deaths }: Account): string[] {
  return requests.slice(1).flatMap((request, index) => {
    const before = requests[index];
    return before === undefined || mayBeAsked(before, request, deaths)
      ? []
      : [`${key} was sent again after ${request.at - before.at} ms for no reason`];
  });
}

/** A call's time counts from its departure; on a busy machine the model sees it later. */
const ARRIVES_WITHIN_MS = 250;

/** After a fault, after its sender hung up or was killed, after its deadline. */
function mayBeAsked(before: Asked, { at }: Asked, deaths: readonly Death[]): boolean {
  if (before.ended === "fault" || before.ended === "open") return true;
  const gaveUp = at - before.at >= CALL_TIMEOUT_MS - ARRIVES_WITHIN_MS;
  return gaveUp || diedBetween(before.at, at, deaths);
}

function allCalls({ calls, judge_calls }: Account) {
  return [...calls, ...judge_calls];
}

/** Once a later turn was asked for, the one before it is stored, and stays so. */
function turnsInOrder(calls: Account["calls"]): string[] {
  const asked = [...calls.values()].flatMap(({ rollout, turn, requests }) =>
    requests.map(({ at }) => ({ rollout, turn, at })),
  );
  const latest = new Map<string, number>();
  return asked
    .sort((a, b) => a.at - b.at || a.turn - b.turn)
    .flatMap(({ rollout, turn }) => {
      const known = latest.get(rollout) ?? 0;
      latest.set(rollout, Math.max(known, turn));
      return turn < known ? [`${rollout} asked for turn ${turn} after turn ${known}`] : [];
    });
}

/** The run's sum, the sum over stored turns, and what the model said of each call once: one number. */
function sameTokens(account: Account): string[] {
  const { recorded, stored, reported } = tokensOf(account);
  return recorded === stored && stored === reported
    ? []
    : [`recorded ${recorded}, stored with turns ${stored}, reported by the model ${reported}`];
}

export function tokensOf({ told, calls }: Pick<Account, "told" | "calls">) {
  return {
    recorded: told.run.report.usage.total_tokens,
    stored: told.tokens_stored,
    reported: tokensAnswered(calls),
  };
}

/** What the model said of each call it answered, once. */
function tokensAnswered(calls: Account["calls"]): number {
  const answered = [...calls.values()].filter(({ requests }) =>
    requests.some(({ ended }) => ended === "answered"),
  );
  return answered.reduce((sum, { usage }) => sum + (usage?.total_tokens ?? 0), 0);
}

/** Whatever the judge was asked has one verdict, on one rollout. */
function oneVerdictEach({ told: { judgements }, judge_calls }: Account): string[] {
  const asked = new Set([...judge_calls.values()].map(({ rollout }) => rollout));
  const given = judgements.map(({ key }) => key);
  const missing = [...asked].filter((key) => !given.includes(key));
  const twice = given.filter((key, at) => given.indexOf(key) < at);
  const none = judgements.flatMap(({ key, verdict, error }) =>
    verdict === null ? [`${key} has none: ${error}`] : [],
  );
  return [
    ...missing.map((key) => `${key} was asked and has no verdict`),
    ...twice.map((key) => `${key} has more than one verdict`),
    ...none,
  ];
}

/** The run's sum, the sum over verdicts, and what the judge said of each call once: one number. */
function sameJudgeTokens({ told, judge_calls }: Account): string[] {
  const recorded = told.run.report.usage.judge?.total_tokens ?? 0;
  const stored = told.judgements.reduce((sum, { usage }) => sum + usage.total_tokens, 0);
  const reported = tokensAnswered(judge_calls);
  return recorded === stored && stored === reported
    ? []
    : [`recorded ${recorded}, stored with verdicts ${stored}, reported by the judge ${reported}`];
}

function toolsRunRight({ tool_runs, deaths }: Account): string[] {
  const runs = Map.groupBy(tool_runs, ({ tool, key }) => `${tool} ${key}`);
  return [...runs].flatMap(([name, times]) =>
    times.slice(1).flatMap(({ tool, at }, index) => {
      if (tool === "book") return [`${name} ran ${times.length} times`];
      const died = diedBetween(times[index]?.at ?? 0, at, deaths);
      return died ? [] : [`${name} ran again without a kill`];
    }),
  );
}

/** Without D1 nobody knows an endpoint's address: from its return on, if it was away. */
function slowRecovery(death: Death, { plan, outages }: Account): string[] {
  const { victim, in_flight, ready_at, recovery_ms, before } = death;
  const died = `after the death of ${victim} with ${in_flight} in flight`;
  if (recovery_ms === null) return in_flight < LEAST_IN_FLIGHT ? [] : [`no call ${died}`];
  const called = ready_at + recovery_ms;
  const meanwhile = outages.filter(({ from, to }) => from < called && to > before);
  const possible = Math.max(ready_at, ...meanwhile.map(({ to }) => Math.min(to, called)));
  return called - possible <= LIMITS_OF[plan.driver].recovery_ms
    ? []
    : [`${recovery_ms} ms from the boot ${died}`];
}

function diedBetween(from: number, to: number, deaths: readonly Death[]): boolean {
  return deaths.some(({ after, before }) => from <= before && to >= after);
}

function placeOf({ group, slot, attempt }: ResultRow): string {
  return `${group}/${slot}/${attempt}`;
}

/** All of a row but its id and its times, and what its judges cost: calls that were lost are in it. */
function contentOf(result: ResultRow): string {
  const { rollout_id: _id, timing: _timing, judge_usage: _cost, error, ...row } = result;
  return JSON.stringify({ ...row, error: error === null ? null : [error.error, error.message] });
}
