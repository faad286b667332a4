/**
 * `rollcall serve`: runs a platform on the state directory until it is stopped. With --watch it loads the code of
 * environments again when their files change.
 *
 * Invariants of --watch: a platform is stopped only after the new code has been bundled and started in workerd; until
 * then it continues with its old code. The new platform has the same state and port.
 */
import { rmSync } from "node:fs";
import { type EnvironmentPackage, NoEnvironmentPackage } from "../../local/environment-package.ts";
import { FolderWatch } from "../../local/folder-watch.ts";
import { PACKAGE_ROOT } from "../../local/package-root.ts";
import type { Platform } from "../../local/platform.ts";
import { makeThrowAwayDirectory, stateDirectory } from "../../local/state-directory.ts";
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
    using state = stateOf(line.on("ephemeral"), watch);
    const bootWith = (held: readonly EnvironmentPackage[], port = portOf(line.text("port"))) =>
      boot({ directory: state.directory, environments: held, port, signal: interrupt.signal, log });
    const platform = await bootWith(environments);
    const { url, key, directory } = platform;
    print(entryLines(url, key));
    await printPage(print, clientsOf(url, key, undefined).client, "/");
    if (json) printJson({ url, key, pid: process.pid, directory });
    if (watch) {
      await serveWatching(platform, environments, { read, boot: bootWith, log, stop });
      return EXIT.good;
    }
    try {
      await untilStopped(platform.lost, stop);
      return EXIT.good;
    } finally {
      await platform.stop();
    }
  },
});

/**
 * With a null directory, the platform makes and removes its own. With --watch the directory must outlive each platform.
 */
function stateOf(ephemeral: boolean, watch: boolean) {
  if (ephemeral && watch) {
    const directory = makeThrowAwayDirectory();
    return { directory, [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }) };
  }
  return { directory: ephemeral ? null : stateDirectory(process.env), [Symbol.dispose]: () => undefined };
}

/** Prints a link to the page if stdout is a terminal; elsewhere the code in the link would only be stored in a log. */
export async function printPage(print: (text: string) => void, client: RollcallClient, path: string): Promise<void> {
  if (process.stdout.isTTY !== true) return;
  const { url } = await pageLink(client, path);
  print(`Page      ${url}\n          Signs in once, within 5 minutes; rollcall view creates another link.`);
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

interface Watched {
  /** Reads the environments' packages as they are now. */
  readonly read: () => EnvironmentPackage[];
  readonly boot: (environments: readonly EnvironmentPackage[], port?: number) => Promise<Platform>;
  readonly log: (line: string) => void;
  readonly stop: AbortSignal;
}

/** Null while no platform could be started. */
interface Serving {
  readonly platform: Platform | null;
  readonly held: readonly EnvironmentPackage[];
}

/** Resolves when it is stopped; the platform has stopped then too. Throws if the platform is lost. */
async function serveWatching(
  first: Platform,
  environments: readonly EnvironmentPackage[],
  watched: Watched,
): Promise<void> {
  const { directory, url } = first;
  const place = { directory, port: Number(new URL(url).port) };
  const folders = environments.map(({ folder }) => folder);
  using watch = new FolderWatch(folders);
  let serving: Serving = { platform: first, held: environments };
  const stopped = aborted(watched.stop);
  watched.log(`Watching ${folders.join(", ")}`);
  try {
    for (;;) {
      const lost: Promise<Error>[] = serving.platform === null ? [] : [serving.platform.lost];
      const reason = await Promise.race([...lost, stopped, watch.next()]);
      if (reason instanceof Error) throw unreachable("the platform has stopped", reason);
      if (watched.stop.aborted) return;
      const fresh: readonly EnvironmentPackage[] | null = await changedPackages(serving, place, watched);
      if (fresh === null) continue;
      await serving.platform?.stop();
      serving = { platform: null, held: fresh };
      serving = { platform: await bootChanged(fresh, place.port, watched), held: fresh };
    }
  } finally {
    await serving.platform?.stop();
  }
}

/** The packages to start now. Null if nothing is to be started; prints the error if there is one. */
async function changedPackages(
  { platform, held }: Serving,
  { directory }: { readonly directory: string },
  watched: Watched,
): Promise<readonly EnvironmentPackage[] | null> {
  try {
    return await startable(watched, platform === null ? [] : held, directory);
  } catch (error) {
    if (watched.stop.aborted) return null;
    watched.log(wordsOf(error) + (platform === null ? "" : "\nThe platform continues with its current code."));
    return null;
  }
}

async function bootChanged(
  environments: readonly EnvironmentPackage[],
  port: number,
  { boot, log }: Watched,
): Promise<Platform | null> {
  try {
    const platform = await boot(environments, port);
    log(reloadedText(environments, platform));
    return platform;
  } catch (error) {
    log(`${wordsOf(error)}\nThe platform is stopped until the next change.`);
    return null;
  }
}

/**
 * The packages as they are now, bundled and tested to start; null if nothing relevant has changed. Throws if they do
 * not build or start.
 */
async function startable(
  { read, stop }: Watched,
  held: readonly EnvironmentPackage[],
  directory: string,
): Promise<readonly EnvironmentPackage[] | null> {
  const environments = read();
  const changed = environments.filter(({ digest }) => held.every((it) => it.digest !== digest));
  if (changed.length === 0) return null;
  const { tryInWorkerd } = await import("../../local/try-in-workerd.ts");
  const { bundleFor } = await import("../../local/platform.ts");
  await bundleFor({ environments, signal: stop }, PACKAGE_ROOT, directory);
  for (const environment of changed) {
    const { refused } = await tryInWorkerd(environment);
    if (refused === null) continue;
    throw new NoEnvironmentPackage(`${environment.entry} cannot be loaded in a Worker: ${refused}`);
  }
  return environments;
}

function wordsOf(error: unknown): string {
  return asCommandError(error).message;
}

function reloadedText(environments: readonly EnvironmentPackage[], { url }: Platform): string {
  const names = environments.map(({ id, version }) => `${id}@${version}`).join(", ");
  return `Reloaded ${names} on ${url}; rollouts that pinned the old code end as environment_changed.`;
}
