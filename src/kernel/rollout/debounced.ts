/**
 * Sends reports or requests that rollouts of one object make at about the same time in one call. If they are dense, calls
 * are some time apart, and each takes what has come since the last one. If a call fails, each is sent alone, so that an
 * error with one does not fail the others. If the fault passes by itself, none of them is the reason: all of them fail, and
 * their callers send them again later.
 */
import { gatherWaitMs } from "../kit/gather-wait.ts";

/** A report waits for others at most for this part of the time that its rollout took. */
const PART_OF_ROLLOUT = 1 / 20;

/** How far apart the reports of an object are sent, if they are dense. Both times are epoch milliseconds. */
export function reportsApartMs({ started_at, ended_at }: { readonly started_at: number; readonly ended_at: number }) {
  return (ended_at - started_at) * PART_OF_ROLLOUT;
}

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly answered: (answer: Answer) => void;
  readonly failed: (why: unknown) => void;
}

export class Debounced<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #most: () => number;
  readonly #unheard: Answer;
  readonly #passes: (thrown: unknown) => boolean;
  readonly #apartMs: (item: Item) => number;
  #waiting: Waiting<Item, Answer>[] = [];
  #soon: ReturnType<typeof setTimeout> | undefined;
  /** When the waiting items are sent, and when the last ones were: epoch milliseconds. */
  #dueAt = Number.POSITIVE_INFINITY;
  #sentAt = Number.NEGATIVE_INFINITY;

  /**
   * `most`: how many items can come at all; that many are sent without waiting. `unheard`: the answer if none came.
   * `passes`: whether a fault passes by itself, whatever was sent.
   * `apartMs`: how far apart calls are if items are dense.
   */
  constructor(
    send: (items: readonly Item[]) => Promise<readonly Answer[]>,
    most: () => number,
    unheard: Answer,
    passes: (thrown: unknown) => boolean,
    apartMs: (item: Item) => number = () => 0,
  ) {
    this.#send = send;
    this.#most = most;
    this.#unheard = unheard;
    this.#passes = passes;
    this.#apartMs = apartMs;
  }

  add(item: Item): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#waiting.push({ item, answered: resolve, failed: reject });
    if (this.#waiting.length >= this.#most()) void this.#sendAll();
    else this.#sendSoon(item);
    return promise;
  }

  #sendSoon(item: Item): void {
    const now = Date.now();
    const wait = gatherWaitMs(now - this.#sentAt, this.#apartMs(item));
    if (now + wait >= this.#dueAt) return;
    clearTimeout(this.#soon);
    this.#dueAt = now + wait;
    this.#soon = setTimeout(() => void this.#sendAll(), wait);
  }

  async #sendAll(): Promise<void> {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    this.#dueAt = Number.POSITIVE_INFINITY;
    this.#sentAt = Date.now();
    const waiting = this.#waiting.splice(0);
    try {
      await this.#sendThese(waiting);
    } catch (thrown) {
      const isShared = waiting.length > 1 && !this.#passes(thrown);
      if (isShared) await Promise.all(waiting.map((one) => this.#sendThese([one]).catch(one.failed)));
      else for (const { failed } of waiting) failed(thrown);
    }
  }

  async #sendThese(some: readonly Waiting<Item, Answer>[]): Promise<void> {
    const answers = await this.#send(some.map(({ item }) => item));
    for (const [index, { answered }] of some.entries()) answered(answers[index] ?? this.#unheard);
  }
}
