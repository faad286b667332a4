/** What `rollcall run show` says of a training run, by line. */
import type { TrainingView } from "../../contract/training-view.ts";
import { countText, namedCounts, timeText } from "../terminal/format.ts";

export function trainingFields(training: TrainingView): Record<string, string | null> {
  const { groups, batches, evals } = training;
  return {
    steps: `${countText(training.steps_trained)} of ${countText(training.max_steps)} trained`,
    policy: policyText(training),
    groups: namedCounts({
      open: groups.open,
      buffered: groups.buffered,
      shipped: groups.shipped,
      ...groups.dropped,
    }),
    batches: namedCounts({
      held: batches.held,
      ready: batches.ready,
      leased: batches.leased,
      acked: batches.acked,
      dead: batches.dead,
      void: batches.voided,
    }),
    untrainable: countsOrNothing(training.samples.untrainable),
    trainer: trainerText(training),
    evals: evals.map(({ step, run_id }) => `${run_id} at step ${step}`).join(", ") || null,
  };
}

function countsOrNothing(counts: Readonly<Record<string, number>>): string | null {
  return Object.keys(counts).length === 0 ? null : namedCounts(counts);
}

function policyText(training: TrainingView): string {
  const { policy_version, published, lead, target_lead } = training;
  return [
    `v${policy_version} samples, v${published} published`,
    `lead ${lead} of ${target_lead}`,
    `lag ${training.max_lag} at most, of ${training.max_off_policy_steps} allowed`,
  ].join("; ");
}

function trainerText({ trainer }: TrainingView): string {
  if (trainer === null) return "none has registered";
  const { id, kind, epoch, delivery, last_seen_at } = trainer;
  return [
    `${id} (${kind}), ${delivery}, epoch ${epoch}`,
    ...(last_seen_at === null ? [] : [`last heard of ${timeText(last_seen_at)}`]),
    ...Object.values(trainerShares(trainer)),
  ].join(", ");
}

/** What share of its time the trainer waited for batches, and in what share it did not train: those that are known. */
export function trainerShares(trainer: TrainingView["trainer"]): {
  waiting?: string;
  not_training?: string;
} {
  const { waiting_for_batch = null, not_training = null } = trainer ?? {};
  return {
    ...(waiting_for_batch !== null && {
      waiting: `waiting for batches ${percentText(waiting_for_batch)}`,
    }),
    ...(not_training !== null && { not_training: `not training ${percentText(not_training)}` }),
  };
}

function percentText(share: number): string {
  return `${Math.round(share * 100)} %`;
}
