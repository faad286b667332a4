/**
 * The current faults inside the Worker, read from the harness, which outlives the processes that it kills: a setting
 * stays in force after a restart.
 */
import { seededRandom } from "../../src/contract/random.ts";
import type { QueueFaults } from "./plan.ts";

export type FaultyEnv = Env & {
  /** The URL of the settings; empty for none. */
  readonly FAULTS: string;
};

export interface KnobSettings extends QueueFaults {
  /** False: the alarm of a run does nothing. */
  readonly reconcile: boolean;
  /** The chance that an answer between objects is lost after the request took effect. */
  readonly lose_reply: number;
  readonly failing: readonly ("STORE" | "DB")[];
  /** The share of the calls of isolates that fail as if the isolate were lost. */
  readonly lose_isolate: number;
}

export const CALM: KnobSettings = {
  ...{ drop: 0, duplicate: 0, delay: 0, reorder: 0, reconcile: true, lose_reply: 0, failing: [], lose_isolate: 0 },
};

/** Longer than a burst of sends takes, shorter than any fault lasts. */
export const KNOWN_FOR_MS = 50;

export class Knobs {
  readonly #url: string;
  readonly #random: () => number;
  #settings = CALM;
  /** Epoch milliseconds at which the current settings were requested. */
  #askedAt = 0;

  constructor(url: string) {
    this.#url = url;
    this.#random = seededRandom("faults", url);
  }

  async read(): Promise<KnobSettings> {
    const at = Date.now();
    if (this.#url === "" || at - this.#askedAt < KNOWN_FOR_MS) return this.#settings;
    const reply = await fetch(this.#url);
    const settings = await reply.json<KnobSettings>();
    // On a busy machine an earlier reply may arrive after a later one.
    if (at >= this.#askedAt) {
      this.#settings = settings;
      this.#askedAt = at;
    }
    return this.#settings;
  }

  random(): number {
    return this.#random();
  }

  /** `of`: the queue that it happened to. */
  note(kind: "dropped" | "duplicated" | "delayed" | "store" | "reply" | "isolate", of?: string): void {
    // biome-ignore lint/suspicious/noConsole: the log outlives a kill, memory does not
    console.log(["fault", kind, ...(of === undefined ? [] : [of])].join(" "));
  }
}
