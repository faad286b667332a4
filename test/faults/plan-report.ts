/** The output for one plan: an object for programs, a line for people. */
import type { Account, Injected, Violation } from "./account.ts";
import { tokensOf, violationsOf } from "./check.ts";
import { LEAST_IN_FLIGHT } from "./limits.ts";

/** The most violations that are printed for a plan; one broken rule often means many. */
const MOST_PRINTED = 20;

export interface PlanReport {
  readonly seed: number;
  readonly ok: boolean;
  readonly faults: Injected & {
    readonly kills: number;
    /** Kills with at least ten rollouts in flight. */
    readonly kills_in_flight: number;
    /** The requests of the run's owner meanwhile. */
    readonly asked: readonly string[];
  };
  /** Its model replies differently each time. */
  readonly fickle: boolean;
  /** Its environment plays in an isolate of its own. */
  readonly isolated: boolean;
  readonly databases: number;
  readonly in_flight_at_kill: readonly number[];
  readonly rollouts: number;
  /** Rollouts with a result. */
  readonly answered: number;
  /** Calls that the model got, and how many of them were not the first with their key. */
  readonly calls: number;
  readonly calls_resent: number;
  readonly max_same_key: number;
  /** Calls of judges, each counted once. */
  readonly judge_calls: number;
  readonly tokens_recorded: number;
  readonly tokens_stored: number;
  readonly recovery_ms: readonly number[];
  readonly violations: readonly Violation[];
}

export function reportOf(account: Account): PlanReport {
  const { plan, told, calls, judge_calls, deaths, injected } = account;
  const violations = violationsOf(account);
  const sent = timesSent(calls);
  const total = sum(sent);
  const { recorded, stored } = tokensOf(account);
  const at_kill = deaths.map(({ in_flight }) => in_flight);
  return {
    seed: plan.seed,
    ok: violations.length === 0,
    faults: {
      kills: deaths.length,
      kills_in_flight: at_kill.filter((count) => count >= LEAST_IN_FLIGHT).length,
      asked: account.askings.map(({ does }) => does),
      ...injected,
    },
    fickle: plan.fickle,
    isolated: plan.isolated,
    databases: plan.databases,
    in_flight_at_kill: at_kill,
    rollouts: plan.num_examples * plan.rollouts_per_example,
    answered: told.results.length,
    calls: total,
    calls_resent: total - sent.length,
    max_same_key: Math.max(0, ...sent),
    judge_calls: sum(timesSent(judge_calls)),
    tokens_recorded: recorded,
    tokens_stored: stored,
    recovery_ms: deaths.flatMap(({ recovery_ms }) => recovery_ms ?? []),
    violations,
  };
}

function timesSent(calls: Account["calls"]): number[] {
  return [...calls.values()].map(({ requests }) => requests.length);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

export function planLine(report: PlanReport, seconds: number): string {
  const { seed, ok, faults, in_flight_at_kill, rollouts, calls, calls_resent } = report;
  const { kills, dropped, duplicated, delayed, queues, store_failures, model_faults } = faults;
  const met = Object.keys(queues).length;
  const asked = faults.asked.length === 0 ? [] : [`asked to ${faults.asked.join(", ")}`];
  const killed = kills === 0 ? "" : ` (in flight ${in_flight_at_kill.join(", ")})`;
  const judged = report.judge_calls === 0 ? "" : `, ${report.judge_calls} of judges`;
  const line = [
    `seed ${seed}: ${ok ? "ok" : "FAILED"}`,
    `${rollouts} rollouts`,
    `kills ${kills}${killed}`,
    `messages dropped ${dropped}, doubled ${duplicated}, late ${delayed}, in ${met} queues`,
    `store failures ${store_failures}`,
    `answers lost ${faults.replies_lost}`,
    ...(report.databases > 1 ? [`D1 databases ${report.databases}`] : []),
    ...(report.isolated ? [`isolates lost ${faults.isolates_lost}`] : []),
    `${report.fickle ? "fickle model, its " : "model "}faults ${model_faults}`,
    ...asked,
    `calls ${calls}, ${calls_resent} of them again${judged}`,
    `recovery ${report.recovery_ms.join(", ") || "–"} ms`,
    `${seconds.toFixed(1)} s`,
  ].join(" · ");
  const violations = report.violations.map(({ rule, detail }) => `  ${rule}: ${detail}`);
  const more = violations.length - MOST_PRINTED;
  const rest = more > 0 ? [`  and ${more} more (--json has them all)`] : [];
  return [line, ...violations.slice(0, MOST_PRINTED), ...rest].join("\n");
}
