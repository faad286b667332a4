/**
 * What goes wrong inside the Worker at this moment, asked of the harness: it outlives the processes it kills, so a knob
 * it turned stays turned whatever comes up again.
 */
import { seededRandom } from "../../src/core/random.ts";
import type { QueueFaults } from "./plan.ts";

export type FaultyEnv = Env & {
  /** The knob settings' address; empty for none of them. */
  readonly FAULTS: string;
};

export interface KnobSettings extends QueueFaults {
  /** False: the alarm of a run does nothing. */
  readonly sweep: boolean;
  readonly failing: readonly ("STORE" | "DB")[];
}

export const CALM: KnobSettings = {
  ...{ drop: 0, duplicate: 0, delay: 0, reorder: 0, sweep: true, failing: [] },
};

/** Longer than a burst of sends takes, shorter than any fault lasts. */
const KNOWN_FOR_MS = 50;

export class Knobs {
  readonly #url: string;
  readonly #random: () => number;
  #settings = CALM;
  #readAt = 0;

  constructor(url: string) {
    this.#url = url;
    this.#random = seededRandom("faults", url);
  }

  async read(): Promise<KnobSettings> {
    if (this.#url === "" || Date.now() - this.#readAt < KNOWN_FOR_MS) return this.#settings;
    const reply = await fetch(this.#url);
    this.#settings = await reply.json<KnobSettings>();
    this.#readAt = Date.now();
    return this.#settings;
  }

  random(): number {
    return this.#random();
  }

  note(kind: "dropped" | "duplicated" | "delayed" | "store"): void {
    // biome-ignore lint/suspicious/noConsole: the log outlives a kill, memory does not
    console.log(`fault ${kind}`);
  }
}
