/**
 * Bounds the time of one rollout's environment code, stage by stage.
 *
 * Invariants. A hook whose promise never settles ends its own rollout and nothing else. During a rollout, a stage ends
 * at the rollout's own deadline at the latest, and at once if the rollout is cancelled. Closing may finish, each hook
 * within its own time. An endless synchronous loop cannot be stopped from inside an isolate.
 */
import { StageTimeoutError } from "../../contract/errors.ts";
import type { RunLimits } from "../../contract/eval-request.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Stage, StageLimit } from "../../core/environments/hook-state.ts";

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
  /** Shown to tools as `call.signal`: aborted means that their result is no longer needed. */
  readonly signal = { aborted: false };
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
    this.signal.aborted = true;
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

  readonly limit: StageLimit = async (stage, what, work) => {
    if (!isThenable(work)) return work;
    const promise = Promise.resolve(work);
    // Most hooks only compute: they settle before a timer would be worth making.
    if (await settlesAtOnce(promise)) return await promise;
    const time = this.#parts.times[stage];
    if (stage === "cleanup") return await this.#inTime(promise, this.#closingTime(time), what);
    return await this.#whileUnderWay(promise, time, what);
  };

  /** Many handlers that are late one after another must not outlast the alarm. */
  #closingTime(own: number): number {
    const now = this.#parts.now();
    this.#closingUntil ??= now + LIMITS.closingMs;
    return Math.min(own, Math.max(LAST_HANDLERS_MS, this.#closingUntil - now));
  }

  async #whileUnderWay<T>(promise: Promise<T>, own: number, what: string): Promise<T> {
    const left = this.#parts.deadline - this.#parts.now();
    const { promise: interrupted, reject } = Promise.withResolvers<T>();
    const cutShort = () => reject(new StageTimeoutError(`${what} was cut short`, true));
    if (this.signal.aborted) cutShort();
    this.#underWay.push(cutShort);
    const depth = this.#underWay.length;
    const both = Promise.race([promise, interrupted]);
    try {
      return await this.#inTime(both, Math.min(own, left), what, left < own);
    } finally {
      // The steps that began inside it are no longer awaited either: their timers are cleared.
      for (const inner of this.#underWay.splice(depth - 1).slice(1)) inner();
    }
  }

  async #inTime<T>(promise: Promise<T>, ms: number, what: string, whole = false): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<T>();
    let counted = this.#waited();
    const pass = () => {
      const owed = this.#waited() - counted;
      counted += owed;
      const left = this.#parts.deadline - this.#parts.now();
      if (owed > 0 && !(whole && left <= 0)) {
        timer = setTimeout(pass, whole ? Math.min(owed, left) : owed);
        return;
      }
      this.signal.aborted = true;
      this.hangUp();
      reject(new StageTimeoutError(`${what} did not finish within ${ms / 1000} s`, whole));
    };
    let timer = setTimeout(pass, ms);
    try {
      return await Promise.race([promise, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function inMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

function isThenable(work: unknown): boolean {
  return typeof work === "object" && work !== null && "then" in work;
}

/** How many microtasks a hook without I/O may take: each `await` in it takes a few. */
const PROMPT_TICKS = 200;

/** True if the promise settles, either way, without any I/O. */
export async function settlesAtOnce(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = () => {
    settled = true;
  };
  promise.then(settle, settle);
  for (let tick = 0; tick < PROMPT_TICKS && !settled; tick += 1) await null;
  return settled;
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
