/**
 * Runs the reference trainer as a process that is restarted: if it dies, it is started again and continues from its
 * checkpoint.
 *
 * Invariants: it gets its task over stdin, so that other processes cannot see the token. When that stdin ends, it
 * stops, so it never outlives its parent process. Its stderr goes to `say`, and its last line is the reason of a
 * failure. There is at most one process at a time: the next starts after the last has ended. Only a crash leads to a
 * restart: a trainer that is done, was stopped, or had wrong flags is not restarted.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";

export interface TrainerOptions {
  /** The platform's URL, without /v1. */
  readonly url: string;
  /** The policy server, up to and including /v1. */
  readonly policyUrl: string;
  readonly learningRate: number;
  /** How often each batch is trained on. */
  readonly passes: number;
  readonly loss: string;
  readonly seed: number;
  /** Prints its messages, except events. */
  readonly log: (line: string) => void;
}

export interface TrainerTask {
  readonly run_id: string;
  readonly token: string;
  /** The directory of its weights, from which it resumes. */
  readonly checkpoint: string;
}

export interface TrainerExit {
  readonly code: number | null;
  /** The signal that ended it, if there was one. */
  readonly signal: NodeJS.Signals | null;
  /** Its last line of stderr; "" if there was none. */
  readonly why: string;
}

export interface TrainerProcess {
  readonly pid: number | undefined;
  train(task: TrainerTask): void;
  /** Resolves when it has ended, for any reason, and is not restarted. Never rejects. */
  readonly exited: Promise<TrainerExit>;
  /** Asks it to finish its step and stop, and waits for its end. */
  stop(): Promise<TrainerExit>;
}

/** More passes are refused, because the weights are then too far from those that sampled the batch. */
export const MOST_PASSES = 16;

/** A `.js` file if this file was compiled. */
const MAIN = join(import.meta.dirname, `main${extname(import.meta.filename)}`);
/** A step takes a second or two; a step that hangs must not block the command. */
const STOPS_WITHIN_MS = 15_000;
/** A process that dies at once each time is not restarted forever. */
const RESTARTS = 3;
/** The exit code for wrong flags. */
const CALLED_WRONGLY = 2;

/** It warms up at once, and waits for its task. */
export function startTrainerThatComesBack(options: TrainerOptions): TrainerProcess {
  let child = spawnTrainer(options);
  let task: TrainerTask | null = null;
  let stopped = false;
  const sendTask = () => {
    if (task !== null) child.stdin?.write(`${JSON.stringify(task)}\n`);
  };
  const waitForLastExit = async () => {
    for (let restarts = 1; ; restarts += 1) {
      const exit = await exitOf(child, options.log);
      const { code } = exit;
      if (stopped || code === 0 || code === CALLED_WRONGLY || restarts > RESTARTS) return exit;
      options.log(
        `The trainer ${howItEnded(exit)}; it is started again from its checkpoint (${restarts} of ${RESTARTS}).`,
      );
      child = spawnTrainer(options);
      sendTask();
    }
  };
  const exited = waitForLastExit();
  return {
    get pid() {
      return child.pid;
    },
    exited,
    train: (given) => {
      task = given;
      sendTask();
    },
    stop: () => {
      stopped = true;
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

function spawnTrainer({ url, policyUrl, learningRate, passes, loss, seed, log }: TrainerOptions): ChildProcess {
  const flags = { url, policy: policyUrl, "learning-rate": learningRate, passes, loss, seed };
  const argv = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn(process.execPath, [MAIN, ...argv], { stdio: ["pipe", "ignore", "pipe"] });
  // A write to a process that has died fails; its exit reports the death.
  child.stdin?.on("error", (error) => log(`trainer: ${error.message}`));
  return child;
}

function exitOf(child: ChildProcess, log: (line: string) => void): Promise<TrainerExit> {
  let why = "";
  if (child.stderr !== null) {
    createInterface({ input: child.stderr }).on("line", (line) => {
      if (line.trim() === "") return;
      why = line;
      log(`trainer: ${line}`);
    });
  }
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ code: null, signal: null, why: error.message }));
    child.once("close", (code, signal) => resolve({ code, signal, why }));
  });
}
