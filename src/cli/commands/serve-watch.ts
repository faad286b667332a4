/**
 * `rollcall serve --watch`: a platform that takes over the code of environments as they are written.
 *
 * Invariants. A platform is stopped only when the new code is known to bundle and to start in workerd; until then it goes
 * on with the code it has. The new one has the same state and port.
 */
import { type EnvironmentPackage, NoEnvironmentPackage } from "../../local/environment-package.ts";
import { FolderWatch } from "../../local/folder-watch.ts";
import { PACKAGE_ROOT } from "../../local/package-root.ts";
import type { Platform } from "../../local/platform.ts";
import { asCommandError, unreachable } from "../exit.ts";
import { aborted } from "../interrupt.ts";

interface Watched {
  /** Reads the environments' packages as they are now. */
  readonly read: () => EnvironmentPackage[];
  readonly boot: (environments: readonly EnvironmentPackage[], port?: number) => Promise<Platform>;
  readonly say: (line: string) => void;
  readonly stop: AbortSignal;
}

/** Null while none could be started. */
interface Serving {
  readonly platform: Platform | null;
  readonly held: readonly EnvironmentPackage[];
}

/** Until it is told to stop; the platform is gone then. Throws when it is lost instead. */
export async function serveWatching(
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
  watched.say(`Watching ${folders.join(", ")}`);
  try {
    for (;;) {
      const lost: Promise<Error>[] = serving.platform === null ? [] : [serving.platform.lost];
      const reason = await Promise.race([...lost, stopped, watch.next()]);
      if (reason instanceof Error) throw unreachable("the platform is gone", reason);
      if (watched.stop.aborted) return;
      const fresh: readonly EnvironmentPackage[] | null = await wanted(serving, place, watched);
      if (fresh === null) continue;
      await serving.platform?.stop();
      serving = { platform: null, held: fresh };
      serving = { platform: await booted(fresh, place.port, watched), held: fresh };
    }
  } finally {
    await serving.platform?.stop();
  }
}

/** What is to be started now; null for nothing, and it is said why where something is wrong. */
async function wanted(
  { platform, held }: Serving,
  { directory }: { readonly directory: string },
  { read, say, stop }: Watched,
): Promise<readonly EnvironmentPackage[] | null> {
  try {
    return await startable({ read, held: platform === null ? [] : held, directory, stop });
  } catch (error) {
    if (stop.aborted) return null;
    say(wordsOf(error) + (platform === null ? "" : "\nThe platform goes on with the code it has."));
    return null;
  }
}

async function booted(
  environments: readonly EnvironmentPackage[],
  port: number,
  { boot, say }: Watched,
): Promise<Platform | null> {
  try {
    const platform = await boot(environments, port);
    say(reloadedText(environments, platform));
    return platform;
  } catch (error) {
    say(`${wordsOf(error)}\nNo platform runs until the next change.`);
    return null;
  }
}

interface Wanted {
  readonly read: () => EnvironmentPackage[];
  readonly held: readonly EnvironmentPackage[];
  readonly directory: string;
  readonly stop: AbortSignal;
}

/** The packages as they are now, bundled, and known to start; null where nothing that counts has changed. Else throws. */
async function startable({ read, held, directory, stop }: Wanted): Promise<readonly EnvironmentPackage[] | null> {
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
  return `Reloaded ${named(environments)} on ${url}; rollouts that pinned their old code end environment_changed.`;
}

function named(environments: readonly EnvironmentPackage[]): string {
  return environments.map(({ id, version }) => `${id}@${version}`).join(", ");
}
