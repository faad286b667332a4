/**
 * Chooses the platform for a command: the named one (which-platform.ts); else the one that runs on the state directory;
 * else that of the default profile; else an own platform that lives as long as the command. An own platform loads the
 * command's environment if its code is local. A running platform loads it, too, if it does not have the same code.
 */

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LoadRefusal, LoadReply } from "../local/control.ts";
import { isLocked } from "../local/directory-lock.ts";
import { DirectoryUnusable } from "../local/directory-unusable.ts";
import {
  type EnvironmentPackage,
  environmentPackagesIn,
  findInstalledEnvironment,
  isFolderReference,
  NoEnvironmentPackage,
  resolveEnvironmentPackage,
} from "../local/environment-package.ts";
import { answersHealthz } from "../local/healthz.ts";
import { PACKAGE_ROOT, sourcesHash } from "../local/package-root.ts";
import type { Platform } from "../local/platform.ts";
import { type ReadyFile, readReadyFile, stateDirectory } from "../local/state-directory.ts";
import { RollcallClient } from "../sdk/client.ts";
import { CommandError, EXIT, endBy, unreachable, usageError } from "./exit.ts";
import { LOCAL } from "./profiles.ts";
import { defaultProfile, type Elsewhere, namedPlatform, type PlatformAsked, projectNamed } from "./which-platform.ts";

export interface NamedEnvironment {
  /** As the user typed it. */
  readonly reference: string;
  /** The name to request from a platform: an id, or id@version. */
  readonly name: string;
  /** The local package with this name; null if there is none. */
  readonly here: EnvironmentPackage | null;
  /** The same package; null if it comes with Rollcall. */
  readonly own: EnvironmentPackage | null;
}

export interface BootOptions {
  /** Null for a platform that keeps nothing. */
  readonly directory: string | null;
  /** Loaded in addition to those that come with Rollcall. */
  readonly environments?: readonly EnvironmentPackage[];
  readonly port?: number | undefined;
  /** Where the platform stores its data. */
  readonly store?: "disk" | "memory" | undefined;
  /** For a command that only reads: the platform plays no rollouts, and no other command can find it. */
  readonly atRest?: boolean | undefined;
  /** Ends the boot when it is aborted by Ctrl-C or by --timeout. */
  readonly signal?: AbortSignal;
  readonly log: (line: string) => void;
}

export interface Connection {
  readonly client: RollcallClient;
  /** The same key in another project. */
  readonly inProject: (idOrName: string) => RollcallClient;
  readonly url: string;
  readonly key: string;
  /** The policy server of a local platform; null for a remote platform. */
  readonly policyUrl: string | null;
  /** The folder where commands keep data of the platform: the state directory, also for a remote platform. */
  readonly directory: string;
  /** The flags that name this platform in another command, each after a space; empty if none is needed. */
  readonly flags: string;
  /** The profile that named the platform; null without one. */
  readonly profile: string | null;
  /** The project in requests; undefined if they have none. */
  readonly project: string | undefined;
  /**
   * Whether the platform outlives the command (remote, running), ends with it (embedded), or does not even keep its
   * state (ephemeral).
   */
  readonly kind: "remote" | "running" | "embedded" | "ephemeral";
  /** The environment argument of the command, if it takes one. */
  readonly environment: NamedEnvironment | null;
  /** Resolves if the command's own platform is lost. */
  readonly lost: Promise<Error>;
  close(): Promise<void>;
}

export type BeforeBoot = (
  environment: NamedEnvironment,
  known: readonly string[],
  signal: AbortSignal,
) => Promise<void>;

export interface ConnectOptions extends PlatformAsked {
  readonly ephemeral: boolean;
  /** The environment argument of the command: an id, a folder or the name of an installed package. */
  readonly environment?: string | undefined;
  /** Called before an own platform is booted; `known`: ids of the environments of Rollcall. Throws what is wrong. */
  readonly beforeBoot?: BeforeBoot | undefined;
  /** For an own platform. */
  readonly port?: number | undefined;
  /** The command changes nothing: an own platform plays no rollouts. */
  readonly reads?: boolean;
  /** Aborted by Ctrl-C or by --timeout: ends the boot of an own platform, and the wait for the directory. */
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

const NEVER = new Promise<Error>(() => {
  // A platform of somebody else's is not watched: its calls fail when it goes.
});
const nothingToClose = () => Promise.resolve();

export async function connect({ log, ...options }: ConnectOptions): Promise<Connection> {
  const environment = options.environment === undefined ? null : nameEnvironment(options.environment, process.cwd());
  const { port, reads: atRest, signal, beforeBoot } = options;
  const project = projectNamed(options);
  const own = { port, signal, log, project, beforeBoot };
  if (options.ephemeral) return embed(null, environment, own);
  const named = namedPlatform(options);
  if (named !== null && named !== LOCAL) return await connectTo(named, environment, log);
  const directory = stateDirectory(process.env);
  await settled(directory, signal, log);
  const standing = named === LOCAL || (await runningOn(directory, project)) !== null ? null : defaultProfile(options);
  if (standing !== null) return await connectTo(standing, environment, log);
  const found = await runningOrOwn(directory, { signal, log, project }, () =>
    embed(directory, environment, { ...own, atRest }),
  );
  return "own" in found ? found.own : await useRunning(found.running, environment, own);
}

/** Uses the running platform, and first loads the code of the environment into it if it has other code or none. */
async function useRunning(
  running: Running,
  environment: NamedEnvironment | null,
  { log, signal }: Pick<OwnPlatform, "log" | "signal">,
): Promise<Connection> {
  const own = environment?.own ?? null;
  if (own !== null && !(await holds(running.client, own))) {
    const { replaced } = await loadInto(running, own, signal);
    const others = replaced ? "; unfinished runs of its earlier code end as environment_changed" : "";
    log(`Loaded ${own.id} from ${own.folder} into the platform at ${running.url}${others}.`);
  } else if (environment !== null) warnOfOtherBuild(running, environment, log);
  return { ...running, environment };
}

/** Throws NoEnvironmentPackage if the code does not start there. */
async function loadInto({ url, control }: Running, { folder }: EnvironmentPackage, signal: AbortSignal) {
  if (control === null) {
    throw usageError(`the platform at ${url} was started by an older Rollcall: restart it to play ${folder}`);
  }
  const response = await fetch(`${control.url}/environments`, {
    method: "POST",
    headers: { authorization: `Bearer ${control.key}`, "content-type": "application/json" },
    body: JSON.stringify({ folder }),
    signal,
  }).catch((error: unknown) => {
    if (signal.aborted) throw endBy(signal);
    throw unreachable(`the platform at ${url} does not load environments`, error);
  });
  const reply: unknown = await response.json();
  if (response.ok) return LoadReply.parse(reply);
  throw new NoEnvironmentPackage(LoadRefusal.parse(reply).message);
}

async function connectTo(
  { url, key, project, profile }: Elsewhere,
  environment: NamedEnvironment | null,
  log: (line: string) => void,
): Promise<Connection> {
  if (profile !== null)
    log(`On ${url}, with the profile ${profile}${project === undefined ? "" : `, project ${project}`}`);
  const connection = {
    ...connectionOf("remote", { url, key, policy_url: null }, environment, project),
    flags: profile === null ? ` --platform ${url}` : ` --profile ${profile}`,
    profile,
  };
  await warnOfOtherCode(connection, log);
  return connection;
}

/** How often, and for how long, a directory that is in use is checked again: a command that only reads ends soon. */
const LOOK_AGAIN_MS = 250;
const IN_USE_MS = 60_000;

/** The platform that runs on the directory, or an own one. Waits for another process that boots or reads there. */
async function runningOrOwn(
  directory: string,
  { signal, log, project }: Pick<ConnectOptions, "signal" | "log" | "project">,
  own: () => Promise<Connection>,
): Promise<{ readonly running: Running } | { readonly own: Connection }> {
  const began = performance.now();
  for (let tries = 0; ; tries += 1) {
    const running = await runningOn(directory, project);
    if (running !== null) return { running };
    try {
      return { own: await own() };
    } catch (thrown) {
      const inUse = thrown instanceof CommandError && thrown.failure.code === "in_use";
      if (!inUse || performance.now() - began > IN_USE_MS) throw thrown;
    }
    if (tries === 0) log(`${directory} is in use by another command: waiting for it.`);
    await sleep(LOOK_AGAIN_MS, undefined, { signal }).catch(() => {
      throw endBy(signal);
    });
  }
}

/** Waits while another process boots a platform there, or restarts its workerd: that platform will be the one to use. */
async function settled(directory: string, signal: AbortSignal, log: (line: string) => void): Promise<void> {
  const began = performance.now();
  for (let tries = 0; readReadyFile(directory) === null && isLocked(directory); tries += 1) {
    if (performance.now() - began > IN_USE_MS / 2) return;
    if (tries === 1) log(`${directory} is in use by another command: waiting for it.`);
    await sleep(LOOK_AGAIN_MS, undefined, { signal }).catch(() => {
      throw endBy(signal);
    });
  }
}

interface Running extends Connection {
  /** The build that it was started with; undefined if its ready file does not have it. */
  readonly build: string | undefined;
  /** Where it loads environments; null if it cannot. */
  readonly control: { readonly url: string; readonly key: string } | null;
}

/** The platform of a state directory, if it answers. */
async function runningOn(directory: string, project: string | undefined): Promise<Running | null> {
  const ready = readReadyFile(directory);
  if (ready === null || !(await answersHealthz(ready.url))) return null;
  const { build, control_url: url, key } = ready;
  const control = url === undefined ? null : { url, key };
  return { ...connectionOf("running", ready, null, project), build, control };
}

/** The running platform uses the code it was started with, even if the code here has changed since. */
function warnOfOtherBuild({ url, build }: Running, { name }: NamedEnvironment, log: (line: string) => void): void {
  if (build === undefined || build === sourcesHash(PACKAGE_ROOT)) return;
  log(
    `The platform at ${url} was started with other code of Rollcall than this one, and uses that for ${name}. ` +
      "To use this code, restart the platform.",
  );
}

function connectionOf(
  kind: "remote" | "running",
  { url, key, policy_url }: Pick<ReadyFile, "url" | "key" | "policy_url">,
  environment: NamedEnvironment | null,
  project: string | undefined,
): Connection {
  return {
    ...clientsOf(url, key, project),
    ...{ url, flags: "", profile: null, project, policyUrl: policy_url, kind, environment },
    directory: stateDirectory(process.env),
    ...{ lost: NEVER, close: nothingToClose },
  };
}

export function clientsOf(baseUrl: string, apiKey: string, project: string | undefined) {
  const inProject = (named: string | undefined) => new RollcallClient({ baseUrl, apiKey, project: named });
  return { client: inProject(project), inProject, key: apiKey };
}

/** A remote platform reports the code of the environment, but not the build of the rest. */
async function warnOfOtherCode({ client, url, environment }: Connection, log: (line: string) => void): Promise<void> {
  const here = environment?.here ?? null;
  if (here === null) return;
  const { data: held } = await client.environments.list();
  const same = held.find(({ id, version }) => id === here.id && version === here.version);
  if (same === undefined || same.digest === here.digest) return;
  log(`The platform at ${url} has other code of ${here.id}@${here.version} than this one, and uses that.`);
}

async function holds(client: RollcallClient, own: EnvironmentPackage): Promise<boolean> {
  const { data: held } = await client.environments.list();
  return held.some(({ id, digest }) => id === own.id && digest === own.digest);
}

type OwnPlatform = Pick<BootOptions, "atRest" | "port" | "log"> &
  Pick<ConnectOptions, "project" | "signal" | "beforeBoot">;

async function embed(
  directory: string | null,
  environment: NamedEnvironment | null,
  { project, beforeBoot, ...options }: OwnPlatform,
): Promise<Connection> {
  if (environment !== null && beforeBoot !== undefined) {
    const known = environmentPackagesIn(join(PACKAGE_ROOT, "environments")).map(({ id }) => id);
    await beforeBoot(environment, known, options.signal);
  }
  const own = environment?.own ?? null;
  const environments = own === null ? [] : [own];
  const platform = await boot({ directory, environments, ...options });
  return {
    ...clientsOf(platform.url, platform.key, project),
    ...{ url: platform.url, flags: "", profile: null, project },
    policyUrl: platform.policyUrl,
    directory: platform.directory,
    kind: directory === null ? "ephemeral" : "embedded",
    environment,
    lost: platform.lost,
    close: () => platform.stop(),
  };
}

/** Boots a platform in this process. Miniflare and wrangler are loaded only here because they take a second. */
export async function boot(options: BootOptions): Promise<Platform> {
  const { bootPlatform } = await import("../local/platform.ts");
  const { DirectoryInUse } = await import("../local/directory-lock.ts");
  try {
    return await bootPlatform(options);
  } catch (error) {
    if (options.signal?.aborted) throw endBy(options.signal);
    // The environment or the disk is at fault, not the platform.
    if (error instanceof NoEnvironmentPackage || error instanceof DirectoryUnusable) throw error;
    const inUse = error instanceof DirectoryInUse;
    throw new CommandError(EXIT.unreachable, {
      code: inUse ? "in_use" : "boot_failed",
      message: error instanceof Error ? error.message : String(error),
      type: "platform_error",
    });
  }
}

/**
 * Resolves the environment argument of a command: first the environments that come with Rollcall, then folders and
 * installed packages. Any other name is left to the platform, which may have it.
 */
export function nameEnvironment(reference: string, cwd: string): NamedEnvironment {
  const ours = environmentPackagesIn(join(PACKAGE_ROOT, "environments"));
  if (isFolderReference(reference)) {
    const own = refuseSameId(resolveEnvironmentPackage(reference, cwd), ours);
    return { reference, name: own.id, here: own, own: ours.includes(own) ? null : own };
  }
  const name = reference.replace(/^@[^/]+\//, "");
  const here = ours.find(({ id }) => id === name.split("@")[0]);
  if (here !== undefined) return { reference, name, here, own: null };
  const own = findInstalledEnvironment(reference, cwd);
  return { reference, name, here: own, own };
}

/** The packages that a platform loads in addition to those that come with Rollcall. */
export function ownEnvironments(references: readonly string[], cwd: string): EnvironmentPackage[] {
  const ours = environmentPackagesIn(join(PACKAGE_ROOT, "environments"));
  const found = references.map((reference) => {
    const known = ours.find(({ id }) => id === reference);
    return known ?? refuseSameId(resolveEnvironmentPackage(reference, cwd), ours);
  });
  const own = found.filter((environment) => !ours.includes(environment));
  const twice = own.find((environment, at) => own.some((it, i) => i < at && it.id === environment.id));
  if (twice === undefined) return own;
  throw usageError(`--env: two environments are called ${twice.id}: rename one of them`, "env");
}

/**
 * The package itself, or Rollcall's package if it is the same one. Refuses other code with the id of a Rollcall
 * environment.
 */
function refuseSameId(environment: EnvironmentPackage, ours: readonly EnvironmentPackage[]): EnvironmentPackage {
  const same = ours.find(({ id }) => id === environment.id);
  if (same === undefined) return environment;
  if (same.digest === environment.digest) return same;
  throw usageError(
    `${environment.id} is the name of a built-in environment; rename yours in ${join(environment.folder, "package.json")}`,
    "environment",
  );
}
