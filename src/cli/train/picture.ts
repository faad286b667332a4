/**
 * Draws a training: its status, the reward by step, and its speed. Without a terminal it is one line. On a narrow
 * terminal the least important numbers are dropped first.
 */
import type { RunView } from "../../contract/run.ts";
import type { StepMetrics, TrainingView } from "../../contract/training-view.ts";
import { bestText, countText, durationText } from "../terminal/format.ts";
import { type PlotSize, type RewardPoint, rewardPlot, smoothed } from "../terminal/reward-plot.ts";
import { painter, type Terminal } from "../terminal/terminal.ts";
import { cutTo, displayWidth, safeLine } from "../terminal/text.ts";

export interface TrainingProgress {
  readonly run: RunView;
  readonly training: TrainingView;
  /** Every step so far, in order. */
  readonly series: readonly StepMetrics[];
}

/** The speed; null if it is unknown. */
export interface TrainingPace {
  readonly seconds: number;
  readonly rolloutsPerSecond: number | null;
  readonly tokensPerSecond: number | null;
}

export interface TrainingPicture {
  readonly run: RunView;
  readonly training: TrainingView;
  readonly series: readonly StepMetrics[];
  readonly pace: TrainingPace;
  /** The mean reward before training; null where it was not measured. */
  readonly before: number | null;
}

const TALLEST_PLOT = 16;
/** The heading and the numbers around the plot. */
const OTHER_ROWS = 3;

export function trainingPicture(picture: TrainingPicture, size: PlotSize): string[] {
  const { columns, colour } = size;
  const paint = painter(colour);
  const plotRows = Math.min(TALLEST_PLOT, size.rows - OTHER_ROWS);
  const heading = paint("bold", cutTo(headingOf(picture), columns));
  const numbers = numberLines(picture, columns);
  return [heading, ...plotOf(picture, { ...size, rows: plotRows }), ...numbers].slice(0, size.rows);
}

/** The curve alone. */
export function plotOf(
  { run, training, series, before }: Pick<TrainingPicture, "run" | "training" | "series" | "before">,
  size: PlotSize,
): string[] {
  const points = rewardPoints(series);
  const best = run.max_reward === undefined ? {} : { best: run.max_reward };
  return rewardPlot({ points, lastStep: training.max_steps, level: before, ...best }, size);
}

/** One line, for output without a terminal. */
export function trainingLine(picture: TrainingPicture): string {
  return [headingOf(picture), ...partsOf(picture).map(({ text }) => text)].join(" · ");
}

function headingOf({ run, training, pace }: TrainingPicture): string {
  const { max_steps, steps_trained } = training;
  const of = `${run.environment.id}  step ${steps_trained}/${max_steps}`;
  return `${of} · ${durationText(pace.seconds)}`;
}

interface Part {
  readonly text: string;
  /** Without enough space, the part with the highest rank is dropped first. */
  readonly rank: number;
}

function partsOf({ run, training, series, pace }: TrainingPicture): Part[] {
  const points = rewardPoints(series);
  const [last, mean] = [points.at(-1), smoothed(points).at(-1)];
  const lag = lagOf(series);
  const { policy_version, trainer } = training;
  const { waiting, not_training } = trainerShares(trainer);
  const { rolloutsPerSecond, tokensPerSecond } = pace;
  const best = bestText(run);
  const of = best === "" ? "" : ` (${best})`;
  const parts: (Part | null)[] = [
    mean ? { rank: 0, text: `reward ${mean.reward.toFixed(3)}${of}` } : null,
    last ? { rank: 6, text: `this batch ${last.reward.toFixed(3)}` } : null,
    waitingPart(run),
    { rank: 1, text: `policy v${policy_version}` },
    lag === null ? null : { rank: 2, text: `lag ${lag.latest.toFixed(1)} (most ${lag.most})` },
    partOf(4, tokensPerSecond, (rate) => `${rateText(rate)} tokens/s`),
    partOf(5, rolloutsPerSecond, (rate) => `${rateText(rate)} rollouts/s`),
    waiting === undefined ? null : { rank: 3, text: `trainer ${waiting}` },
    not_training === undefined ? null : { rank: 7, text: not_training },
    ...evalParts(series),
  ];
  return parts.filter((part) => part !== null);
}

/** The latest value of each of the run's evals. */
function evalParts(series: readonly StepMetrics[]): Part[] {
  const latest = new Map<string, number>();
  for (const { values } of series) {
    for (const [name, value] of Object.entries(values)) {
      const [, evaluation] = /^eval\/(.+)\/reward$/.exec(name) ?? [];
      if (evaluation !== undefined && value !== null) latest.set(evaluation, value);
    }
  }
  return [...latest].map(([name, value]) => ({ rank: 8, text: `eval ${safeLine(name)} ${value.toFixed(3)}` }));
}

/** Why the run does not progress, if it does not. */
function waitingPart({ status_reason }: RunView): Part | null {
  if (status_reason === null || status_reason.state === "active") return null;
  return {
    rank: 0,
    text: status_reason.reason === null ? status_reason.state : `${status_reason.state}: ${status_reason.reason}`,
  };
}

function partOf(rank: number, value: number | null, text: (value: number) => string): Part | null {
  return value === null ? null : { rank, text: text(value) };
}

function rateText(rate: number): string {
  return rate < 10 ? rate.toFixed(1) : countText(Math.round(rate));
}

/** At most two lines; what does not fit is left out. */
function numberLines(picture: TrainingPicture, columns: number): string[] {
  let parts = partsOf(picture);
  for (;;) {
    const lines = fillLines(parts, columns);
    const worst = Math.max(...parts.map(({ rank }) => rank));
    if (lines.length <= 2 || worst <= 0) return lines.slice(0, 2).map((line) => cutTo(line, columns));
    parts = parts.filter(({ rank }) => rank !== worst);
  }
}

function fillLines(parts: readonly Part[], columns: number): string[] {
  const lines: string[] = [];
  for (const { text } of parts) {
    const longer = lines.length === 0 ? text : `${lines.at(-1)} · ${text}`;
    if (lines.length === 0 || displayWidth(longer) > columns) lines.push(text);
    else lines.splice(-1, 1, longer);
  }
  return lines;
}

/** The mean over all rollouts: groups with equal rewards train nothing, but count here too. */
const REWARD = "train/agg/all/reward/mean";
const MEAN_LAG = "off_policy/mean";
const MOST_LAG = "off_policy/max";
const RATIO_ERROR = "trainer/ratio_max_abs_error";
const KL = "trainer/kl";

export interface Lag {
  /** The mean of the latest batch. */
  readonly latest: number;
  /** The largest of any batch so far. */
  readonly most: number;
}

/** The mean reward of the rollouts that each step collected. */
export function rewardPoints(series: readonly StepMetrics[]): RewardPoint[] {
  return series.flatMap(({ step, values }) => {
    const reward = values[REWARD];
    return typeof reward === "number" ? [{ step, reward }] : [];
  });
}

/**
 * In versions; null if no batch has been shipped. Both values cover the same steps. The run's own `max_lag` is read at
 * another moment, when the latest batch may have been missing.
 */
export function lagOf(series: readonly StepMetrics[]): Lag | null {
  const numbers = (name: string) =>
    series.map(({ values }) => values[name]).filter((value) => typeof value === "number");
  const latest = numbers(MEAN_LAG).at(-1);
  return latest === undefined ? null : { latest, most: Math.max(latest, ...numbers(MOST_LAG)) };
}

/**
 * Before its first update the trainer holds the weights that sampled. A ratio other than 1, or a kl other than 0, means
 * that samples were changed in transit.
 */
export function firstStep(series: readonly StepMetrics[]) {
  const values = series.find(({ step }) => step === 1)?.values ?? {};
  return { ratio_max_abs_error: values[RATIO_ERROR] ?? null, kl: values[KL] ?? null };
}

/**
 * The share of its time that the trainer waited for batches, and the share that it did not train; only the known ones.
 */
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

const PLAIN_LINES = 10;
/** Rates are measured over this time: in one second, one batch makes too much difference. */
const RATE_OVER_MS = 5000;

interface Sample {
  readonly at: number;
  readonly rollouts: number;
  readonly tokens: number;
}

/**
 * Shows the progress of a training: a curve redrawn in place on a terminal; elsewhere a plain line at every tenth of
 * its steps.
 */
export class TrainingDisplay {
  readonly #terminal: Terminal;
  readonly #now: () => number;
  readonly #before: number | null;
  readonly #since: number;
  #samples: Sample[] = [];
  #lines = 0;

  /** `now` in milliseconds, on any clock; `before`: the mean reward to compare with. */
  constructor(terminal: Terminal, now: () => number, before: number | null) {
    this.#terminal = terminal;
    this.#now = now;
    this.#before = before;
    this.#since = now();
  }

  show({ run, training, series }: TrainingProgress): void {
    const pace = this.#pace(run, this.#now());
    const picture = { run, training, series, pace, before: this.#before };
    this.#terminal.redraw((size) => trainingPicture(picture, size));
    if (this.#terminal.live) return;
    const line = Math.floor((training.steps_trained / training.max_steps) * PLAIN_LINES);
    if (line > this.#lines) this.#terminal.log(trainingLine(picture));
    this.#lines = Math.max(this.#lines, line);
  }

  /** Keeps the last drawing. */
  end(): void {
    this.#terminal.settle();
  }

  #pace({ counts, report }: RunView, now: number): TrainingPace {
    const sample = { at: now, rollouts: counts.scored, tokens: report.usage.total_tokens };
    const [first = sample] = this.#samples;
    const later = this.#samples.filter(({ at }) => now - at <= RATE_OVER_MS);
    this.#samples = [...(later.length === 0 ? this.#samples.slice(-1) : later), sample];
    const seconds = (now - first.at) / 1000;
    const rate = (count: number) => (seconds > 0 ? count / seconds : null);
    return {
      seconds: (now - this.#since) / 1000,
      rolloutsPerSecond: rate(sample.rollouts - first.rollouts),
      tokensPerSecond: rate(sample.tokens - first.tokens),
    };
  }
}
