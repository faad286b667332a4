/**
 * `rollcall serve`: runs a platform on the state directory until it is stopped. With --watch it loads the code of
 * environments again when their files change.
 *
 * --watch never stops the platform for code that does not start: see `load` of src/local/platform.ts.
 */
import { withEnvironments } from "../../local/control.ts";
import type { EnvironmentPackage } from "../../local/environment-package.ts";
import { FolderWatch } from "../../local/folder-watch.ts";
import { COMMAND } from "../../local/package-root.ts";
import type { Platform } from "../../local/platform.ts";
import { stateDirectory } from "../../local/state-directory.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { portOf } from "../argument-values.ts";
import { command } from "../command-line.ts";
import { asCommandError, EXIT, unreachable, usageError } from "../exit.ts";
import { aborted, catchInterrupts } from "../interrupt.ts";
import { loadConnect } from "../on-platform.ts";
import { pageLink } from "../page-link.ts";
import { printJson, terminal } from "../terminal/terminal.ts";

export const SERVE = command({
  name: "serve",
  help: "run the platform on this machine",
  more: `It runs until ctrl-C; the next start uses the same data, in .rollcall or in ROLLCALL_DIR.`,
  flags: {
    env: { value: "E", repeatable: true, help: "your own environment: ./folder or a package" },
    watch: { help: "reload these environments when their code changes" },
    port: { value: "P", help: "default 8787; if busy, the next free port" },
    ephemeral: { help: "keep no data" },
    timeout: { value: "S", help: "stop after this many seconds" },
    json: { help: "print {url, key, pid, directory} when ready" },
  },
  async run(line) {
    line.none();
    const { boot, clientsOf, ownEnvironments } = await loadConnect();
    const json = line.on("json");
    const { print, log } = terminal(json);
    const read = () => ownEnvironments(line.all("env"), process.cwd());
    const environments = read();
    const watch = line.on("watch");
    if (watch && environments.length === 0) {
      throw usageError("--watch: needs --env with your own environment", "watch");
    }
    using interrupt = catchInterrupts();
    const stop = stopSignal(interrupt.signal, line.text("timeout"));
    const platform = await boot({
      directory: line.on("ephemeral") ? null : stateDirectory(process.env),
      ...{ environments, port: portOf(line.text("port")), signal: interrupt.signal, log },
    });
    try {
      const { url, key, directory } = platform;
      print(entryLines(url, key));
      await printPage(print, clientsOf(url, key, undefined).client, "/");
      if (json) printJson({ url, key, pid: process.pid, directory });
      if (watch) await serveWatching(platform, read, log, stop);
      else await untilStopped(platform.lost, stop);
      return EXIT.good;
    } finally {
      await platform.stop();
    }
  },
});

/** Prints a link to the page if stdout is a terminal; elsewhere the code in the link would only be stored in a log. */
export async function printPage(print: (text: string) => void, client: RollcallClient, path: string): Promise<void> {
  if (process.stdout.isTTY !== true) return;
  const { url } = await pageLink(client, path);
  print(`Page      ${url}\n          Signs in once, within 5 minutes; ${COMMAND} view creates another link.`);
}

/** The URLs, the key and the commands with which a user continues. */
export function entryLines(url: string, key: string): string {
  return [
    `Rollcall  ${url}`,
    `API key   ${key}`,
    `Try       curl -H "Authorization: Bearer ${key}" ${url}/v1/runs`,
  ].join("\n");
}

export function stopSignal(interrupt: AbortSignal, timeout: string | undefined): AbortSignal {
  if (timeout === undefined) return interrupt;
  const seconds = Number(timeout);
  if (!(seconds > 0)) throw usageError(`--timeout: ${timeout} is not a number of seconds`, "timeout");
  return AbortSignal.any([interrupt, AbortSignal.timeout(seconds * 1000)]);
}

/** Resolves when it is stopped. Throws if the platform is lost. */
export async function untilStopped(lost: Promise<Error>, stop: AbortSignal): Promise<void> {
  const reason = await Promise.race([lost, aborted(stop)]);
  if (reason instanceof Error) throw unreachable("the platform has stopped", reason);
}

/** Loads the environments again when their files change, until it is stopped. Throws if the platform is lost. */
async function serveWatching(
  platform: Platform,
  read: () => EnvironmentPackage[],
  log: (line: string) => void,
  stop: AbortSignal,
): Promise<void> {
  const folders = read().map(({ folder }) => folder);
  using watch = new FolderWatch(folders);
  const stopped = aborted(stop);
  log(`Watching ${folders.join(", ")}`);
  for (;;) {
    const reason = await Promise.race([platform.lost, stopped, watch.next()]);
    if (reason instanceof Error) throw unreachable("the platform has stopped", reason);
    if (stop.aborted) return;
    try {
      const environments = read();
      const before = platform.environments();
      await platform.load((held) => withEnvironments(held, environments));
      if (platform.environments() !== before) log(reloadedText(environments, platform));
    } catch (error) {
      if (stop.aborted) return;
      log(`${asCommandError(error).message}\nThe platform continues with its current code.`);
    }
  }
}

function reloadedText(environments: readonly EnvironmentPackage[], { url }: Platform): string {
  const names = environments.map(({ id, version }) => `${id}@${version}`).join(", ");
  return `Reloaded ${names} on ${url}; rollouts that pinned the old code end as environment_changed.`;
}
