/**
 * One run in one line: its name, a bar of outcomes, and numbers. A narrow terminal gets fewer of them, the least
 * telling ones go first.
 */
import type { RunView } from "../../contract/run.ts";
import { countText, durationText, estimateText, sum } from "./format.ts";
import { type Paint, painter, type Style } from "./paint.ts";
import { cutTo, displayWidth, padTo } from "./text-width.ts";

/** How fast a run goes; null while nothing can be said. */
export interface Pace {
  readonly turnsPerSecond: number | null;
  readonly secondsLeft: number | null;
}

interface Line {
  readonly columns: number;
  readonly colour: boolean;
  readonly label: string;
  /** So that the bars of several runs stand below each other. */
  readonly labelWidth: number;
}

const WIDEST_BAR = 30;
const NARROWEST_BAR = 8;
const GAP = 2;

export function progressLine(run: RunView, pace: Pace, line: Line): string {
  const paint = painter(line.colour);
  const done = doneOf(run);
  const label = padTo(line.label, line.labelWidth);
  const room = line.columns - displayWidth(label) - NARROWEST_BAR - 2 * GAP;
  const text = fitting(partsOf(run, done, pace), room);
  const left = line.columns - displayWidth(label) - displayWidth(text) - 2 * GAP;
  if (left < NARROWEST_BAR) return cutTo(`${label}  ${text}`, line.columns);
  const bar = outcomeBar(run, Math.min(left, WIDEST_BAR), paint);
  return `${label}  ${bar}  ${text}`;
}

interface Part {
  readonly text: string;
  /** The highest goes first where there is no room. */
  readonly rank: number;
}

function partsOf(run: RunView, done: number, pace: Pace): Part[] {
  const { report, flow } = run;
  const parts: Part[] = [
    { rank: 0, text: `${countText(done)}/${countText(run.counts.planned)}` },
    { rank: 1, text: estimateText(report.reward) },
  ];
  const { turnsPerSecond, secondsLeft } = pace;
  if (turnsPerSecond !== null) parts.push({ rank: 4, text: `${rateText(turnsPerSecond)} turns/s` });
  parts.push({ rank: 5, text: `${countText(report.usage.total_tokens)} tokens` });
  if (secondsLeft !== null) parts.push({ rank: 3, text: `${durationText(secondsLeft)} left` });
  // Why nothing moves, where it does not.
  if (flow !== null && flow.state !== "active") parts.push({ rank: 2, text: flow.state });
  if (run.status === "failed" || run.status === "cancelled") {
    parts.push({ rank: 2, text: run.status });
  }
  return parts;
}

function rateText(rate: number): string {
  return rate < 10 ? rate.toFixed(1) : countText(Math.round(rate));
}

function fitting(parts: readonly Part[], room: number): string {
  const text = parts.map((part) => part.text).join(" · ");
  const worst = Math.max(...parts.map(({ rank }) => rank));
  if (displayWidth(text) <= room || worst === 0) return text;
  return fitting(
    parts.filter(({ rank }) => rank !== worst),
    room,
  );
}

/** Each outcome has a shape and a colour. */
const SEGMENTS: readonly (readonly [shape: string, style: Style])[] = [
  ["█", "green"],
  ["▒", "yellow"],
  ["x", "red"],
  ["-", "grey"],
  [">", "cyan"],
];
/** What is not begun yet. */
const EMPTY = "·";

/** Scored █, unscored ▒, failed x, cancelled -, in flight >. */
function outcomeBar({ counts }: RunView, cells: number, paint: Paint): string {
  const { scored, unscored, failed, cancelled, in_flight } = counts;
  const amounts = [scored, sum(unscored), sum(failed), sum(cancelled), in_flight];
  const drawn = shareOut(amounts, Math.max(1, counts.planned), cells);
  const segments = SEGMENTS.map(([shape, style], at) => paint(style, shape.repeat(drawn[at] ?? 0)));
  const taken = drawn.reduce((total, count) => total + count, 0);
  return segments.join("") + paint("grey", EMPTY.repeat(Math.max(0, cells - taken)));
}

/**
 * Cells for each amount, in proportion to the whole. What is there at all gets a cell, from the largest if need be: one
 * failure in ten thousand is the one to see.
 */
export function shareOut(amounts: readonly number[], whole: number, cells: number): number[] {
  let before = 0;
  const shares = amounts.map((amount) => {
    const start = before;
    before += amount;
    return Math.round((before / whole) * cells) - Math.round((start / whole) * cells);
  });
  for (const [at, amount] of amounts.entries()) {
    if (amount === 0 || shares[at] !== 0) continue;
    const largest = Math.max(...shares);
    if (largest > 1) shares.splice(shares.indexOf(largest), 1, largest - 1);
    shares.splice(at, 1, 1);
  }
  return shares;
}

export function doneOf({ counts }: RunView): number {
  return counts.scored + sum(counts.unscored) + sum(counts.failed) + sum(counts.cancelled);
}
