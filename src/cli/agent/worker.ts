/**
 * A worker of an agent: leases rollouts, plays each with a program of its own, and ends it.
 *
 * Invariants. A lease that the worker has is extended until its rollout is ended or the lease is given back. A program
 * runs only while its lease counts. When the worker stops, for whatever reason, its programs are stopped first and then
 * their leases are given back, so that other workers continue at once; nothing is reported about those rollouts.
 */
import type { LeasedRollout, RolloutFinishInput } from "../../agents/wire.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { ApiRequestError } from "../../sdk/request-error.ts";
import { type LeaseEnd, Leases } from "./leases.ts";
import { OutputLines } from "./output-lines.ts";
import { Program, type ProgramEnd } from "./program.ts";
import { badResult, finishOf, isBadResult } from "./result.ts";
import { SteadyCalls } from "./steady-calls.ts";
import { makeRolloutFolder, type RolloutFolder, variablesOf } from "./surroundings.ts";

/** How long a request for rollouts waits for the first one. */
const LEASE_WAIT_S = 10;
/** With `once`: the worker ends when no rollout was leased for this long. */
const IDLE_MS = 30_000;
const FINISHES_WITHIN_MS = 30_000;

export interface WorkerOptions {
  readonly client: Pick<RollcallClient, "agents" | "rollouts">;
  /** The name of the agent. */
  readonly name: string;
  /** The id of the worker. */
  readonly worker: string;
  /** Rollouts at the same time, 1 to 256. */
  readonly maxConcurrent: number;
  readonly command: readonly string[];
  /** Where the programs run; null: each in the folder of its rollout. */
  readonly cwd: string | null;
  /** The output of the programs is logged. */
  readonly showOutput: boolean;
  /** The worker ends when there was no rollout for 30 s. */
  readonly once: boolean;
  readonly log: (line: string) => void;
  /** Called for each rollout that the worker has played. */
  readonly onPlayed: (played: PlayedRollout) => void;
}

export interface WorkerSignals {
  /** Stops the programs and gives their leases back. */
  readonly stop: AbortSignal;
  /** Leases no more rollouts; the programs play on. */
  readonly drain: AbortSignal;
}

/** A line of `--json`. */
export interface PlayedRollout {
  readonly object: "played_rollout";
  readonly rollout_id: string;
  readonly run_id: string;
  readonly example_id: number;
  /**
   * `failed`: with `error`. `lost`: another worker plays it. `ended`: the platform ended it before its program did.
   * `released`: the worker has stopped and given it back.
   */
  readonly state: "finished" | "failed" | "released" | LeaseEnd;
  /** Null if a signal ended the program. */
  readonly exit_code: number | null;
  readonly signal: string | null;
  readonly error: { readonly error: string; readonly message: string } | null;
  readonly seconds: number;
}

type Outcome = Pick<PlayedRollout, "state" | "error">;

/** Resolves when it has stopped. Throws what made it stop, such as a program that cannot be started. */
export async function playRollouts(options: WorkerOptions, signals: WorkerSignals): Promise<void> {
  await new Worker(options, signals).run();
}

class Worker {
  readonly #options: WorkerOptions;
  readonly #calls: SteadyCalls;
  readonly #leases: Leases;
  /** Aborted by the caller, and by the first failure. */
  readonly #stop: AbortSignal;
  /** Aborted when no more rollouts are leased. */
  readonly #closed: AbortSignal;
  readonly #broken = new AbortController();
  readonly #playing = new Set<Promise<void>>();
  readonly #programs = new Set<Program>();
  #changed = Promise.withResolvers<void>();

  constructor(options: WorkerOptions, { stop, drain }: WorkerSignals) {
    const { client, name, worker, log } = options;
    this.#options = options;
    this.#calls = new SteadyCalls(log);
    const onFailed = (thrown: unknown) => this.#broken.abort(thrown);
    this.#leases = new Leases({ client, calls: this.#calls, name, worker, onFailed, log });
    this.#stop = AbortSignal.any([stop, this.#broken.signal]);
    this.#closed = AbortSignal.any([this.#stop, drain]);
  }

  async run(): Promise<void> {
    const killAll = () => {
      for (const program of this.#programs) program.kill();
    };
    const stopAll = () => {
      for (const program of this.#programs) program.stop();
    };
    const wake = () => this.#wake();
    // A second Ctrl-C ends this process at once.
    process.on("exit", killAll);
    this.#stop.addEventListener("abort", stopAll, { once: true });
    this.#closed.addEventListener("abort", wake, { once: true });
    try {
      await this.#leaseAll();
    } catch (thrown) {
      this.#broken.abort(thrown);
    }
    await Promise.all(this.#playing);
    await this.#leases.release();
    process.off("exit", killAll);
    if (this.#broken.signal.aborted) throw this.#broken.signal.reason;
  }

  async #leaseAll(): Promise<void> {
    const { once, maxConcurrent } = this.#options;
    let busyAt = performance.now();
    while (!this.#closed.aborted) {
      const free = maxConcurrent - this.#playing.size;
      if (free === 0) {
        await this.#changed.promise;
        continue;
      }
      const leased = await this.#lease(free);
      for (const rollout of leased) this.#begin(rollout);
      if (this.#playing.size > 0) busyAt = performance.now();
      else if (once && performance.now() - busyAt >= IDLE_MS) return;
    }
  }

  async #lease(max: number): Promise<LeasedRollout[]> {
    const { client, name, worker } = this.#options;
    const signal = this.#closed;
    try {
      const request = { worker, max, wait_s: LEASE_WAIT_S };
      return await this.#calls.make(() => client.agents.lease(name, request, { signal }), signal);
    } catch (thrown) {
      if (!signal.aborted) throw thrown;
      await this.#leases.stopLeasing();
      return [];
    }
  }

  #begin(leased: LeasedRollout): void {
    const playing = this.#play(leased)
      .catch((thrown: unknown) => this.#broken.abort(thrown))
      .finally(() => {
        this.#playing.delete(playing);
        this.#wake();
      });
    this.#playing.add(playing);
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  async #play(leased: LeasedRollout): Promise<void> {
    const { onPlayed } = this.#options;
    const { rollout_id, run_id, example_id } = leased;
    const over = this.#leases.hold(leased);
    const began = performance.now();
    const folder = await makeRolloutFolder(leased);
    try {
      const end = await this.#runProgram(leased, folder, over);
      const { state, error } = await this.#settle(leased, folder, over, end);
      if (state !== "released") this.#leases.drop(leased);
      const seconds = Math.round(performance.now() - began) / 1000;
      const program = { exit_code: end.code, signal: end.signal };
      onPlayed({ object: "played_rollout", rollout_id, run_id, example_id, state, ...program, error, seconds });
    } finally {
      await folder.remove().catch((error: unknown) => this.#options.log(`${folder.path} is left: ${String(error)}`));
    }
  }

  async #runProgram(leased: LeasedRollout, folder: RolloutFolder, over: AbortSignal): Promise<ProgramEnd> {
    const { command, cwd, showOutput, log } = this.#options;
    const lines = showOutput ? new OutputLines(leased, log) : null;
    const program = await Program.start({
      ...{ command, cwd: cwd ?? folder.path, env: variablesOf(leased, folder, process.env) },
      onOutput: lines === null ? undefined : (stream, part) => lines.add(stream, part),
    });
    this.#programs.add(program);
    const stop = () => program.stop();
    over.addEventListener("abort", stop, { once: true });
    if (over.aborted || this.#stop.aborted) stop();
    try {
      return await program.ended();
    } finally {
      this.#programs.delete(program);
      lines?.end();
    }
  }

  /** Ends the rollout as its program ended, unless the program was stopped. */
  async #settle(leased: LeasedRollout, folder: RolloutFolder, over: AbortSignal, end: ProgramEnd): Promise<Outcome> {
    if (over.aborted) return { state: over.reason, error: null };
    if (end.wasStopped) return { state: "released", error: null };
    const finish = await finishOf(end, folder.result, leased.key);
    try {
      return await this.#finish(leased, finish, over);
    } catch (thrown) {
      if (over.aborted) return { state: over.reason, error: null };
      if (this.#stop.aborted) return { state: "released", error: null };
      throw thrown;
    }
  }

  async #finish(leased: LeasedRollout, finish: RolloutFinishInput, over: AbortSignal): Promise<Outcome> {
    const { client } = this.#options;
    const { rollout_id, key } = leased;
    const needed = AbortSignal.any([over, this.#stop]);
    const send = () => client.rollouts.finish(rollout_id, key, finish, { timeoutMs: FINISHES_WITHIN_MS });
    try {
      await this.#calls.make(send, needed);
      return outcomeOf(finish);
    } catch (thrown) {
      const state = endSaidBy(thrown);
      if (state !== null) return { state, error: null };
      const refused = isBadResult(finish) ? null : refusedResult(thrown);
      if (refused === null) throw thrown;
      return await this.#finish(leased, refused, over);
    }
  }
}

function outcomeOf({ error }: RolloutFinishInput): Outcome {
  if (error === undefined || error === null) return { state: "finished", error: null };
  return { state: "failed", error: { error: error.error ?? "AgentError", message: error.message } };
}

/** Null if the error does not say that the lease is over. */
function endSaidBy(thrown: unknown): LeaseEnd | null {
  if (!(thrown instanceof ApiRequestError)) return null;
  if (thrown.code === "lease_lost") return "lost";
  return thrown.code === "conflict" || thrown.code === "not_found" ? "ended" : null;
}

/** The end of a rollout whose result the platform refused; null if that is not what happened. */
function refusedResult(thrown: unknown): RolloutFinishInput | null {
  if (!(thrown instanceof ApiRequestError)) return null;
  const { status, param, message } = thrown;
  if (status !== 400 && status !== 413) return null;
  return badResult(param === null ? message : `${param}: ${message}`);
}
