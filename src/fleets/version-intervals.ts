/**
 * Finds which weights sampled a call, without clocks. Events are numbered: the start and the end of each call, each
 * point from which a replica's weights may differ, and each probe. Between two such points is a version interval
 * ("stretch"). Pure.
 *
 * Invariants. A version is assigned to a call only if one interval contains both numbers of the call, and a probe that
 * started after the call's end found the same server with the same weights: a server that was restarted in between has
 * others. If this cannot be shown, no version is assigned.
 */
import type { FleetUpdate } from "../contract/fleet.ts";
import type { PastCall } from "../kernel/messages/run-fleet.ts";
import type { Holds, Proof, Weights } from "./weights.ts";

export interface VersionInterval {
  /** The number at which it starts, exclusive. */
  readonly from: number;
  /** The number at which it ends, exclusive; null: it is the current interval. */
  readonly to: number | null;
  readonly weights: Weights | "start";
  readonly proof: Proof;
  /** The number of the latest probe that confirmed it. */
  readonly confirmed: number;
}

export const INTERVALS_KEPT = 1000;

/** Starts an interval and ends the current one. */
export function beginInterval(
  before: readonly VersionInterval[],
  { from, weights, proof }: Pick<VersionInterval, "from" | "weights" | "proof">,
): readonly VersionInterval[] {
  const begun = { from, to: null, weights, proof, confirmed: from };
  return [...endInterval(before, from), begun].slice(-INTERVALS_KEPT);
}

export function endInterval(before: readonly VersionInterval[], to: number): readonly VersionInterval[] {
  const last = before.at(-1);
  if (last === undefined || last.to !== null) return before;
  return [...before.slice(0, -1), { ...last, to }];
}

/** Ends the current interval at the last probe that confirmed it. */
export function endAtConfirmed(before: readonly VersionInterval[]): readonly VersionInterval[] {
  const last = before.at(-1);
  return last === undefined ? before : endInterval(before, last.confirmed);
}

/** Removes the current interval, whose weights were never certain: its calls get no version. */
export function voidInterval(before: readonly VersionInterval[]): readonly VersionInterval[] {
  const last = before.at(-1);
  return last === undefined || last.to !== null ? before : before.slice(0, -1);
}

/**
 * A probe that started at number `at` found this process. `going`: the server also has the weights of the current
 * interval. A process keeps its weights until they are changed, so it also confirms its earlier intervals.
 */
export function confirm(
  before: readonly VersionInterval[],
  { process }: Proof,
  { at, going }: { readonly at: number; readonly going: boolean },
): readonly VersionInterval[] {
  return before.map((interval) => {
    const whole = interval.to !== null && interval.confirmed >= interval.to;
    if (whole || interval.confirmed >= at || interval.from > at) return interval;
    const met = interval.to === null ? going : process !== null && process === interval.proof.process;
    return met ? { ...interval, confirmed: at } : interval;
  });
}

/**
 * The version that sampled a call; null: it cannot be known. `unconfirmed`: a probe that starts now may confirm it.
 * `generation`: of the run's latest order, or null. Versions of earlier generations have the same numbers.
 */
export function versionOf(
  update: FleetUpdate,
  intervals: readonly VersionInterval[],
  { run_id, generation }: { readonly run_id: string; readonly generation: number | null },
  call: PastCall,
): number | null | "unconfirmed" {
  const { number, end, model } = call;
  if (end === null || end <= number) return null;
  if (update.mode === "lora_versioned") return versionNamed(update, { run_id, generation }, model);
  const held = intervals.findLast(({ from, to }) => from < number && end < (to ?? Number.POSITIVE_INFINITY));
  if (held === undefined) return null;
  const version = versionIn(held.weights, { run_id, generation });
  if (version === null || end < held.confirmed || held.weights === "start") return version;
  return held.to === null || held.proof.process !== null ? "unconfirmed" : null;
}

function versionIn(
  weights: NonNullable<Holds>,
  { run_id, generation }: { readonly run_id: string; readonly generation: number | null },
): number | null {
  if (weights === "start") return 0;
  const current = generation === null || weights.generation === generation;
  return weights.run_id === run_id && current ? weights.version : null;
}

/** The version in an adapter's name; 0 for any other model name. */
function versionNamed(
  { adapter }: FleetUpdate,
  { run_id, generation }: { readonly run_id: string; readonly generation: number | null },
  model: string,
): number | null {
  const start = `${adapter}.`;
  const parts = /^([0-9a-z]+)\.g(\d+)@(\d+)$/.exec(model.startsWith(start) ? model.slice(start.length) : "");
  if (parts === null) return 0;
  const [, run, of, version] = parts;
  const own = run === run_id.replace(/^run_/, "");
  return own && (generation === null || Number(of) === generation) ? Number(version) : null;
}
