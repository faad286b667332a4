/** A queue and its consumers, of which it has so many at once. Each has a batch, and handles its messages in order. */
import type { Agenda } from "./agenda.ts";
import { LATENCY_MS, type QueueSettings, queueSettings, SHAPE } from "./policies.ts";
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
      this.#handle(batch);
    }
    if (this.#next === this.#waiting.length) {
      this.#waiting = [];
      this.#next = 0;
    }
  }

  #handle(batch: readonly Message[]): void {
    const waiting = batch.values();
    let left = batch.length;
    const next = (): void => {
      const { value: message } = waiting.next();
      if (message === undefined) return;
      this.#traffic.count(`consumer ms ${this.name}`, this.#agenda.now, message.workMs / SHAPE.messagesSideBySide);
      this.#traffic.count(`handled ${this.name}`, this.#agenda.now);
      message.begin();
      this.#agenda.in(message.workMs, () => {
        message.end();
        left -= 1;
        if (left > 0) next();
        else this.#leave();
      });
    };
    for (let lane = 0; lane < SHAPE.messagesSideBySide; lane += 1) next();
  }

  #leave(): void {
    this.#busy -= 1;
    this.#handOut();
  }
}
