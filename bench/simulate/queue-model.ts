/**
 * A queue and its consumers. A batch is handled one message after another (src/kernel/service/consume.ts), and a queue
 * has so many consumers at once.
 */
import type { Agenda } from "./agenda.ts";
import { LATENCY_MS, type QueueSettings, queueSettings } from "./policies.ts";
import type { Traffic } from "./traffic.ts";

export interface Message {
  /** Milliseconds from its begin to its end. */
  readonly workMs: number;
  /** What it does when it begins and when it ends. */
  readonly begin: () => void;
  readonly end: () => void;
}

export class QueueModel {
  readonly name: string;
  readonly settings: QueueSettings;
  readonly #agenda: Agenda;
  readonly #traffic: Traffic;
  #waiting: Message[] = [];
  #next = 0;
  #busy = 0;
  /** The most consumers that worked at once, and the most messages that waited. */
  mostBusy = 0;
  mostWaiting = 0;

  constructor(name: string, agenda: Agenda, traffic: Traffic) {
    this.name = name;
    this.settings = queueSettings(name);
    this.#agenda = agenda;
    this.#traffic = traffic;
  }

  send(messages: readonly Message[]): void {
    if (messages.length === 0) return;
    this.#traffic.count(`messages ${this.name}`, this.#agenda.now, messages.length);
    this.#agenda.in(LATENCY_MS.queue, () => {
      this.#waiting.push(...messages);
      this.#handOut();
      this.mostWaiting = Math.max(this.mostWaiting, this.#waiting.length - this.#next);
    });
  }

  #handOut(): void {
    while (this.#busy < this.settings.consumers && this.#next < this.#waiting.length) {
      const batch = this.#waiting.slice(this.#next, this.#next + this.settings.batch);
      this.#next += batch.length;
      this.#busy += 1;
      this.mostBusy = Math.max(this.mostBusy, this.#busy);
      this.#traffic.count(`batches ${this.name}`, this.#agenda.now);
      this.#handle(batch, 0);
    }
    if (this.#next === this.#waiting.length) {
      this.#waiting = [];
      this.#next = 0;
    }
  }

  #handle(batch: readonly Message[], at: number): void {
    const message = batch[at];
    if (message === undefined) {
      this.#busy -= 1;
      this.#handOut();
      return;
    }
    this.#traffic.count(`consumer ms ${this.name}`, this.#agenda.now, message.workMs);
    this.#traffic.count(`handled ${this.name}`, this.#agenda.now);
    message.begin();
    this.#agenda.in(message.workMs, () => {
      message.end();
      this.#handle(batch, at + 1);
    });
  }
}
