/**
 * Ctrl-C, SIGTERM and SIGHUP: the first asks the command to stop, a second one stops it at once. The end of the npm that
 * started it counts as the first: npm passes no SIGHUP on, and SIGTERM only to the shell between, which just ends.
 */
import { EXIT } from "./exit.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** npm and a terminal may both pass one Ctrl-C on; what comes this soon is the same press. */
const SAME_PRESS_MS = 500;

/** npm's names for what `npm start` and `npx` run; any other script may well leave a platform behind. */
const NPM_STAYS = ["start", "npx"];
const LOOK_FOR_NPM_EVERY_MS = 500;

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
  const timer = watchNpm(() => controller.abort());
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      clearInterval(timer);
      for (const signal of SIGNALS) process.off(signal, onSignal);
    },
  };
}

/** A process whose parent ends gets another one. */
function watchNpm(onGone: () => void): NodeJS.Timeout | undefined {
  if (!NPM_STAYS.includes(process.env["npm_lifecycle_event"] ?? "")) return undefined;
  const { ppid } = process;
  const look = () => {
    if (process.ppid !== ppid) onGone();
  };
  return setInterval(look, LOOK_FOR_NPM_EVERY_MS).unref();
}

/** What ends a command early. */
export interface Ends {
  readonly interrupt: AbortSignal;
  /** Null without --timeout. */
  readonly timeout: AbortSignal | null;
}

/** Aborted by whichever comes first. */
export function firstOf({ interrupt, timeout }: Ends): AbortSignal {
  return timeout === null ? interrupt : AbortSignal.any([interrupt, timeout]);
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
