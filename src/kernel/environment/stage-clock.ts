/**
 * Bounds the time of one rollout's environment code, stage by stage.
 *
 * Invariants. A hook whose promise never settles ends its own rollout and nothing else. During a rollout, a stage ends
 * at the rollout's own deadline at the latest, and at once if the rollout is cancelled. Closing may finish, each hook
 * within its own time. An endless synchronous loop cannot be stopped from inside an isolate.
 */
import type { RunLimits } from "../../contract/eval-request.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Stage } from "../../core/environments/hook-state.ts";
import type { StepTimer, TimeUp } from "../../core/step-timer.ts";

/** Milliseconds. */
export type StageTimes = Readonly<Record<Stage, number>>;

export function stageTimes(limits: RunLimits): StageTimes {
  const { setup_timeout_s, turn_timeout_s, tool_timeout_s, cleanup_timeout_s } = limits;
  return {
    setup: inMs(setup_timeout_s) ?? LIMITS.setupMs,
    turn: inMs(turn_timeout_s) ?? LIMITS.turnMs,
    tool: inMs(tool_timeout_s) ?? LIMITS.toolMs,
    cleanup: inMs(cleanup_timeout_s) ?? LIMITS.cleanupMs,
  };
}

/** The longest step of a rollout: a call or a hook. Closing has its own limit. */
export function longestStepMs(limits: RunLimits): number {
  const { setup, turn, tool } = stageTimes(limits);
  return Math.max(limits.call_timeout_s * 1000, setup, turn, tool);
}

/** The time of a whole rollout; infinity if no limit is set. `timeoutMs`: the limit of its environment. */
export function rolloutTimeMs({ rollout_timeout_s }: RunLimits, timeoutMs: number | null): number {
  return Math.min(inMs(rollout_timeout_s) ?? Number.POSITIVE_INFINITY, timeoutMs ?? Number.POSITIVE_INFINITY);
}

const LAST_HANDLERS_MS = 1000;

export interface StageClockParts {
  readonly times: StageTimes;
  /** Epoch milliseconds at which the rollout's own time is over; infinity if there is no limit. */
  readonly deadline: number;
  readonly now: () => number;
}

export class StageClock {
  /** No step is waited for any longer. */
  #aborted = false;
  /** Aborted when a stage is cut off: the calls of its hook are no longer needed. */
  #calls = new AbortController();
  readonly #parts: StageClockParts;
  #closingUntil: number | null = null;
  /** Calls of hooks that wait for a connection: how many, since when, and how long calls waited before. */
  #waiting = 0;
  #waitingSince = 0;
  #waitedMs = 0;
  /** The steps that are being awaited, the outermost first: a tool is inside the reply that it belongs to. */
  readonly #underWay: (() => void)[] = [];

  constructor(parts: StageClockParts) {
    this.#parts = parts;
  }

  /** The longest time of any stage. */
  get longestMs(): number {
    return Math.max(...Object.values(this.#parts.times));
  }

  /** Milliseconds that the effect may take: a reply includes its tools, closing includes all handlers. */
  longestOf(effect: "setup" | "reply" | "close" | "done"): number {
    const { setup, turn, tool } = this.#parts.times;
    if (effect === "setup") return setup;
    return effect === "reply" ? Math.max(turn, tool) : LIMITS.closingMs;
  }

  /** The signal for the calls that a hook makes now. */
  get callSignal(): AbortSignal {
    return this.#calls.signal;
  }

  /** Aborts the calls in progress, but not later ones. */
  hangUp(): void {
    this.#calls.abort();
    this.#calls = new AbortController();
  }

  /** Must be called when the rollout is no longer played: hooks that still run can make no further calls. */
  close(): void {
    this.#calls.abort();
  }

  /** Stops waiting for the steps in progress. */
  interrupt(): void {
    this.#aborted = true;
    // Closing may finish.
    if (this.#closingUntil === null) this.hangUp();
    for (const cutShort of this.#underWay) cutShort();
  }

  /** Time in which a hook's call waits for a connection does not count for any stage. */
  async untimed<T>(wait: Promise<T>): Promise<T> {
    if (this.#waiting === 0) this.#waitingSince = this.#parts.now();
    this.#waiting += 1;
    try {
      return await wait;
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#waitedMs += this.#parts.now() - this.#waitingSince;
    }
  }

  /** The same for milliseconds that a call has waited elsewhere. */
  excuse(ms: number): void {
    this.#waitedMs += ms;
  }

  /** Milliseconds in all. */
  #waited(): number {
    return this.#waitedMs + (this.#waiting === 0 ? 0 : this.#parts.now() - this.#waitingSince);
  }

  /** Begins the time of a step. */
  readonly timer = (stage: Stage, what: string): StepTimer => {
    const own = this.#parts.times[stage];
    const { promise: over, resolve: end } = Promise.withResolvers<TimeUp>();
    if (stage === "cleanup") return { over, stop: this.#begin(end, this.#closingTime(own), what) };
    const left = this.#parts.deadline - this.#parts.now();
    const cutShort = () => end({ message: `${what} was cut short`, whole: true });
    if (this.#aborted) cutShort();
    this.#underWay.push(cutShort);
    const depth = this.#underWay.length;
    const clear = this.#begin(end, Math.min(own, left), what, left < own);
    const stop = () => {
      clear();
      // The steps that began inside it are no longer awaited either: their timers are cleared.
      for (const inner of this.#underWay.splice(depth - 1).slice(1)) inner();
    };
    return { over, stop };
  };

  /** Many handlers that are late one after another must not outlast the alarm. */
  #closingTime(own: number): number {
    const now = this.#parts.now();
    this.#closingUntil ??= now + LIMITS.closingMs;
    return Math.min(own, Math.max(LAST_HANDLERS_MS, this.#closingUntil - now));
  }

  /** Returns a function that clears the timer. */
  #begin(end: (up: TimeUp) => void, ms: number, what: string, whole = false): () => void {
    let counted = this.#waited();
    const pass = () => {
      const owed = this.#waited() - counted;
      counted += owed;
      const left = this.#parts.deadline - this.#parts.now();
      if (owed > 0 && !(whole && left <= 0)) {
        timer = setTimeout(pass, whole ? Math.min(owed, left) : owed);
        return;
      }
      this.#aborted = true;
      end({ message: `${what} did not finish within ${ms / 1000} s`, whole });
      this.hangUp();
    };
    let timer = setTimeout(pass, ms);
    return () => clearTimeout(timer);
  }
}

function inMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

/**
 * `process.exit` in a Worker does not end the process: it cancels the invocation without an error that could be caught.
 * A rollout whose hook calls it would wait forever, and so would its shard. Here it throws an ordinary error, and so do
 * its two other names. An environment that imports them from `process` gets these too, because its bundle replaces that
 * module by the global (local/bundle.ts).
 */

/** Must be called before any code of an environment runs. */
export function refuseExit(): void {
  process.exit = () => refuse("exit");
  process.abort = () => refuse("abort");
  Object.assign(process, { reallyExit: () => refuse("reallyExit") });
}

function refuse(name: string): never {
  throw new Error(`process.${name} was called: an environment must not end the process`);
}
