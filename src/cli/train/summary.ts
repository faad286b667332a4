/** Describes an ended training, as text and as the object of --json. Scripts depend on every name here. */

import type { RunView } from "../../contract/run.ts";
import type { TrainingView } from "../../contract/training-view.ts";
import { COMMAND } from "../../local/package-root.ts";
import {
  allCounts,
  bestText,
  countText,
  durationText,
  endedCounts,
  estimateText,
  meanIntervalText,
  namedCounts,
  signedText,
  sum,
  timeText,
} from "../terminal/format.ts";
import { capText } from "../terminal/results.ts";
import { smoothed } from "../terminal/reward-plot.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { safeLine } from "../terminal/text.ts";
import { firstStep, plotOf, rewardPoints, trainerShares } from "./picture.ts";
import type { TrainingOutcome } from "./play.ts";

export function trainSummary({ run, training, series, before, after, seconds }: TrainingOutcome) {
  const { counts } = run;
  const { samples, batches } = training;
  return {
    run_id: run.id,
    status: run.status,
    error: run.error,
    environment: `${run.environment.id}@${run.environment.version}`,
    max_reward: run.max_reward ?? null,
    before: estimateOf(before),
    after: estimateOf(after),
    steps: training.steps_trained,
    policy_version: training.published,
    initial_weights: training.initial_weights?.location ?? null,
    max_lag: training.max_lag,
    max_off_policy_steps: training.max_off_policy_steps,
    trainer_waiting_for_batch: training.trainer?.waiting_for_batch ?? null,
    trainer_not_training: training.trainer?.not_training ?? null,
    rollouts: allCounts(counts),
    batches: { shipped: batches.shipped, acked: batches.acked, voided: batches.voided },
    samples: {
      clean: samples.clean,
      realigned: samples.realigned,
      forked: samples.forked,
      untrainable: sum(samples.untrainable),
      ...(samples.filtered !== undefined && { filtered: sum(samples.filtered) }),
    },
    first_step: firstStep(series),
    reward_by_step: rewardPoints(series).map(({ step, reward }) => [step, reward]),
    seconds: Math.round(seconds * 1000) / 1000,
  };
}

function estimateOf(run: RunView | null) {
  if (run === null) return null;
  const { mean, se, n_rollouts } = run.report.reward;
  return { mean, se, n: n_rollouts };
}

const PLOT_ROWS = 14;

/** On a terminal the curve is already above it. */
export function trainingText(
  outcome: TrainingOutcome,
  { width, colour, live }: Pick<Terminal, "width" | "colour" | "live">,
): string {
  const { run, before, after } = outcome;
  const plot = live ? [] : plotOf(plotData(outcome), { columns: width, rows: PLOT_ROWS, colour });
  const evals = [before && estimateLine("before", before), after && estimateLine("after", after)].filter(
    (line) => line !== null,
  );
  const best = bestText(run);
  const bad = run.error === null ? run.status : `${run.status}: ${run.error.message}`;
  return [
    ...plot,
    ...evals.map((line, at) => (best !== "" && at === evals.length - 1 ? `${line}; ${best}` : line)),
    ...(before !== null && after !== null ? [gainLine(before, after)] : []),
    ...wentLines(outcome),
    ...(run.status === "completed" ? [] : [safeLine(bad)]),
  ].join("\n");
}

function plotData({ run, training, series, before }: TrainingOutcome) {
  return { run, training, series, before: before?.report.reward.mean ?? null };
}

function gainLine(before: RunView, after: RunView): string {
  const [from, to] = [before.report.reward.mean, after.report.reward.mean];
  if (from === null || to === null) return "gain   –";
  return `gain   ${signedText(to - from)}; task by task: ${COMMAND} compare ${after.id} ${before.id}`;
}

function wentLines({ run, training, series, seconds }: TrainingOutcome): string[] {
  const { steps_trained, published, max_lag, max_off_policy_steps, trainer } = training;
  const { counts, report } = run;
  const shares = Object.values(trainerShares(trainer));
  const last = smoothed(rewardPoints(series)).at(-1);
  const parts = [
    `${countText(steps_trained)} steps`,
    `policy v${published}`,
    ...(last === undefined ? [] : [`reward ${last.reward.toFixed(3)} at the end`]),
    `maximum lag ${max_lag}, of ${max_off_policy_steps} allowed`,
    ...(shares.length === 0 ? [] : [`trainer ${shares.join(" and ")}`]),
    `${countText(report.usage.total_tokens)} tokens`,
    durationText(seconds),
  ];
  const cap = capText(run);
  return [
    parts.join(", "),
    ...(cap === "" ? [] : [cap]),
    `rollouts: ${namedCounts(endedCounts(counts))}`,
    `run ${run.id}`,
  ];
}

/** Null if no member has settings of its own. */
function membersText(members: NonNullable<TrainingView["members"]>): string | null {
  const texts = members.map(({ name, ratio, group_size, advantage, groups_opened }) => {
    const share = ratio === null ? [] : [`ratio ${ratio}`, `${countText(groups_opened ?? 0)} groups opened`];
    return `${name}: ${[`groups of ${countText(group_size)}`, advantage.name, ...share].join(", ")}`;
  });
  return texts.length === 0 ? null : texts.join("; ");
}

/** The lines of `rollcall run show` for a training run. */
export function trainingFields(training: TrainingView): Record<string, string | null> {
  const { groups, batches, evals } = training;
  return {
    steps: `${countText(training.steps_trained)} of ${countText(training.max_steps)} trained`,
    policy: policyText(training),
    "version 0": training.initial_weights?.location ?? null,
    groups: namedCounts({
      open: groups.open,
      buffered: groups.buffered,
      shipped: groups.shipped,
      ...groups.dropped,
    }),
    members: membersText(training.members ?? []),
    batches: namedCounts({
      held: batches.held,
      ready: batches.ready,
      leased: batches.leased,
      acked: batches.acked,
      dead: batches.dead,
      void: batches.voided,
    }),
    untrainable: countsOrNothing(training.samples.untrainable),
    flagged: countsOrNothing(training.samples.flagged ?? {}),
    filtered: countsOrNothing(training.samples.filtered ?? {}),
    reference: training.reference?.model ?? null,
    trainer: trainerText(training),
    evals: evals.map(({ name, step, run_id }) => `${run_id} (${name}) at step ${step}`).join(", ") || null,
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
    `maximum lag ${training.max_lag}, of ${training.max_off_policy_steps} allowed`,
  ].join("; ");
}

function trainerText({ trainer }: TrainingView): string {
  if (trainer === null) return "none has registered";
  const { id, kind, epoch, delivery, last_seen_at } = trainer;
  return [
    `${id} (${kind}), ${delivery}, epoch ${epoch}`,
    ...(last_seen_at === null ? [] : [`last seen ${timeText(last_seen_at)}`]),
    ...Object.values(trainerShares(trainer)),
  ].join(", ");
}

/** "before 0.305 ± 0.021 (95 %: 0.264 to 0.346), 256 tasks". */
function estimateLine(when: "before" | "after", { report: { reward } }: RunView): string {
  const { ci95 } = reward;
  const range = ci95 === null ? "" : ` (95 %: ${meanIntervalText(ci95, reward.range)})`;
  return `${when.padEnd(6)} ${estimateText(reward)}${range}, ${reward.n_tasks} tasks`;
}
