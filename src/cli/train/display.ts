/** Progress of a training: a curve drawn in place on a terminal; elsewhere a plain line at every tenth of its steps. */
import type { RunView } from "../../contract/run.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { TrainingProgress } from "./follow.ts";
import { type TrainingPace, trainingLine, trainingPicture } from "./picture.ts";

const PLAIN_LINES = 10;
/** Rates are over this long: one second alone is one batch more or less. */
const RATE_OVER_MS = 5000;

interface Sample {
  readonly at: number;
  readonly rollouts: number;
  readonly tokens: number;
}

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
    if (line > this.#lines) this.#terminal.say(trainingLine(picture));
    this.#lines = Math.max(this.#lines, line);
  }

  /** Leaves the last drawing standing. */
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
