/** Progress of runs: drawn in place on a terminal, a plain line at every tenth elsewhere. */
import type { RunView } from "../core/run.ts";
import { countText, estimateText, sum } from "./format.ts";
import type { Terminal } from "./terminal.ts";

const BAR_CELLS = 30;
const PLAIN_STEPS = 10;

interface Tracked {
  run: RunView;
  /** When it was first seen and how far it was, for rates: it may have been under way already. */
  readonly since: number;
  readonly doneBefore: number;
  readonly turnsBefore: number;
  step: number;
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
    const tracked = this.#track(run);
    tracked.run = run;
    if (this.#terminal.live) {
      const now = this.#now();
      this.#terminal.redraw([...this.#runs.values()].flatMap((each) => drawing(each, now)));
      return;
    }
    const step = Math.floor((doneOf(run) / Math.max(1, run.counts.planned)) * PLAIN_STEPS);
    if (step > tracked.step) this.#terminal.say(headline(tracked, this.#now()));
    tracked.step = Math.max(tracked.step, step);
  }

  #track(run: RunView): Tracked {
    const known = this.#runs.get(run.id);
    if (known !== undefined) return known;
    const fresh: Tracked = {
      run,
      since: this.#now(),
      doneBefore: doneOf(run),
      turnsBefore: run.report.turns,
      step: 0,
    };
    this.#runs.set(run.id, fresh);
    return fresh;
  }
}

function drawing(tracked: Tracked, now: number): string[] {
  const { counts } = tracked.run;
  const bars = Object.entries({
    scored: counts.scored,
    unscored: sum(counts.unscored),
    failed: sum(counts.failed),
    cancelled: sum(counts.cancelled),
    "in flight": counts.in_flight,
  });
  return [
    headline(tracked, now),
    ...bars
      .filter(([name, count]) => count > 0 || name === "scored")
      .map(([name, count]) => bar(name, count, counts.planned)),
  ];
}

function bar(name: string, count: number, planned: number): string {
  const cells = Math.round((count / Math.max(1, planned)) * BAR_CELLS);
  const drawn = "█".repeat(cells) + "░".repeat(BAR_CELLS - cells);
  return `  ${name.padEnd(9)} ${drawn} ${countText(count)}`;
}

function headline(tracked: Tracked, now: number): string {
  const { run } = tracked;
  const done = doneOf(run);
  const seconds = Math.max((now - tracked.since) / 1000, 0.001);
  const rate = (done - tracked.doneBefore) / seconds;
  const left = run.counts.planned - done;
  const parts = [
    `${countText(done)}/${countText(run.counts.planned)} rollouts`,
    `reward ${estimateText(run.report.reward)}`,
    `${countText(Math.round((run.report.turns - tracked.turnsBefore) / seconds))} turns/s`,
    `${countText(run.report.usage.total_tokens)} tokens`,
  ];
  if (left > 0 && rate > 0) parts.push(`${Math.ceil(left / rate)} s left`);
  // Why nothing moves, where it does not.
  if (run.flow !== null && run.flow.state !== "active") parts.push(run.flow.state);
  return `${run.environment.id}  ${parts.join(" · ")}`;
}

function doneOf({ counts }: RunView): number {
  return counts.scored + sum(counts.unscored) + sum(counts.failed) + sum(counts.cancelled);
}
