/** `rollcall serve`: a platform on the state directory, until it is told to stop. */
import { stateDirectory } from "../local/state-directory.ts";
import { portOf } from "./argument-values.ts";
import { boot } from "./boot.ts";
import { readCommandLine } from "./command-line.ts";
import { SERVE } from "./commands.ts";
import { EXIT, type ExitCode, unreachable, usageError } from "./exit.ts";
import { aborted, catchInterrupts } from "./interrupt.ts";
import { ownEnvironments } from "./own-environment.ts";
import { printJson, terminal } from "./terminal.ts";

export async function serveCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(SERVE, argv);
  line.none();
  const json = line.on("json");
  const term = terminal(json);
  const environments = ownEnvironments(line.all("env"), process.cwd());
  using interrupt = catchInterrupts();
  const stop = stopSignal(interrupt.signal, line.text("timeout"));
  const platform = await boot({
    directory: line.on("ephemeral") ? null : stateDirectory(process.env),
    environments,
    port: portOf(line.text("port")),
    say: term.say,
  });
  try {
    term.print(doors(platform.url, platform.key));
    const { url, key, directory } = platform;
    if (json) printJson({ url, key, pid: process.pid, directory });
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
