/**
 * Gradients from a thread of their own: while one is computed, the process reads the next batch, keeps its lease, writes
 * its checkpoint and hands its weights out.
 *
 * Invariants. One gradient at a time. A thread that ended answers nothing any more: what was asked of it rejects.
 */
import { once } from "node:events";
import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Gradient, GradientOf } from "./gradient.ts";
import type { GradientAsked } from "./gradient-thread.ts";
import type { LossName } from "./losses.ts";

/** Beside this file, and a `.js` where this file was compiled to one. */
const THREAD = join(import.meta.dirname, `gradient-thread${extname(import.meta.filename)}`);

const ENDED = "the thread that computes gradients has ended";

export class ThreadedGradient implements Pick<GradientOf, "at"> {
  readonly #thread: Worker;
  #ended = false;

  private constructor(thread: Worker) {
    this.#thread = thread;
    thread.once("exit", () => {
      this.#ended = true;
    });
  }

  /** Resolves when it has compiled what nearly every batch needs. Rejects with what kept it from that. */
  static async start(loss: LossName): Promise<ThreadedGradient> {
    const thread = new Worker(THREAD, { workerData: { loss } });
    await once(thread, "message");
    return new ThreadedGradient(thread);
  }

  at(...[weights, batches]: Parameters<GradientOf["at"]>): Promise<Gradient> {
    if (this.#ended) return Promise.reject(new Error(ENDED));
    const asked: GradientAsked = { weights, batches };
    const { promise, resolve, reject } = Promise.withResolvers<Gradient>();
    const ended = () => reject(new Error(ENDED));
    const done = () => {
      this.#thread.off("message", resolve).off("error", reject).off("exit", ended);
    };
    this.#thread.once("message", resolve).once("error", reject).once("exit", ended);
    this.#thread.postMessage(asked);
    return promise.finally(done);
  }

  async stop(): Promise<void> {
    await this.#thread.terminate();
  }
}
