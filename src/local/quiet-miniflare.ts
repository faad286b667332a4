/** Miniflare as a part of a command: it leaves signals and stdout to that. */
import { Log, Miniflare, type MiniflareOptions } from "miniflare";

/** Miniflare ends the process on a signal, at once; how to stop is the command's to decide, so its handlers go. */
export function quietMiniflare(options: MiniflareOptions): Miniflare {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const before = signals.map((signal) => process.listeners(signal));
  const miniflare = new Miniflare(options);
  for (const [index, signal] of signals.entries()) {
    for (const listener of process.listeners(signal)) {
      if (!before[index]?.includes(listener)) process.removeListener(signal, listener);
    }
  }
  return miniflare;
}

/** Miniflare's own lines go to stderr: stdout belongs to the command. */
export class StderrLog extends Log {
  override log(message: string): void {
    process.stderr.write(`${message}\n`);
  }
}
