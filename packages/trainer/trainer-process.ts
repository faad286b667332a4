/**
 * The reference trainer as a process of its own, which comes back: one that dies is started again and goes on from its
 * checkpoint.
 *
 * Invariants. It is told what to train over its stdin, so that no token stands where other processes see it; and when
 * that stdin ends, it stops: it never outlives whoever started it. Its stderr goes to `say`, and the last of it is why it
 * failed. At most one process at a time: the next is started when the last has ended. Only a death is answered by a
 * start: a trainer that is done, that was stopped, or that was called wrongly stays ended.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";

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
  /** Resolves when it has ended and is not started again, however it ended. Never rejects. */
  readonly exited: Promise<TrainerExit>;
  /** Asks it to finish its step and stop, and waits until it has. */
  stop(): Promise<TrainerExit>;
}

/** The trainer refuses to train on a batch more often: by then the weights are far from those that sampled it. */
export const MOST_PASSES = 16;

/** A `.js` where this file was compiled to one. */
const MAIN = join(import.meta.dirname, `main${extname(import.meta.filename)}`);
/** A step takes a second or two; one that hangs must not keep the command. */
const STOPS_WITHIN_MS = 15_000;
/** One that dies at once each time is not kept alive for ever. */
const RESTARTS = 3;
/** The exit code of one that was started with flags it does not take. */
const CALLED_WRONGLY = 2;

/** It warms up at once, and waits to be told what to train. */
export function startTrainerThatComesBack(options: TrainerOptions): TrainerProcess {
  let child = spawnTrainer(options);
  let task: TrainerTask | null = null;
  let stopped = false;
  const sendTask = () => {
    if (task !== null) child.stdin?.write(`${JSON.stringify(task)}\n`);
  };
  const waitForLastExit = async () => {
    for (let restarts = 1; ; restarts += 1) {
      const exit = await exitOf(child, options.say);
      const { code } = exit;
      if (stopped || code === 0 || code === CALLED_WRONGLY || restarts > RESTARTS) return exit;
      options.say(
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

function spawnTrainer({ url, policyUrl, learningRate, passes, loss, seed, say }: TrainerOptions): ChildProcess {
  const flags = { url, policy: policyUrl, "learning-rate": learningRate, passes, loss, seed };
  const argv = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn(process.execPath, [MAIN, ...argv], { stdio: ["pipe", "ignore", "pipe"] });
  // Nobody reads what is written to a process that has died; its exit says so.
  child.stdin?.on("error", (error) => say(`trainer: ${error.message}`));
  return child;
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
