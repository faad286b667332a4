/** `rollcall serve`: a platform on the state directory, until it is told to stop. */
import { parseArgs } from "node:util";
import { stateDirectory } from "../local/state-directory.ts";
import { boot } from "./boot.ts";
import { EXIT, type ExitCode, unreachable, usageError } from "./exit.ts";
import { aborted, catchInterrupts } from "./interrupt.ts";
import { printJson, terminal } from "./terminal.ts";

const HELP = `Usage: rollcall serve [flags]

Runs the platform on this machine and stays up; ctrl-C stops it, and the next start goes on with the same data.
The data is in .rollcall, or where ROLLCALL_DIR says.

      --port P        default 8787; a busy port moves to the next free one
      --ephemeral     keep nothing
      --timeout S     stop after this many seconds
      --json          print {url, key, pid, directory} when ready
`;

export async function serveCommand(argv: readonly string[]): Promise<ExitCode> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      help: { type: "boolean", short: "h" },
      port: { type: "string" },
      ephemeral: { type: "boolean", default: false },
      timeout: { type: "string" },
      json: { type: "boolean", default: false },
    },
  });
  const term = terminal(values.json);
  if (values.help) {
    term.print(HELP);
    return EXIT.good;
  }
  using interrupt = catchInterrupts();
  const stop = stopSignal(interrupt.signal, values.timeout);
  const platform = await boot({
    directory: values.ephemeral ? null : stateDirectory(process.env),
    port: portOf(values.port),
    say: term.say,
  });
  try {
    term.print(doors(platform.url, platform.key));
    const { url, key, directory } = platform;
    if (values.json) printJson({ url, key, pid: process.pid, directory });
    await untilStopped(platform.lost, stop);
    return EXIT.good;
  } finally {
    await platform.stop();
  }
}

/** What a person needs to go on by hand. */
export function doors(url: string, key: string): string {
  return [
    `Rollcall  ${url}`,
    `API key   ${key}`,
    `Try       curl -H "Authorization: Bearer ${key}" ${url}/v1/runs`,
  ].join("\n");
}

export function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw usageError(`--port: ${text} is not a port`, "port");
  }
  return port;
}

export function stopSignal(interrupt: AbortSignal, timeout: string | undefined): AbortSignal {
  if (timeout === undefined) return interrupt;
  const seconds = Number(timeout);
  if (!(seconds > 0)) throw usageError(`--timeout: ${timeout} is no number of seconds`, "timeout");
  return AbortSignal.any([interrupt, AbortSignal.timeout(seconds * 1000)]);
}

/** Throws when the platform is lost instead. */
export async function untilStopped(lost: Promise<Error>, stop: AbortSignal): Promise<void> {
  const reason = await Promise.race([lost, aborted(stop)]);
  if (reason instanceof Error) throw unreachable("the platform is gone", reason);
}
