/**
 * Sends reports or requests that rollouts of one object make at about the same time in one call. If that call fails
 * each is sent alone, so that an error with one does not fail the others.
 */

/** Items that arrive within this time go in one call. */
export const DEBOUNCE_MS = 10;

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly answered: (answer: Answer) => void;
  readonly failed: (why: unknown) => void;
}

export class Debounced<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #most: () => number;
  readonly #unheard: Answer;
  #waiting: Waiting<Item, Answer>[] = [];
  #soon: ReturnType<typeof setTimeout> | undefined;

  /** `most`: how many items can come at all; that many are sent without waiting. `unheard`: the answer if none came. */
  constructor(send: (items: readonly Item[]) => Promise<readonly Answer[]>, most: () => number, unheard: Answer) {
    this.#send = send;
    this.#most = most;
    this.#unheard = unheard;
  }

  add(item: Item): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#waiting.push({ item, answered: resolve, failed: reject });
    if (this.#waiting.length >= this.#most()) void this.#sendAll();
    else this.#soon ??= setTimeout(() => void this.#sendAll(), DEBOUNCE_MS);
    return promise;
  }

  async #sendAll(): Promise<void> {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    const waiting = this.#waiting.splice(0);
    try {
      await this.#sendThese(waiting);
    } catch (thrown) {
      const [only, ...others] = waiting;
      if (others.length > 0) await Promise.all(waiting.map((one) => this.#sendThese([one]).catch(one.failed)));
      else only?.failed(thrown);
    }
  }

  async #sendThese(some: readonly Waiting<Item, Answer>[]): Promise<void> {
    const answers = await this.#send(some.map(({ item }) => item));
    for (const [index, { answered }] of some.entries()) answered(answers[index] ?? this.#unheard);
  }
}
