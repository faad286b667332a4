/** Runs the Python trainer as a process that gets its tasks line by line. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { Vllm } from "./global-setup.ts";

/** Its findings in one batch. */
export interface Judged {
  readonly step: number;
  readonly generation: number;
  /** Versions between the oldest weights that sampled and those it trains. */
  readonly lag: number;
  readonly samples: number;
  readonly turns: number;
  /** Turns that were sampled after a tool's result: a call of the model had been parsed and run. */
  readonly answered: number;
  /** The trainable tokens; all of them were recomputed. */
  readonly tokens: number;
  /** The largest |ratio - 1|. */
  readonly worst: number;
  /** Tokens further off than 1e-5. */
  readonly beyond: number;
}

/** Serves weights to an engine; by their folder. */
export interface Serving {
  readonly engine: string;
  readonly weights: string;
  readonly keep_prefix_cache?: boolean;
}

export interface Training extends Serving {
  readonly url: string;
  readonly run: string;
  readonly token: string;
  /** The folder for the weights it makes. */
  readonly folder: string;
  readonly learning_rate: number;
  /** The batch after which it goes back to version 0, once. */
  readonly reset_after?: number;
}

export class Judge {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;

  constructor({ bin }: Vllm) {
    this.#process = spawn(join(bin, "python"), [join(import.meta.dirname, "trainer.py")], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, HF_HUB_OFFLINE: "1" },
    });
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  async serve(serving: Serving): Promise<void> {
    await this.#ask({ do: "serve", ...serving });
  }

  /** Trains a run to its end: returns its batches in the order they were trained. */
  async train(training: Training): Promise<readonly Judged[]> {
    return (await this.#ask({ do: "train", ...training })) as readonly Judged[];
  }

  stop(): void {
    this.#process.stdin.end();
  }

  /** Throws its message if it fails. */
  async #ask(assignment: object): Promise<unknown> {
    this.#process.stdin.write(`${JSON.stringify(assignment)}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("the trainer ended");
    const { ok, error } = JSON.parse(value);
    if (error !== undefined) throw new Error(error);
    return ok;
  }
}
