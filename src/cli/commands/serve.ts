/** `rollcall serve`: a platform on the state directory, until it is told to stop. */
import { rmSync } from "node:fs";
import type { EnvironmentPackage } from "../../local/environment-package.ts";
import { makeThrowAwayDirectory, stateDirectory } from "../../local/state-directory.ts";
import { portOf } from "../argument-values.ts";
import { type CommandLine, readCommandLine } from "../command-line.ts";
import { SERVE } from "../commands.ts";
import { boot } from "../connect.ts";
import { EXIT, type ExitCode, unreachable, usageError } from "../exit.ts";
import { aborted, catchInterrupts } from "../interrupt.ts";
import { ownEnvironments } from "../own-environment.ts";
import { printJson, terminal } from "../terminal/terminal.ts";
import { serveWatching } from "./serve-watch.ts";

export async function serveCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(SERVE, argv);
  line.none();
  const json = line.on("json");
  const { print, say } = terminal(json);
  const read = () => ownEnvironments(line.all("env"), process.cwd());
  const environments = read();
  if (line.on("watch") && environments.length === 0) {
    throw usageError("--watch: name an environment of your own with --env", "watch");
  }
  using interrupt = catchInterrupts();
  const stop = stopSignal(interrupt.signal, line.text("timeout"));
  using place = stateOf(line);
  const bootWith = (held: readonly EnvironmentPackage[], port = portOf(line.text("port"))) =>
    boot({ directory: place.directory, environments: held, port, signal: interrupt.signal, say });
  const platform = await bootWith(environments);
  const { url, key, directory } = platform;
  print(doors(url, key));
  if (json) printJson({ url, key, pid: process.pid, directory });
  if (line.on("watch")) {
    await serveWatching(platform, environments, { read, boot: bootWith, say, stop });
    return EXIT.good;
  }
  try {
    await untilStopped(platform.lost, stop);
    return EXIT.good;
  } finally {
    await platform.stop();
  }
}

/** Null for one that the platform makes and removes; one that is watched outlives its platforms. */
function stateOf(line: CommandLine<keyof typeof SERVE.flags>) {
  if (!line.on("ephemeral")) {
    return { directory: stateDirectory(process.env), [Symbol.dispose]: () => undefined };
  }
  if (!line.on("watch")) return { directory: null, [Symbol.dispose]: () => undefined };
  const directory = makeThrowAwayDirectory();
  const remove = () => rmSync(directory, { recursive: true, force: true });
  return { directory, [Symbol.dispose]: remove };
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
