/** Waiting, and an end to it. */

/** Aborts once nothing was heard for `ms` (no limit when null), or when the caller's own signal does. */
export class Patience {
  readonly signal: AbortSignal;
  readonly #ms: number | null;
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ms: number | null, caller: AbortSignal | undefined) {
    this.#ms = ms;
    const own = this.#controller.signal;
    this.signal = caller === undefined ? own : AbortSignal.any([own, caller]);
    this.heard();
  }

  /** Something came: the wait starts anew. */
  heard(): void {
    this.end();
    const ms = this.#ms;
    if (ms === null) return;
    this.#timer = setTimeout(() => this.#controller.abort(timeoutError(ms)), ms);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

/** Resolves after `ms`; rejects with the signal's reason when that comes first. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

function timeoutError(ms: number): DOMException {
  return new DOMException(`the platform did not answer within ${ms} ms`, "TimeoutError");
}
