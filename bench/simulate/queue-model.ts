/**
 * A queue and its consumers, of which it has so many at once. Each has a batch, and handles its messages in order: one
 * after another, or some of them at once by the rule of the consumers that run.
 */
import { queueOfShard, type SHARDS, shardOf } from "../../src/core/run-queues.ts";
import { sideBySide } from "../../src/kernel/service/side-by-side.ts";
import type { Agenda } from "./agenda.ts";
import { LATENCY_MS, type Latency, type QueueSettings, queueSettings } from "./policies.ts";
import type { Traffic } from "./traffic.ts";

export interface Message {
  /** Milliseconds from its begin to its end. */
  readonly workMs: number;
  /** The part of what one consumer may handle at once, as in side-by-side.ts. */
  readonly part: number;
  /** What it does when it begins and when it ends. */
  readonly begin: () => void;
  readonly end: () => void;
}

export class QueueModel {
  readonly name: string;
  readonly settings: QueueSettings;
  readonly #agenda: Agenda;
  readonly #traffic: Traffic;
  readonly #queueMs: number;
  #waiting: Message[] = [];
  #next = 0;
  #busy = 0;
  /** The most consumers that worked at once, and the most messages that waited. */
  mostBusy = 0;
  mostWaiting = 0;

  constructor(name: string, agenda: Agenda, traffic: Traffic, queueMs: number = LATENCY_MS.queue) {
    this.name = name;
    this.#queueMs = queueMs;
    this.settings = queueSettings(name);
    this.#agenda = agenda;
    this.#traffic = traffic;
  }

  /** Milliseconds of a consumer for a message if all batches are full, as when messages wait; 0 without messages. */
  msInFullBatches(): number {
    const [work = 0, parts = 0, begun = 0] = ["work ms", "parts", "begun"].map((what) =>
      this.#traffic.counted(`${what} ${this.name}`),
    );
    if (begun === 0) return 0;
    const { batch } = this.settings;
    const atOnce = sideBySide(Array.from({ length: batch }, () => parts / begun));
    return (Math.ceil(batch / atOnce) * (work / begun)) / batch;
  }

  send(messages: readonly Message[]): void {
    if (messages.length === 0) return;
    this.#traffic.count(`messages ${this.name}`, this.#agenda.now, messages.length);
    this.#agenda.in(this.#queueMs, () => {
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
    const began = this.#agenda.now;
    let left = batch.length;
    const next = (): void => {
      const { value: message } = waiting.next();
      if (message === undefined) return;
      this.#traffic.count(`work ms ${this.name}`, began, message.workMs);
      this.#traffic.count(`parts ${this.name}`, began, message.part);
      this.#traffic.count(`begun ${this.name}`, began);
      message.begin();
      this.#agenda.in(message.workMs, () => {
        message.end();
        left -= 1;
        if (left > 0) next();
        else this.#leave(batch.length, this.#agenda.now - began);
      });
    };
    const atOnce = sideBySide(batch.map(({ part }) => part));
    for (let lane = 0; lane < atOnce; lane += 1) next();
  }

  #leave(handled: number, ms: number): void {
    this.#traffic.count(`consumer ms ${this.name}`, this.#agenda.now, ms);
    this.#traffic.count(`handled ${this.name}`, this.#agenda.now, handled);
    this.#busy -= 1;
    this.#handOut();
  }
}

/** The queues of a kind of message. */
export class QueuesModel {
  /** The name of the first. */
  readonly name: string;
  readonly all: readonly QueueModel[];

  constructor(
    name: string,
    count: 1 | typeof SHARDS,
    { agenda, traffic, latency }: { readonly agenda: Agenda; readonly traffic: Traffic; readonly latency: Latency },
  ) {
    this.name = name;
    const names = Array.from({ length: count }, (_, shard) => queueOfShard(name, shard));
    this.all = names.map((each) => new QueueModel(each, agenda, traffic, latency.queue));
  }

  /** The queue of a run's messages. */
  of(run_id: string): QueueModel {
    const queue = this.all[this.all.length === 1 ? 0 : shardOf(run_id)];
    if (queue === undefined) throw new Error(`${this.name} has no queue for ${run_id}`);
    return queue;
  }
}
