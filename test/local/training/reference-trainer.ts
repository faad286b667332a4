/** The reference trainer as a process that a test may kill, and its output. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { WAIT_HANGS_MS } from "../../hang-limits.ts";
import { until } from "../served-platform.ts";

const MAIN = join(import.meta.dirname, "../../../packages/trainer/main.ts");

export interface TrainerEvent {
  readonly event: string;
  readonly step?: number;
  readonly batch_id?: string;
  readonly sha256?: string;
  readonly version?: number;
}

export interface TrainerSetting {
  readonly url: string;
  readonly policy: string;
  readonly learningRate: number;
  readonly run: string;
  readonly token: string;
  readonly checkpoint: string;
}

export class ReferenceTrainer {
  readonly events: TrainerEvent[] = [];
  readonly #process;
  readonly #exited: Promise<unknown>;
  #said = "";

  constructor({ url, policy, learningRate, run, token, checkpoint }: TrainerSetting) {
    const flags = { url, policy, "learning-rate": learningRate, seed: 1 };
    const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
    this.#process = spawn(process.execPath, [MAIN, ...args], { stdio: ["pipe", "pipe", "pipe"] });
    this.#exited = once(this.#process, "exit");
    this.#process.stdin.write(`${JSON.stringify({ run_id: run, token, checkpoint })}\n`);
    createInterface({ input: this.#process.stdout }).on("line", (line) => {
      this.events.push(JSON.parse(line));
    });
    this.#process.stderr.on("data", (text) => {
      this.#said += text;
    });
  }

  /** Events of one kind, in order. */
  of(event: string): TrainerEvent[] {
    return this.events.filter((it) => it.event === event);
  }

  /** Resolves when it has reported this event for this step or a later one. */
  says(event: string, step: number): Promise<void> {
    return this.#until(() => this.of(event).some((it) => (it.step ?? 0) >= step));
  }

  /** Resolves with the next event of this kind. */
  next(event: string): Promise<void> {
    const known = this.of(event).length;
    return this.#until(() => this.of(event).length > known);
  }

  /** Kill -9. */
  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#exited;
  }

  /** Throws if it does not end successfully by itself. */
  async ends(): Promise<void> {
    await this.#exited;
    if (this.#process.exitCode !== 0) {
      throw new Error(`the trainer ends with ${this.#process.exitCode}:\n${this.#said}`);
    }
  }

  /** Throws with its output if it ends first. */
  async #until(condition: () => boolean): Promise<void> {
    await until(() => {
      if (condition()) return true;
      if (this.#process.exitCode !== null) throw new Error(`the trainer ended:\n${this.#said}`);
      return false;
    }, WAIT_HANGS_MS);
  }
}
