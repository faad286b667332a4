/**
 * Handles Ctrl-C, SIGTERM and SIGHUP: the first signal asks the command to stop, the second stops it at once. The exit
 * of the npm process that started the command counts as the first signal: npm does not pass SIGHUP on, and it passes
 * SIGTERM only to the shell in between, which just exits.
 */
import { EXIT } from "./exit.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** npm and a terminal may both pass on one Ctrl-C; signals within this time count as the same press. */
const SAME_PRESS_MS = 500;

/** npm's names for the scripts of `npm start` and `npx`; any other script may intend to leave a platform running. */
const NPM_STAYS = ["start", "npx"];
const LOOK_FOR_NPM_EVERY_MS = 500;

/** Aborted by the first signal. `dispose` restores the default handling of signals. */
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
      // An exit handler of Miniflare ends workerd.
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

/** A process gets another parent when its parent ends. */
function watchNpm(onGone: () => void): NodeJS.Timeout | undefined {
  if (!NPM_STAYS.includes(process.env["npm_lifecycle_event"] ?? "")) return undefined;
  const { ppid } = process;
  const look = () => {
    if (process.ppid !== ppid) onGone();
  };
  return setInterval(look, LOOK_FOR_NPM_EVERY_MS).unref();
}

/** The signals that end a command early. */
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
