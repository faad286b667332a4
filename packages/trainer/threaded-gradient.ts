/**
 * Computes gradients in a separate thread. Meanwhile the process reads the next batch, renews its lease, writes its
 * checkpoint and distributes its weights.
 *
 * Invariants: one gradient at a time. After the thread has ended, every request to it rejects.
 */
import { once } from "node:events";
import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Gradient, GradientOf } from "./gradient.ts";
import type { GradientAsked } from "./gradient-thread.ts";
import type { LossName } from "./losses.ts";

/** Next to this file, with the extension `.js` if this file was compiled. */
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

  /**
   * Resolves when it has compiled the shape that nearly every batch needs. Rejects with the error that prevented that.
   */
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
