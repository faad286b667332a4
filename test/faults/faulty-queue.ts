/** A queue whose messages get lost, are doubled, delayed or reordered. */
import type { Knobs } from "./knobs.ts";
import type { QueueFaults } from "./plan.ts";

const MOST_PER_BATCH = 100;
const DELAY_S = 1;

export class FaultyQueue implements Queue {
  readonly #queue: Queue;
  readonly #name: string;
  readonly #knobs: Knobs;

  /** `name`: what its faults are noted under. */
  constructor(queue: Queue, name: string, knobs: Knobs) {
    this.#queue = queue;
    this.#name = name;
    this.#knobs = knobs;
  }

  metrics(): Promise<QueueMetrics> {
    return this.#queue.metrics();
  }

  send(body: unknown, options: QueueSendOptions = {}): Promise<QueueSendResponse> {
    return this.sendBatch([{ body, ...options }]);
  }

  async sendBatch(messages: Iterable<MessageSendRequest>): Promise<QueueSendBatchResponse> {
    const faults = await this.#knobs.read();
    const arriving = [...messages].flatMap((message) => this.#meddle(message, faults));
    const sent = this.#happens(faults.reorder) ? this.#disorder(arriving) : arriving;
    while (sent.length > 0) await this.#queue.sendBatch(sent.splice(0, MOST_PER_BATCH));
    return { metadata: { metrics: { backlogCount: 0, backlogBytes: 0 } } };
  }

  /** The message as often as it will arrive. */
  #meddle(message: MessageSendRequest, faults: QueueFaults): MessageSendRequest[] {
    const { drop, duplicate, delay } = faults;
    if (this.#happens(drop)) {
      this.#knobs.note("dropped", this.#name);
      return [];
    }
    const copies = this.#happens(duplicate) ? [message, message] : [message];
    if (copies.length > 1) this.#knobs.note("duplicated", this.#name);
    return copies.map((copy) => {
      if (!this.#happens(delay)) return copy;
      this.#knobs.note("delayed", this.#name);
      return { ...copy, delaySeconds: DELAY_S };
    });
  }

  #disorder(messages: readonly MessageSendRequest[]): MessageSendRequest[] {
    const keyed = messages.map((message) => ({ message, at: this.#knobs.random() }));
    return keyed.sort((a, b) => a.at - b.at).map(({ message }) => message);
  }

  #happens(chance: number): boolean {
    return this.#knobs.random() < chance;
  }
}
