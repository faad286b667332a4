/** Ctrl-C, SIGTERM and SIGHUP: the first asks the command to stop, a second one stops it at once. */
import { EXIT } from "./exit.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** npm and a terminal may both pass one Ctrl-C on; what comes this soon is the same press. */
const SAME_PRESS_MS = 500;

/** Aborted by the first signal. `dispose` gives the signals back to the system. */
export interface Interrupt extends Disposable {
  readonly signal: AbortSignal;
}

export function catchInterrupts(): Interrupt {
  const controller = new AbortController();
  let first: number | null = null;
  const onSignal = () => {
    const now = performance.now();
    if (first === null) {
      first = now;
      controller.abort();
    } else if (now - first > SAME_PRESS_MS) {
      // workerd is ended by an exit handler of Miniflare's.
      process.exit(EXIT.interrupted);
    }
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      for (const signal of SIGNALS) process.off(signal, onSignal);
    },
  };
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
