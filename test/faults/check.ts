/**
 * The rules that must hold after a plan, whatever went wrong. Pure: takes an account, returns violations.
 *
 * A rollout may differ from the same rollout of the calm run in only two ways: if it was cut off while a tool ran that
 * must not run twice, it ends with `tool_outcome_unknown`; and in a cancelled run, whatever was in progress ends. A
 * fickle model has no calm run to compare with: the run is compared with the model's log instead.
 */
import type { ResultRow, RunCounts } from "../../src/contract/run.ts";
import type { Account, Asking, Death, Violation } from "./account.ts";
import { diedBetween, sentAgainForNoReason, turnsInOrder } from "./check-calls.ts";
import { eventsInOrder } from "./check-events.ts";
import { ABORTED_TOKENS, type Said } from "./fault-model.ts";
import { LEAST_IN_FLIGHT, RECOVERY_MS } from "./limits.ts";

type Rule = (account: Account) => string[];

const RULES: Readonly<Record<string, Rule>> = {
  ended: endedAsAsked,
  accounting: ({ told }) => lawBreaks(told.run.counts),
  audit: auditHolds,
  rollouts: everyRolloutOnce,
  content: sameAsCalm,
  book: asInTheBook,
  events: ({ told }) => eventsInOrder(told),
  window: ({ most_open, most_judging, plan: { max_concurrent } }) =>
    [most_open, most_judging]
      .filter((most) => most > max_concurrent)
      .map((most) => `${most} calls at once of ${max_concurrent}`),
  sampled_again: sentAgainForNoReason,
  turn_order: ({ calls, judge_calls }) => [...turnsInOrder(calls), ...turnsInOrder(judge_calls)],
  prompt_changed: ({ calls, judge_calls }) =>
    [...calls, ...judge_calls].flatMap(([key, { changed }]) => (changed ? [key] : [])),
  tokens: sameTokens,
  verdicts: oneJudgementEach,
  judge_tokens: sameJudgeTokens,
  tools: toolsRunRight,
  foreign: ({ foreign }) => foreign.map((id) => `it saw ${id}, which is another organisation's`),
  ledger: ledgerHolds,
  recovery: (account) => account.deaths.flatMap((death) => slowRecovery(death, account)),
};

export function violationsOf(account: Account): Violation[] {
  return Object.entries(RULES).flatMap(([rule, check]) => check(account).map((detail) => ({ rule, detail })));
}

/** It ends by itself, or by an earlier cancel. */
function endedAsAsked(account: Account): string[] {
  const { status, finished_at } = account.told.run;
  const ends = wasAsked(account, "cancel") ? ["completed", "cancelled"] : ["completed"];
  return finished_at !== null && ends.includes(status) ? [] : [`the run is ${status}`];
}

function wasAsked({ askings }: Account, does: Asking["does"]): boolean {
  return askings.some((asked) => asked.does === does);
}

function wasCancelled({ told }: Account): boolean {
  return told.run.status === "cancelled";
}

function lawBreaks(counts: RunCounts): string[] {
  const { planned, pending, dispatched, in_flight, scored, unscored, failed, cancelled } = counts;
  const ended = [unscored, failed, cancelled].flatMap((by) => Object.values(by));
  const sum = ended.reduce((total, count) => total + count, in_flight + scored);
  return planned === pending + dispatched && dispatched === sum ? [] : [JSON.stringify(counts)];
}

/** Counters, rows, D1 and R2 agree, and D1 is up to date. */
function auditHolds({ told: { audit } }: Account): string[] {
  return [
    ...audit.violations.map(({ rule, detail }) => `${rule}: ${detail}`),
    ...(audit.sources.d1.current ? [] : ["D1 has not caught up"]),
  ];
}

/** Rows, trajectories and the ledger agree, the ledger is complete, and no reservation is left. */
function ledgerHolds({ billed, told: { run } }: Account): string[] {
  if (billed === null) return [];
  const { paid_in, balance, reserved, unsettled, charged, differences } = billed;
  const { charged_micros } = run.cost;
  return [
    ...differences,
    ...(unsettled === 0 ? [] : [`${unsettled} ends are not in the books`]),
    ...(reserved === 0 ? [] : [`${reserved} micro-dollars are still reserved`]),
    ...(charged === charged_micros ? [] : [`the run says ${charged_micros}, its trajectories ${charged}`]),
    ...(paid_in - balance === charged ? [] : [`the balance went down by ${paid_in - balance}, for ${charged}`]),
  ];
}

/** Each slot has one attempt or, if a retry was requested, a chain of attempts of which the last counts. */
function everyRolloutOnce(account: Account): string[] {
  const { plan, told, calls } = account;
  const { results, run } = told;
  const slots = plan.num_examples * plan.rollouts_per_example;
  const places = new Set(results.map(placeOf));
  const ids = new Set(results.map(({ rollout_id }) => rollout_id));
  const planned = wasAsked(account, "retry") ? run.counts.planned : slots;
  const expected = wasCancelled(account) ? run.counts.dispatched : planned;
  const strangers = [...new Set([...calls.values()].map(({ rollout }) => rollout))].filter(
    (rollout) => !ids.has(rollout),
  );
  return [
    ...(results.length === expected && places.size === expected && ids.size === expected
      ? []
      : [`${results.length} results, ${places.size} places, ${ids.size} ids of ${expected}`]),
    ...brokenChains(results),
    ...strangers.map((rollout) => `${rollout} asked the model and has no result`),
  ];
}

function brokenChains(results: readonly ResultRow[]): string[] {
  const slots = Map.groupBy(results, ({ group, slot }) => `${group}/${slot}`);
  return [...slots].flatMap(([slot, rows]) => {
    const attempts = rows.toSorted((one, other) => one.attempt - other.attempt);
    const whole = attempts.every(({ attempt, superseded_by }, at) => {
      return attempt === at && superseded_by === (attempts[at + 1]?.rollout_id ?? null);
    });
    return whole ? [] : [`${slot} has attempts ${attempts.map(({ attempt }) => attempt)}`];
  });
}

/** The texts from shortly before their first difference on. */
function whereTheyDiffer(one: string, other: string): string {
  const at = [...one].findIndex((character, index) => character !== other[index]);
  const shown = (text: string) => text.slice(Math.max(0, at - 200), at + 800);
  return `${shown(one)} is not ${shown(other)}`;
}

function sameAsCalm(account: Account): string[] {
  const { calm, told, deaths, plan } = account;
  if (plan.fickle) return [];
  const contentOf = wasAsked(account, "retry") || wasCancelled(account) ? ownContentOf : allOf;
  const expected = new Map(calm.results.map((row) => [placeOf(row), row]));
  return told.results.flatMap((row) => {
    const secondInstance = expected.get(placeOf(row));
    if (secondInstance === undefined || contentOf(row) === contentOf(secondInstance)) return [];
    if (row.reason === "tool_outcome_unknown" && deaths.length > 0) return [];
    if (row.outcome === "cancelled" && wasCancelled(account)) return [];
    return [`${row.rollout_id}: ${whereTheyDiffer(contentOf(row), contentOf(secondInstance))}`];
  });
}

/** The stored turn equals the model's answer, token by token, and the last answer is the stored one. */
function asInTheBook(account: Account): string[] {
  const { told, calls } = account;
  const made = [...told.turns].flatMap(([key, stored]) => {
    const given = calls.get(key)?.requests ?? [];
    const known = given.some(({ said }) => said !== null && isSame(said, stored));
    return known ? [] : [`${key} is stored with what the model never gave it`];
  });
  const cancelled = told.results.filter(({ outcome }) => outcome === "cancelled");
  const stopped = new Set(cancelled.map(({ rollout_id }) => rollout_id));
  const lost = [...calls].flatMap(([key, { rollout, requests }]) => {
    const answered = requests.at(-1)?.ended === "answered";
    return answered && !told.turns.has(key) && !stopped.has(rollout) ? [`${key} was answered and is not stored`] : [];
  });
  return [...made, ...lost];
}

function isSame(one: Said, other: Said): boolean {
  return (
    one.digest === other.digest &&
    one.usage?.prompt_tokens === other.usage?.prompt_tokens &&
    one.usage?.completion_tokens === other.usage?.completion_tokens &&
    one.usage?.total_tokens === other.usage?.total_tokens
  );
}

/**
 * The run's sum, and the sum over stored turns, equals the sum of the model's answers, each call once. The run's sum
 * also includes half replies: each once, unless a kill hit it.
 */
function sameTokens(account: Account): string[] {
  const { recorded, stored, reported } = tokensOf(account);
  const halves = (recorded - stored) / ABORTED_TOKENS;
  const given = [...account.calls.values()].flatMap(({ requests }) => requests.filter(({ aborted }) => aborted)).length;
  const least = account.deaths.length > 0 || wasCancelled(account) ? 0 : given;
  const counted = Number.isInteger(halves) && halves >= least && halves <= given;
  // An answer that arrives during a cancel is not stored; if a fickle model answered a call twice, one answer is.
  const held = account.plan.fickle || wasCancelled(account) || stored === reported;
  return counted && held
    ? []
    : [
        `recorded ${recorded}, stored with turns ${stored}, reported by the model ${reported}, with ${given} half replies of ${ABORTED_TOKENS}`,
      ];
}

export function tokensOf({ told, calls }: Pick<Account, "told" | "calls">) {
  const stored = [...told.turns.values()];
  return {
    recorded: told.run.report.usage.total_tokens,
    stored: stored.reduce((sum, { usage }) => sum + (usage?.total_tokens ?? 0), 0),
    reported: tokensAnswered(calls),
  };
}

/** The tokens of the model's answers, each call once. */
function tokensAnswered(calls: Account["calls"]): number {
  const said = [...calls.values()].map(({ requests }) => requests.findLast(({ ended }) => ended === "answered"));
  return said.reduce((sum, request) => sum + (request?.said?.usage?.total_tokens ?? 0), 0);
}

/** Every call of the judge has one judgement, for one rollout; in a cancelled run at most one. */
function oneJudgementEach(account: Account): string[] {
  const { told, judge_calls } = account;
  const { judgements } = told;
  const asked = new Set([...judge_calls.values()].map(({ rollout }) => rollout));
  const given = judgements.map(({ key }) => key);
  const missing = [...asked].filter((key) => !given.includes(key));
  const twice = given.filter((key, at) => given.indexOf(key) < at);
  const none = judgements.flatMap(({ key, verdict, error }) => (verdict === null ? [`${key} has none: ${error}`] : []));
  const doubled = twice.map((key) => `${key} has more than one verdict`);
  if (wasCancelled(account)) return doubled;
  return [...missing.map((key) => `${key} was asked and has no verdict`), ...doubled, ...none];
}

/** The run's sum, the sum over judgements and the judge's own sum, each call once, are equal. */
function sameJudgeTokens(account: Account): string[] {
  const { told, judge_calls } = account;
  const recorded = told.run.report.usage.judge?.total_tokens ?? 0;
  const stored = told.judgements.reduce((sum, { usage }) => sum + usage.total_tokens, 0);
  const reported = tokensAnswered(judge_calls);
  const held = wasCancelled(account) || stored === reported;
  return recorded === stored && held
    ? []
    : [`recorded ${recorded}, stored with verdicts ${stored}, reported by the judge ${reported}`];
}

/** A lost isolate is to its rollout what a kill is. */
function toolsRunRight({ tool_runs, deaths, injected }: Account): string[] {
  const runs = Map.groupBy(tool_runs, ({ tool, key }) => `${tool} ${key}`);
  return [...runs].flatMap(([name, times]) =>
    times.slice(1).flatMap(({ tool, at }, index) => {
      if (tool === "book") return [`${name} ran ${times.length} times`];
      const died = injected.isolates_lost > 0 || diedBetween(times[index]?.at ?? 0, at, deaths);
      return died ? [] : [`${name} ran again without a kill or a lost isolate`];
    }),
  );
}

/**
 * A boot shows how fast this machine is just now: where it takes longer than the limit, so may the first call.
 * Without D1 the address of an endpoint cannot be read, so the time counts from D1's return; likewise from the end of a
 * pause.
 */
function slowRecovery(death: Death, account: Account): string[] {
  const { outages, askings } = account;
  const { victim, in_flight, ready_at, recovery_ms, before } = death;
  if (askings.some(({ does, at }) => does === "cancel" && at <= before)) return [];
  const died = `after the death of ${victim} with ${in_flight} in flight`;
  if (recovery_ms === null) return in_flight < LEAST_IN_FLIGHT ? [] : [`no call ${died}`];
  const called = ready_at + recovery_ms;
  const meanwhile = [...outages, ...pausesOf(askings)].filter(({ from, to }) => from < called && to > before);
  const possible = Math.max(ready_at, ...meanwhile.map(({ to }) => Math.min(to, called)));
  return called - possible <= Math.max(RECOVERY_MS, ready_at - before)
    ? []
    : [`${recovery_ms} ms from the boot ${died}`];
}

function pausesOf(askings: readonly Asking[]): { readonly from: number; readonly to: number }[] {
  return askings.flatMap(({ does, at: from }, index) => {
    const resumed = askings[index + 1];
    return does === "pause" && resumed?.does === "resume" ? [{ from, to: resumed.at }] : [];
  });
}

function placeOf({ group, slot, attempt }: ResultRow): string {
  return `${group}/${slot}/${attempt}`;
}

/** A row without its id, its times, and the cost of itself and its judges, which includes lost calls. */
function allOf(result: ResultRow): string {
  const {
    rollout_id: _id,
    timing: _timing,
    judge_usage: _judges,
    cost: _cost,
    lost_usage: _lost,
    token_usage: { final_input_tokens, final_output_tokens },
    error,
    ...row
  } = result;
  // The sum of all tokens is compared with the models' own log, because it includes half replies.
  const token_usage = { final_input_tokens, final_output_tokens };
  return JSON.stringify({ ...row, token_usage, error: error === null ? null : [error.error, error.message] });
}

/** Without the parts that depend on its group's other attempts. */
function ownContentOf(result: ResultRow): string {
  return allOf({ ...result, advantage: null, superseded_by: null });
}
