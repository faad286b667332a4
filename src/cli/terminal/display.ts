/** Progress of runs: a line each, drawn in place on a terminal; elsewhere a plain line at every tenth. */
import type { RunView } from "../../contract/run.ts";
import { hasEnded } from "../follow.ts";
import { countText, durationText, estimateText } from "./format.ts";
import { doneOf, type Pace, progressLine } from "./progress-line.ts";
import type { Drawing, Terminal } from "./terminal.ts";
import { cutTo, displayWidth } from "./text-width.ts";

const PLAIN_STEPS = 10;
const LONGEST_LABEL = 24;
/** Letters of a run's id that tell it from another of the same environment. */
const ID_LETTERS = 6;

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
    const known = this.#runs.get(run.id);
    // An ended run changes no more, and its last line may stand already.
    if (known !== undefined && hasEnded(known.run)) return;
    const tracked = known ?? this.#track(run);
    tracked.run = run;
    if (this.#terminal.live) {
      this.#terminal.redraw(this.#drawing(this.#now()));
      if ([...this.#runs.values()].every((each) => hasEnded(each.run))) this.#terminal.settle();
      return;
    }
    const step = Math.floor((doneOf(run) / Math.max(1, run.counts.planned)) * PLAIN_STEPS);
    if (step > tracked.step) this.#terminal.say(plainLine(tracked, this.#now()));
    tracked.step = Math.max(tracked.step, step);
  }

  #track(run: RunView): Tracked {
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

  /** The paces are those of now, however often it is drawn again. */
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

/** The environment's name, and a piece of the run's id where two runs share it. */
function labelsOf(runs: readonly RunView[]): string[] {
  return runs.map((run) => {
    const { id } = run.environment;
    const shared = runs.filter((other) => other.environment.id === id).length > 1;
    return shared ? `${id} ${run.id.slice(-ID_LETTERS)}` : id;
  });
}

function paceOf({ run, since, doneBefore, turnsBefore }: Tracked, now: number): Pace {
  const seconds = (now - since) / 1000;
  // Of the first look at a run nothing follows.
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
  if (run.flow !== null && run.flow.state !== "active") parts.push(run.flow.state);
  return `${run.environment.id}  ${parts.join(" · ")}`;
}
