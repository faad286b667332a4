/**
 * The reference trainer as a process of its own.
 *
 * Invariants. It is told what to train over its stdin, so that no token stands where other processes see it; and when
 * that stdin ends, it stops: it never outlives whoever started it. Its stdout is a line of JSON for each event, its
 * stderr goes to `say`, and the last of it is why it failed.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";

/** One that dies at once each time is not kept alive for ever. */
const RESTARTS = 3;

/** Started with flags it does not take. */
const CALLED_WRONGLY = 2;

export interface TrainerOptions {
  /** The platform's address, without /v1. */
  readonly url: string;
  /** The policy server, up to and including /v1. */
  readonly policyUrl: string;
  readonly learningRate: number;
  /** How often each batch is trained on. */
  readonly passes: number;
  readonly loss: string;
  readonly seed: number;
  /** What it has to say that is not an event. */
  readonly say: (line: string) => void;
}

export interface TrainerTask {
  readonly run_id: string;
  readonly token: string;
  /** The directory it keeps its weights in, to go on from. */
  readonly checkpoint: string;
}

export interface TrainerExit {
  readonly code: number | null;
  /** What ended it, where that was a signal. */
  readonly signal: NodeJS.Signals | null;
  /** Its last words; "" when it had none. */
  readonly why: string;
}

export interface TrainerProcess {
  readonly pid: number | undefined;
  train(task: TrainerTask): void;
  /** Resolves when it has ended, however. Never rejects. */
  readonly exited: Promise<TrainerExit>;
  /** Asks it to finish its step and stop, and waits until it has. */
  stop(): Promise<TrainerExit>;
}

/** The trainer refuses to train on a batch more often: by then the weights are far from those that sampled it. */
export const MOST_PASSES = 16;

/** A `.js` where this file was compiled to one. */
const MAIN = join(import.meta.dirname, "./", `main${extname(import.meta.filename)}`);
/** A step takes a second or two; one that hangs must not keep the command. */
const STOPS_WITHIN_MS = 15_000;

/** It warms up at once, and waits to be told what to train. */
export function startTrainer(options: TrainerOptions): TrainerProcess {
  const child = spawn(process.execPath, [MAIN, ...argumentsOf(options)], {
    stdio: ["pipe", "ignore", "pipe"],
  });
  // Nobody reads what is written to a process that has died; `exited` says so.
  child.stdin?.on("error", (error) => options.say(`trainer: ${error.message}`));
  const exited = exitOf(child, options.say);
  return {
    pid: child.pid,
    exited,
    train: (task) => {
      child.stdin?.write(`${JSON.stringify(task)}\n`);
    },
    stop: () => {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), STOPS_WITHIN_MS);
      return exited.finally(() => clearTimeout(timer));
    },
  };
}

/** "was killed by SIGKILL", "ended with exit code 1: why". */
export function howItEnded({ code, signal, why }: TrainerExit): string {
  if (signal !== null) return `was killed by ${signal}`;
  const how = code === null ? "could not be started" : `ended with exit code ${code}`;
  return why === "" ? how : `${how}: ${why}`;
}

function argumentsOf({ url, policyUrl, learningRate, ...as }: TrainerOptions): string[] {
  const { passes, loss, seed } = as;
  const flags = { url, policy: policyUrl, "learning-rate": learningRate, passes, loss, seed };
  return Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

function exitOf(child: ChildProcess, say: (line: string) => void): Promise<TrainerExit> {
  let why = "";
  if (child.stderr !== null) {
    createInterface({ input: child.stderr }).on("line", (line) => {
      if (line.trim() === "") return;
      why = line;
      say(`trainer: ${line}`);
    });
  }
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ code: null, signal: null, why: error.message }));
    child.once("close", (code, signal) => resolve({ code, signal, why }));
  });
}

/**
 * A trainer's process that comes back: one that dies is started again and goes on from its checkpoint.
 *
 * Invariants. At most one process at a time: the next is started when the last has ended. Only a death is answered by a
 * start: a trainer that is done, that was stopped, or that was called wrongly stays ended.
 */

/** `exited` resolves with the last end there is. */
export function startTrainerThatComesBack(options: TrainerOptions): TrainerProcess {
  return new TrainerThatComesBack(options);
}

class TrainerThatComesBack implements TrainerProcess {
  readonly exited: Promise<TrainerExit>;
  readonly #options: TrainerOptions;
  #process: TrainerProcess;
  #task: TrainerTask | null = null;
  #stopped = false;

  constructor(options: TrainerOptions) {
    this.#options = options;
    this.#process = startTrainer(options);
    this.exited = this.#untilItStaysEnded();
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  train(task: TrainerTask): void {
    this.#task = task;
    this.#process.train(task);
  }

  async stop(): Promise<TrainerExit> {
    this.#stopped = true;
    await this.#process.stop();
    return await this.exited;
  }

  async #untilItStaysEnded(): Promise<TrainerExit> {
    for (let restarts = 1; ; restarts += 1) {
      const exit = await this.#process.exited;
      const { code } = exit;
      if (this.#stopped || code === 0 || code === CALLED_WRONGLY || restarts > RESTARTS) return exit;
      this.#options.say(
        `The trainer ${howItEnded(exit)}; it is started again from its checkpoint (${restarts} of ${RESTARTS}).`,
      );
      this.#process = startTrainer(this.#options);
      if (this.#task !== null) this.#process.train(this.#task);
    }
  }
}
