/**
 * The two numberings of a training run, and the gates made of them: written here and nowhere else.
 *
 * Policy versions count from 0 (the weights before any optimiser step), steps from 1. Batch n trains version n-1 into
 * version n, so at step 1 the rollouts are sampled by version 0. `step` is that of the batch which is being collected.
 * Two bounds that are not one: the *lead* is how many shipped batches the trainer has not yet turned into published
 * weights; the *staleness* of a rollout is how many versions lie between the weights that sampled it and those it
 * trains.
 */
import type { BatchSize } from "../../contract/training-request.ts";

export interface Progress {
  /** The number of the batch that is being collected, from 1. */
  readonly step: number;
  /** The newest version the trainer has finished writing, from 0. */
  readonly published: number;
}

/** Batches shipped and not yet turned into published weights. */
export function leadOf({ step, published }: Progress): number {
  return step - 1 - published;
}

/**
 * Whether new groups may begin and the batch at hand may ship. One condition for both: a batch ships once version
 * `step - 1 - lead` is published, so at most `lead + 1` batches are ever ahead.
 */
export function withinLead(progress: Progress, lead: number): boolean {
  return leadOf(progress) <= lead;
}

/** The oldest version whose samples may still train at `step`; none is too old where it is 0 or less. */
export function minFreshVersion(step: number, maxOffPolicySteps: number): number {
  return step - 1 - maxOffPolicySteps;
}

export function isFresh(version: number, step: number, maxOffPolicySteps: number): boolean {
  return version >= minFreshVersion(step, maxOffPolicySteps);
}

/**
 * The newest version that weights can have which sample now: the last one whose batch is acknowledged, for that may be
 * published at any moment, or the one after the last published, whose acknowledgement may still be on its way.
 */
export function newestPossible({
  published,
  acked_step,
}: {
  readonly published: number;
  /** The last batch that is acknowledged: it made the version of its number. */
  readonly acked_step: number;
}): number {
  return Math.max(acked_step, published + 1);
}

/** Which weights there were from a moment on, until the next such moment. */
export interface ServedWeights {
  /** Epoch milliseconds. */
  readonly at: number;
  /** The oldest version that an engine serves; */
  readonly version: number;
  /** the newest one that any weights could have; */
  readonly newest: number;
  /** and 1 while an engine may serve weights that were taken back. */
  readonly taken_back: 0 | 1;
}

/**
 * The oldest version that a call can have met, from when it left to when its answer was here (epoch milliseconds); null
 * where weights were taken back meanwhile, or where nobody knows. `newest`: the newest there could be at its end.
 * `served`: in order.
 */
export function servedDuring(
  served: readonly ServedWeights[],
  { from, to }: { readonly from: number; readonly to: number },
): { readonly version: number | null; readonly newest: number | null } {
  const first = served.findLastIndex(({ at }) => at <= from);
  const met = served.slice(Math.max(0, first)).filter(({ at }) => at <= to);
  const oldest = met[0]?.version ?? 0;
  const known = first >= 0 && met.every(({ version, taken_back }) => version >= oldest && taken_back === 0);
  return { version: known ? oldest : null, newest: met.at(-1)?.newest ?? null };
}

export interface OffPolicyLag {
  /** Versions between the weights that began to sample and the weights that train. */
  readonly total: number;
  /** Of these, updates that came while it was sampled, */
  readonly in_flight: number;
  /** and updates that came while it waited for its batch. */
  readonly in_queue: number;
}

/** `sampled`: the versions at the beginning and at the end of a rollout. */
export function offPolicyLag(step: number, sampled: { readonly start: number; readonly end: number }): OffPolicyLag {
  const total = Math.max(0, step - 1 - sampled.start);
  const in_flight = Math.min(total, Math.max(0, sampled.end - sampled.start));
  return { total, in_flight, in_queue: total - in_flight };
}

export interface Admission {
  readonly step: number;
  readonly max_steps: number;
  /** That samples a group which begins now. */
  readonly version: number;
  /** The newest version that the trainer has finished writing. */
  readonly published: number;
  /** Batches that may be shipped ahead of it. */
  readonly lead: number;
  readonly max_off_policy_steps: number;
  /** Rollouts a step takes. */
  readonly batch_rollouts: number;
  /** Rollouts that wait for a batch. */
  readonly buffered: number;
  /** Members of open groups that have not ended, begun or not. */
  readonly running: number;
  /** Rollouts that may be under way at once. */
  readonly max_concurrent: number;
}

/**
 * Rollouts that may be added so that each can train: in a batch that may ship with the weights that are published, in
 * one for which it is not too old, and in one of the run's steps. Pacing: what is never begun need not be thrown away.
 *
 * AReaL's `min(max_inflight - running, (M + version + 1) * B - (accepted + running))`
 * (areal/infra/staleness_manager.py) counts what was accepted since the start; here that is `(step - 1) * B +
 * buffered`, the same number as long as batches are full, and the right one after a rewind, too. The bound by the lead
 * is ours.
 */
export function capacityOf(now: Admission): number {
  const waiting = now.buffered + now.running;
  const lastFresh = now.version + now.max_off_policy_steps + 1;
  const lastShippable = now.published + now.lead + 1;
  const lastStep = Math.min(now.max_steps, lastFresh, lastShippable);
  const wanted = (lastStep - (now.step - 1)) * now.batch_rollouts - waiting;
  return Math.max(0, Math.min(now.max_concurrent - now.running, wanted));
}

/**
 * Rollouts one step takes. Where a batch is counted in tokens: as many as there would be of those `seen` so far; one
 * group until the first is back.
 */
export function batchRollouts(
  size: BatchSize,
  seen: { readonly rollouts: number; readonly tokens: number },
  groupSize: number,
): number {
  if ("rollouts" in size) return size.rollouts;
  if (seen.tokens === 0) return groupSize;
  return Math.max(1, Math.ceil((size.tokens * seen.rollouts) / seen.tokens));
}
