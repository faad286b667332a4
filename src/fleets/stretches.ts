/**
 * Which weights sampled a call, told without clocks. What happens is numbered: each call as it begins and as it ends,
 * each moment from which a replica's weights may be others, and each probe. Between two such moments lies a stretch of
 * one version. Pure.
 *
 * Invariants. A call was sampled by a version only if one stretch holds both its numbers, and a probe that was begun
 * after its end found the same server with the same weights: a server that was started anew in between has others. Who
 * cannot show that is told nothing.
 */
import type { FleetUpdate } from "../contract/fleet.ts";
import type { PastCall } from "../kernel/messages/run-fleet.ts";
import type { Holds, Proof, Weights } from "./weights.ts";

export interface Stretch {
  /** Its first number: what has a greater one may lie in it. */
  readonly from: number;
  /** What has this number or a greater one does not lie in it any more; null: it goes on. */
  readonly to: number | null;
  readonly weights: Weights | "start";
  readonly proof: Proof;
  /** A probe that was begun at this number found it as it was. */
  readonly confirmed: number;
}

export const STRETCHES_KEPT = 1000;

/** A stretch begins, and another that went on ends. */
export function beginStretch(
  before: readonly Stretch[],
  { from, weights, proof }: Pick<Stretch, "from" | "weights" | "proof">,
): readonly Stretch[] {
  const begun = { from, to: null, weights, proof, confirmed: from };
  return [...endStretch(before, from), begun].slice(-STRETCHES_KEPT);
}

export function endStretch(before: readonly Stretch[], to: number): readonly Stretch[] {
  const last = before.at(-1);
  if (last === undefined || last.to !== null) return before;
  return [...before.slice(0, -1), { ...last, to }];
}

/** The one that goes on ended somewhere after the last probe that confirmed it. */
export function endAtConfirmed(before: readonly Stretch[]): readonly Stretch[] {
  const last = before.at(-1);
  return last === undefined ? before : endStretch(before, last.confirmed);
}

/** The one that goes on was never what it was taken for: none of its calls is told a version any more. */
export function voidStretch(before: readonly Stretch[]): readonly Stretch[] {
  const last = before.at(-1);
  return last === undefined || last.to !== null ? before : before.slice(0, -1);
}

/**
 * A probe that was begun at number `at` met this server. `going`: it also has the weights of the stretch that goes on. A
 * process has what it had since that was last changed: its earlier stretches are confirmed by meeting it again.
 */
export function confirm(
  before: readonly Stretch[],
  { process }: Proof,
  { at, going }: { readonly at: number; readonly going: boolean },
): readonly Stretch[] {
  return before.map((stretch) => {
    const whole = stretch.to !== null && stretch.confirmed >= stretch.to;
    if (whole || stretch.confirmed >= at || stretch.from > at) return stretch;
    const met = stretch.to === null ? going : process !== null && process === stretch.proof.process;
    return met ? { ...stretch, confirmed: at } : stretch;
  });
}

/**
 * The version that sampled a call; null: nobody can say. `unconfirmed`: a probe begun now may tell. `generation`: of the
 * run's latest order, where there is one: what it took back has the same numbers.
 */
export function versionOf(
  update: FleetUpdate,
  stretches: readonly Stretch[],
  { run_id, generation }: { readonly run_id: string; readonly generation: number | null },
  call: PastCall,
): number | null | "unconfirmed" {
  const { number, end, model } = call;
  if (end === null || end <= number) return null;
  if (update.mode === "lora_versioned") return versionNamed(update, { run_id, generation }, model);
  const held = stretches.findLast(({ from, to }) => from < number && end < (to ?? Number.POSITIVE_INFINITY));
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

/** Of an adapter's name; 0 for any other. */
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
