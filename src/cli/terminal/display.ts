/**
 * Shows the progress of runs: one line per run, redrawn in place on a terminal; elsewhere a plain line at every tenth.
 */
import type { RunView } from "../../contract/run.ts";
import { hasEnded } from "../follow.ts";
import { countText, durationText, endedCounts, estimateText, sum } from "./format.ts";
import { type Drawing, type Paint, painter, type Style, type Terminal } from "./terminal.ts";
import { cutTo, displayWidth, padTo } from "./text.ts";

/** The speed of a run; null if it is unknown. */
export interface Pace {
  readonly turnsPerSecond: number | null;
  readonly secondsLeft: number | null;
}

interface Line {
  readonly columns: number;
  readonly colour: boolean;
  readonly label: string;
  /** Aligns the bars of several runs. */
  readonly labelWidth: number;
}

const WIDEST_BAR = 30;

const NARROWEST_BAR = 8;

const GAP = 2;

interface Part {
  readonly text: string;
  /** Without enough space, the part with the highest rank is dropped first. */
  readonly rank: number;
}

/** Each outcome has a shape and a colour. */
const SEGMENTS: readonly (readonly [shape: string, style: Style])[] = [
  ["█", "green"],
  ["▒", "yellow"],
  ["x", "red"],
  ["-", "grey"],
  [">", "cyan"],
];

/** Rollouts that have not started. */
const EMPTY = "·";

const PLAIN_STEPS = 10;
const LONGEST_LABEL = 24;
/** How many letters of a run's id are shown, to tell runs of the same environment apart. */
const ID_LETTERS = 6;

interface Tracked {
  run: RunView;
  /** When it was first seen, and its progress then, for rates: it may already have been in progress. */
  readonly since: number;
  readonly doneBefore: number;
  readonly turnsBefore: number;
  step: number;
  /** The `status_reason.state` that was printed last. */
  statusReason: string;
}

export class Display {
  readonly #terminal: Terminal;
  readonly #now: () => number;
  readonly #runs = new Map<string, Tracked>();

  /** `now` in milliseconds, on any clock. */
  constructor(terminal: Terminal, now: () => number) {
    this.#terminal = terminal;
    this.#now = now;
  }

  show(run: RunView): void {
    const known = this.#runs.get(run.id);
    // An ended run does not change any more, and its last line may already be printed.
    if (known !== undefined && hasEnded(known.run)) return;
    const tracked = known ?? this.#track(run);
    tracked.run = run;
    if (this.#terminal.live) {
      this.#terminal.redraw(this.#drawing(this.#now()));
      if ([...this.#runs.values()].every((each) => hasEnded(each.run))) this.#terminal.settle();
      return;
    }
    this.#printStatusReason(tracked);
    const step = Math.floor((doneOf(run) / Math.max(1, run.counts.planned)) * PLAIN_STEPS);
    if (step > tracked.step) this.#terminal.log(plainLine(tracked, this.#now()));
    tracked.step = Math.max(tracked.step, step);
  }

  /** Prints why the run does not progress, on its own line, once per change. */
  #printStatusReason(tracked: Tracked): void {
    const { environment, status_reason } = tracked.run;
    const state = status_reason?.state ?? "active";
    if (state === tracked.statusReason) return;
    tracked.statusReason = state;
    if (status_reason !== null && state !== "active") {
      this.#terminal.log(
        `${environment.id}  ${state}${status_reason.reason === null ? "" : `: ${status_reason.reason}`}`,
      );
    }
  }

  #track(run: RunView): Tracked {
    const fresh: Tracked = {
      run,
      since: this.#now(),
      doneBefore: doneOf(run),
      turnsBefore: run.report.turns,
      step: 0,
      statusReason: "active",
    };
    this.#runs.set(run.id, fresh);
    return fresh;
  }

  /** Keeps the paces of `now`, even if it is drawn again later. */
  #drawing(now: number): Drawing {
    const all = [...this.#runs.values()];
    const labels = labelsOf(all.map(({ run }) => run));
    const rows = all.map((tracked, at) => ({
      run: tracked.run,
      pace: paceOf(tracked, now),
      label: labels[at] ?? "",
    }));
    return ({ columns, rows: room, colour }) => {
      const longest = Math.max(...labels.map(displayWidth));
      const labelWidth = Math.min(longest, LONGEST_LABEL, Math.max(1, Math.floor(columns / 3)));
      const fits = rows.length <= room ? rows.length : Math.max(0, room - 1);
      const lines = rows.slice(0, fits).map(({ run, pace, label }) => {
        const line = { columns, colour, label: cutTo(label, labelWidth), labelWidth };
        return progressLine(run, pace, line);
      });
      if (fits === rows.length) return lines;
      return [...lines, cutTo(`and ${rows.length - fits} more runs`, columns)];
    };
  }
}

/** The environment's name, with a part of the run's id if two runs share it. */
function labelsOf(runs: readonly RunView[]): string[] {
  return runs.map((run) => {
    const { id } = run.environment;
    const shared = runs.filter((other) => other.environment.id === id).length > 1;
    return shared ? `${id} ${run.id.slice(-ID_LETTERS)}` : id;
  });
}

function paceOf({ run, since, doneBefore, turnsBefore }: Tracked, now: number): Pace {
  const seconds = (now - since) / 1000;
  // The first look at a run gives no rate.
  if (seconds <= 0) return { turnsPerSecond: null, secondsLeft: null };
  const done = doneOf(run);
  const left = run.counts.planned - done;
  const rate = (done - doneBefore) / seconds;
  return {
    turnsPerSecond: (run.report.turns - turnsBefore) / seconds,
    secondsLeft: left > 0 && rate > 0 && !hasEnded(run) ? left / rate : null,
  };
}

function plainLine(tracked: Tracked, now: number): string {
  const { run } = tracked;
  const { turnsPerSecond, secondsLeft } = paceOf(tracked, now);
  const parts = [
    `${countText(doneOf(run))}/${countText(run.counts.planned)} rollouts`,
    `reward ${estimateText(run.report.reward)}`,
    ...(turnsPerSecond === null ? [] : [`${countText(Math.round(turnsPerSecond))} turns/s`]),
    `${countText(run.report.usage.total_tokens)} tokens`,
  ];
  if (secondsLeft !== null) parts.push(`${durationText(secondsLeft)} left`);
  if (run.status_reason !== null && run.status_reason.state !== "active") parts.push(run.status_reason.state);
  return `${run.environment.id}  ${parts.join(" · ")}`;
}

/**
 * One run in one line: its name, a bar of outcomes, and numbers. On a narrow terminal the least important numbers are
 * dropped first.
 */
export function progressLine(run: RunView, pace: Pace, line: Line): string {
  const paint = painter(line.colour);
  const done = doneOf(run);
  const label = padTo(line.label, line.labelWidth);
  const room = line.columns - displayWidth(label) - NARROWEST_BAR - 2 * GAP;
  const text = fitText(partsOf(run, done, pace), room);
  const left = line.columns - displayWidth(label) - displayWidth(text) - 2 * GAP;
  if (left < NARROWEST_BAR) return cutTo(`${label}  ${text}`, line.columns);
  const bar = outcomeBar(run, Math.min(left, WIDEST_BAR), paint);
  return `${label}  ${bar}  ${text}`;
}

function partsOf(run: RunView, done: number, pace: Pace): Part[] {
  const { report, status_reason } = run;
  const parts: Part[] = [
    { rank: 0, text: `${countText(done)}/${countText(run.counts.planned)}` },
    { rank: 1, text: estimateText(report.reward) },
  ];
  const { turnsPerSecond, secondsLeft } = pace;
  if (turnsPerSecond !== null) parts.push({ rank: 4, text: `${rateText(turnsPerSecond)} turns/s` });
  parts.push({ rank: 5, text: `${countText(report.usage.total_tokens)} tokens` });
  if (secondsLeft !== null) parts.push({ rank: 3, text: `${durationText(secondsLeft)} left` });
  // Why the run does not progress, if it does not.
  if (status_reason !== null && status_reason.state !== "active") parts.push({ rank: 2, text: status_reason.state });
  if (run.status === "failed" || run.status === "cancelled") {
    parts.push({ rank: 2, text: run.status });
  }
  return parts;
}

function rateText(rate: number): string {
  return rate < 10 ? rate.toFixed(1) : countText(Math.round(rate));
}

function fitText(parts: readonly Part[], room: number): string {
  const text = parts.map((part) => part.text).join(" · ");
  const worst = Math.max(...parts.map(({ rank }) => rank));
  if (displayWidth(text) <= room || worst === 0) return text;
  return fitText(
    parts.filter(({ rank }) => rank !== worst),
    room,
  );
}

/** Scored █, unscored ▒, failed x, cancelled -, in flight >. */
function outcomeBar({ counts }: RunView, cells: number, paint: Paint): string {
  const { scored, unscored, failed, cancelled } = endedCounts(counts);
  const amounts = [scored, unscored, failed, cancelled, counts.in_flight];
  const drawn = shareOut(amounts, Math.max(1, counts.planned), cells);
  const segments = SEGMENTS.map(([shape, style], at) => paint(style, shape.repeat(drawn[at] ?? 0)));
  const taken = drawn.reduce((total, count) => total + count, 0);
  return segments.join("") + paint("grey", EMPTY.repeat(Math.max(0, cells - taken)));
}

/**
 * Cells for each amount, in proportion to the whole. Every amount above zero gets a cell, taken from the largest if
 * necessary: one failure in ten thousand must be visible.
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
  return sum(endedCounts(counts));
}
