/**
 * The two numberings of a training run, and the conditions that depend on them. They are defined only here.
 *
 * Policy versions count from 0 (the weights before any optimiser step), steps from 1. Batch n trains version n-1 into
 * version n, so at step 1 the rollouts are sampled by version 0. `step` is the step of the batch that is being
 * collected. There are two different bounds: the *lead* is how many shipped batches the trainer has not yet turned into
 * published weights; the *staleness* of a rollout is how many versions are between the weights that sampled it and
 * those that it trains.
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
 * Whether new groups may begin and the current batch may ship. Both have the same condition: a batch ships once version
 * `step - 1 - lead` is published, so at most `lead + 1` batches are ever ahead.
 */
export function withinLead(progress: Progress, lead: number): boolean {
  return leadOf(progress) <= lead;
}

/** The oldest version whose samples may still train at `step`; if it is 0 or less, no sample is too old. */
export function minFreshVersion(step: number, maxOffPolicySteps: number): number {
  return step - 1 - maxOffPolicySteps;
}

export function isFresh(version: number, step: number, maxOffPolicySteps: number): boolean {
  return version >= minFreshVersion(step, maxOffPolicySteps);
}

/**
 * The newest version that the sampling weights can have now: the version of the last acknowledged batch, which may be
 * published at any moment, or the one after the last published version, whose acknowledgement may be on its way.
 */
export function newestPossible({
  published,
  acked_step,
}: {
  readonly published: number;
  /** The step of the last acknowledged batch, which made the version of that number. */
  readonly acked_step: number;
}): number {
  return Math.max(acked_step, published + 1);
}

/** The weights that were served from a moment on, until the next such moment. */
export interface ServedWeights {
  /** Epoch milliseconds. */
  readonly at: number;
  /** The oldest version that an engine serves. */
  readonly version: number;
  /** The newest version that any weights could have. */
  readonly newest: number;
  /** 1 while an engine may serve weights that were taken back. */
  readonly taken_back: 0 | 1;
}

/**
 * The oldest version that a call can have been answered by, from its start to its answer (epoch milliseconds); null if
 * weights were taken back meanwhile, or if it is unknown. `newest`: the newest possible version at its end. `served`:
 * in order of time.
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
  /** Versions between the weights at the start of sampling and the weights that train. */
  readonly total: number;
  /** Of these, the updates while it was sampled. */
  readonly in_flight: number;
  /** Of these, the updates while it waited for its batch. */
  readonly in_queue: number;
}

/** `sampled`: the versions at the start and at the end of a rollout. */
export function offPolicyLag(step: number, sampled: { readonly start: number; readonly end: number }): OffPolicyLag {
  const total = Math.max(0, step - 1 - sampled.start);
  const in_flight = Math.min(total, Math.max(0, sampled.end - sampled.start));
  return { total, in_flight, in_queue: total - in_flight };
}

export interface Admission {
  readonly step: number;
  readonly max_steps: number;
  /** The version that samples a group which begins now. */
  readonly version: number;
  /** The newest version that the trainer has finished writing. */
  readonly published: number;
  /** Batches that may be shipped ahead of the published version. */
  readonly lead: number;
  readonly max_off_policy_steps: number;
  /** Rollouts of one step. */
  readonly batch_rollouts: number;
  /** Rollouts waiting for a batch. */
  readonly buffered: number;
  /** Members of open groups that have not ended, whether started or not. */
  readonly running: number;
  /** Rollouts that may run at once. */
  readonly max_concurrent: number;
}

/**
 * How many rollouts may be added so that each of them can train: in a batch that may ship with the published weights,
 * in one for which it is not too old, and in one of the run's steps. Rollouts that could not train are not started.
 *
 * AReaL's `min(max_inflight - running, (M + version + 1) * B - (accepted + running))`
 * (areal/infra/staleness_manager.py) counts the accepted rollouts since the start; here that is `(step - 1) * B +
 * buffered`, the same number as long as batches are full, and also the right one after a rewind. The bound by the lead
 * is our addition.
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
 * The number of rollouts of one step. If a batch is counted in tokens, it is estimated from the rollouts `seen` so far,
 * and is one group until the first is finished.
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
