/**
 * A trainer's process that comes back: one that dies is started again and goes on from its checkpoint.
 *
 * Invariants. At most one process at a time: the next is started when the last has ended. Only a death is answered by a
 * start: a trainer that is done, that was stopped, or that was called wrongly stays ended.
 */
import {
  howItEnded,
  startTrainer,
  type TrainerExit,
  type TrainerOptions,
  type TrainerProcess,
  type TrainerTask,
} from "./trainer-process.ts";

/** One that dies at once each time is not kept alive for ever. */
const RESTARTS = 3;
/** Started with flags it does not take. */
const CALLED_WRONGLY = 2;

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
