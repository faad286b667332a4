/** Debounce: the consequences of a burst of answers are handled once, a few milliseconds after the first. */
export const DEBOUNCE_MS = 10;

export class Debounce {
  #waits = false;

  soon(work: () => void): void {
    if (this.#waits) return;
    this.#waits = true;
    setTimeout(() => {
      this.#waits = false;
      work();
    }, DEBOUNCE_MS);
  }
}
