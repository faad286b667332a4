/**
 * The gates of an eval, for a build that must stop when a model got worse.
 *
 * `--fail-under` checks the mean itself. `--baseline` checks the 95 % interval of the paired difference. Alone, it
 * fails a run that is significantly worse. With `--max-drop D`, the interval must show that the run lost no more than
 * D; if the interval leaves that open, the judgement is `inconclusive`, as it is for a baseline that has not completed.
 * Only a completed run is judged. A run that broke has exit code 1. For a run with too few scores only the
 * `--min-scored` gate reports, because its means cover only the rollouts that happened to be scored.
 */
import type { RunComparison } from "../../contract/comparison.ts";
import type { GateVerdict } from "../../contract/gate.ts";
import type { RunView } from "../../contract/run.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { ApiRequestError } from "../../sdk/request-error.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { hasEnded } from "../follow.ts";
import { timeText } from "../terminal/format.ts";
import { judgeDifferences } from "./baseline-gate.ts";

export type BaselineArgument = { readonly run: string } | { readonly metadata: Readonly<Record<string, string>> };

/**
 * The run that another is compared with: named by its id, or the newest completed run of the same environment with the
 * given metadata. The output always says which run it is and why, because a baseline that is picked silently is often
 * wrong.
 */
export interface Baseline {
  readonly id: string;
  /** Why this run was chosen. */
  readonly why: string;
}

export interface GateArguments {
  readonly failUnder: number | null;
  /** The share given on the command line; the platform applies it. */
  readonly minScored: number | null;
  readonly baseline: BaselineArgument | null;
  readonly maxDrop: number | null;
  /** The name of the score that the gates check; null for the reward. */
  readonly metric: string | null;
}

export interface GateResult {
  readonly gate: "min_scored" | "fail_under" | "baseline";
  readonly verdict: GateVerdict;
  readonly message: string;
}

export interface Judgement {
  readonly gates: readonly GateResult[];
  /** Null without a baseline, or if the runs cannot be compared. */
  readonly comparison: RunComparison | null;
}

export const NOT_JUDGED: Judgement = { gates: [], comparison: null };

/** The most flipped tasks to request; more do not fit on a screen. */
const FLIPPED = 20;
/** Allows for rounding errors: a mean may miss a threshold by its last digits. */
const SLACK = 1e-9;

export async function judge(
  client: RollcallClient,
  run: RunView,
  args: GateArguments,
  baseline: Baseline | null,
): Promise<Judgement> {
  const tooFew = run.error?.code === "too_few_scored";
  if (run.status !== "completed" && !tooFew) return NOT_JUDGED;
  const gates: GateResult[] = [];
  if (args.minScored !== null) gates.push(scoredVerdict(run, args.minScored, tooFew));
  if (tooFew) return { gates, comparison: null };
  if (args.failUnder !== null) gates.push(meanVerdict(run, args.failUnder, args.metric));
  if (baseline === null) return { gates, comparison: null };
  const compared = await comparison(client, run, baseline, args.metric);
  if (typeof compared === "string") {
    const nothing = { gate: "baseline", verdict: "inconclusive", message: compared } as const;
    return { gates: [...gates, nothing], comparison: null };
  }
  return { gates: [...gates, ...judgeDifferences([compared], args.maxDrop)], comparison: compared };
}

/** The exit code of the gates; null when all are met. */
export function exitOfGates(gates: readonly GateResult[]): ExitCode | null {
  if (gates.some(({ verdict }) => verdict === "failed")) return EXIT.gate;
  // An inconclusive gate has its own exit code, so that the build decides what it means.
  return gates.some(({ verdict }) => verdict === "inconclusive") ? EXIT.inconclusive : null;
}

/** The comparison, or the reason why there is none. */
async function comparison(
  client: RollcallClient,
  run: RunView,
  baseline: Baseline,
  metric: string | null,
): Promise<RunComparison | string> {
  const query = { baseline: baseline.id, metric: metric ?? undefined, limit: FLIPPED };
  try {
    return await client.runs.compare(run.id, query);
  } catch (error) {
    if (error instanceof ApiRequestError && error.status < 500) return error.message;
    throw error;
  }
}

function scoredVerdict(run: RunView, share: number, tooFew: boolean): GateResult {
  const slots = run.num_examples * run.rollouts_per_example;
  const scored = `${run.report.reward.n_rollouts} of ${slots} rollouts are scored`;
  const message = `${scored}; the minimum share is ${share}`;
  return { gate: "min_scored", verdict: tooFew ? "failed" : "passed", message };
}

function meanVerdict({ report }: RunView, threshold: number, metric: string | null): GateResult {
  const name = metric ?? "reward";
  const estimate = metric === null ? report.reward : report.metrics[metric];
  const mean = estimate?.mean ?? null;
  if (estimate === undefined || mean === null) {
    const known = Object.keys(report.metrics).join(", ") || "none";
    const message =
      estimate === undefined
        ? `no score is called ${name}; known scores: ${known}`
        : `no rollout has a ${name}, so its mean cannot reach ${threshold}`;
    return { gate: "fail_under", verdict: "failed", message };
  }
  const under = mean + SLACK < threshold;
  const se = estimate.se === null ? "" : ` ± ${estimate.se.toFixed(3)}`;
  const message = `mean ${name} ${mean.toFixed(3)}${se} is ${under ? "" : "not "}under ${threshold}`;
  const low = metric === null ? (report.reward.ci95?.[0] ?? null) : null;
  const doubt = !under && low !== null && low < threshold;
  return {
    gate: "fail_under",
    verdict: under ? "failed" : "passed",
    message: doubt ? `${message}, but its 95 % interval extends down to ${low.toFixed(3)}` : message,
  };
}

/** The id of one run, or `k=v` pairs that the run's metadata must all have. Throws a usage error. */
export function baselineArgument(
  given: readonly string[],
  pairs: () => Record<string, string>,
): BaselineArgument | null {
  const [first, ...more] = given;
  if (first === undefined) return null;
  if (first.includes("=")) return { metadata: pairs() };
  if (more.length === 0) return { run: first };
  throw usageError(`--baseline: one run, or k=v pairs, not ${given.join(", ")}`, "baseline");
}

/**
 * `environment`: its id. `apart`: the new run, which cannot be its own baseline. Throws a usage error if no run is
 * found.
 */
export async function findBaseline(
  client: RollcallClient,
  argument: BaselineArgument,
  { environment, apart }: { readonly environment: string; readonly apart: string | null },
): Promise<Baseline> {
  if ("run" in argument) return namedBaseline(await client.runs.get(argument.run));
  const { metadata } = argument;
  const carried = Object.entries(metadata).map(([key, value]) => `${key}=${value}`);
  const found = await newestCompleted(client, { environment, metadata }, apart);
  const wanted = `completed run of ${environment} with ${carried.join(", ")}`;
  if (found === null) {
    const first = carried.map((pair) => ` --metadata ${pair}`).join("");
    throw usageError(
      `--baseline: there is no ${wanted}; create the first one without --baseline, with${first}`,
      "baseline",
    );
  }
  return { id: found.id, why: `the newest ${wanted}, of ${timeText(found.created_at)}` };
}

/** The list may be out of date for a run that has just ended, so such a run is read itself. */
async function newestCompleted(
  client: RollcallClient,
  query: { readonly environment: string; readonly metadata: Readonly<Record<string, string>> },
  apart: string | null,
): Promise<RunView | null> {
  for await (const listed of client.runs.list(query)) {
    // A forked run continues from the middle of another's rollout, so it does not play tasks from their start.
    if (listed.id === apart || listed.forked_from !== null) continue;
    const run = hasEnded(listed) ? listed : await client.runs.get(listed.id);
    if (run.status === "completed") return run;
  }
  return null;
}

function namedBaseline(run: RunView): Baseline {
  if (hasEnded(run)) return { id: run.id, why: `as named, of ${timeText(run.created_at)}` };
  throw usageError(`--baseline: ${run.id} has not ended: it is ${run.status}`, "baseline");
}
