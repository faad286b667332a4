/** Debounce: the consequences of a burst of answers are handled once, a few milliseconds after the first. */
const GATHER_MS = 10;

export class Gathering {
  #waits = false;

  soon(work: () => void): void {
    if (this.#waits) return;
    this.#waits = true;
    setTimeout(() => {
      this.#waits = false;
      work();
    }, GATHER_MS);
  }
}
