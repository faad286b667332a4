/**
 * A training as it is drawn: where it stands, the reward by step, and how fast it goes. Elsewhere than on a terminal it
 * is one line. A narrow terminal gets fewer numbers, the least telling ones go first.
 */
import type { RunView } from "../../contract/run.ts";
import type { StepMetrics, TrainingView } from "../../contract/training-view.ts";
import { countText, durationText } from "../terminal/format.ts";
import { painter } from "../terminal/paint.ts";
import { type PlotSize, rewardPlot, smoothed } from "../terminal/reward-plot.ts";
import { cutTo, displayWidth } from "../terminal/text-width.ts";
import { trainerShares } from "./fields.ts";
import { lagOf, rewardPoints } from "./series.ts";

/** How fast it goes; null while nothing can be said. */
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
/** Heading and numbers around the plot. */
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
  { training, series, before }: Pick<TrainingPicture, "training" | "series" | "before">,
  size: PlotSize,
): string[] {
  const points = rewardPoints(series);
  return rewardPlot({ points, lastStep: training.max_steps, level: before }, size);
}

/** One line, without a terminal. */
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
  /** The highest goes first where there is no room. */
  readonly rank: number;
}

function partsOf({ run, training, series, pace }: TrainingPicture): Part[] {
  const points = rewardPoints(series);
  const [last, mean] = [points.at(-1), smoothed(points).at(-1)];
  const lag = lagOf(series);
  const { policy_version, trainer } = training;
  const { waiting, not_training } = trainerShares(trainer);
  const { rolloutsPerSecond, tokensPerSecond } = pace;
  const parts: (Part | null)[] = [
    mean ? { rank: 0, text: `reward ${mean.reward.toFixed(3)}` } : null,
    last ? { rank: 6, text: `this batch ${last.reward.toFixed(3)}` } : null,
    waitingPart(run),
    { rank: 1, text: `policy v${policy_version}` },
    lag === null ? null : { rank: 2, text: `lag ${lag.latest.toFixed(1)} (most ${lag.most})` },
    partOf(4, tokensPerSecond, (rate) => `${rateText(rate)} tokens/s`),
    partOf(5, rolloutsPerSecond, (rate) => `${rateText(rate)} rollouts/s`),
    waiting === undefined ? null : { rank: 3, text: `trainer ${waiting}` },
    not_training === undefined ? null : { rank: 7, text: not_training },
  ];
  return parts.filter((part) => part !== null);
}

/** Why nothing moves, where it does not. */
function waitingPart({ flow }: RunView): Part | null {
  if (flow === null || flow.state === "active") return null;
  return { rank: 0, text: flow.reason === null ? flow.state : `${flow.state}: ${flow.reason}` };
}

function partOf(rank: number, value: number | null, text: (value: number) => string): Part | null {
  return value === null ? null : { rank, text: text(value) };
}

function rateText(rate: number): string {
  return rate < 10 ? rate.toFixed(1) : countText(Math.round(rate));
}

/** On two lines at most; what does not fit there is left out. */
function numberLines(picture: TrainingPicture, columns: number): string[] {
  let parts = partsOf(picture);
  for (;;) {
    const lines = filled(parts, columns);
    const worst = Math.max(...parts.map(({ rank }) => rank));
    if (lines.length <= 2 || worst <= 0) return lines.slice(0, 2).map((line) => cutTo(line, columns));
    parts = parts.filter(({ rank }) => rank !== worst);
  }
}

function filled(parts: readonly Part[], columns: number): string[] {
  const lines: string[] = [];
  for (const { text } of parts) {
    const longer = lines.length === 0 ? text : `${lines.at(-1)} · ${text}`;
    if (lines.length === 0 || displayWidth(longer) > columns) lines.push(text);
    else lines.splice(-1, 1, longer);
  }
  return lines;
}
