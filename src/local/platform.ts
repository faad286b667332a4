/**
 * A complete platform on this machine: the bundle that is deployed, in a real workerd, with a state directory.
 *
 * Invariants. The directory is locked before anything is read or started. `platform.json` exists only while `/healthz`
 * answers: it is removed when workerd dies and written again for the next one. If any of the processes is killed at any
 * moment, the next boot can take over the directory.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type PolicyServer, startPolicyServer } from "@rollcall/policy/policy-server";
import { LogLevel, type Miniflare, MiniflareCoreError } from "miniflare";
import { messageOf } from "../contract/errors.ts";
import { LIMITS } from "../contract/limits.ts";
import { bundleAssets } from "./assets.ts";
import { bundleWorker, bundleWorkerWith, type WorkerParts } from "./bundle.ts";
import { startControl } from "./control.ts";
import { DirectoryInUse, type DirectoryLock, lockDirectory } from "./directory-lock.ts";
import { directoryFault } from "./directory-unusable.ts";
import { type EnvironmentPackage, environmentPackage, NoEnvironmentPackage } from "./environment-package.ts";
import { healthOf } from "./healthz.ts";
import { tryEnvironmentModule } from "./load-environment.ts";
import { isLocalKeySpent, migrate, refuseForeignData, seedAccount } from "./migrate.ts";
import { HeldOutput, miniflareOptions, quietMiniflare, StderrLog, startFailure } from "./miniflare.ts";
import { liveObjectQuota, openFileLimit, quotaText } from "./open-files.ts";
import { PACKAGE_ROOT, sourcesHash } from "./package-root.ts";
import { DEFAULT_PORT, freePort, unusedPort } from "./ports.ts";
import {
  apiKeyOf,
  type Deaths,
  keepPolicyPort,
  localAccount,
  makeDirectory,
  makeThrowAwayDirectory,
  NO_DEATHS,
  newApiKeyOf,
  noteDeaths,
  noteRunning,
  noteStopped,
  policyPort,
  removeReadyFile,
  secretOf,
  writeReadyFile,
} from "./state-directory.ts";
import { refuseDamage } from "./store-damage.ts";
import { placeStore, type StorePlace } from "./store-place.ts";
import { WorkerdWatch } from "./workerd-watch.ts";

export interface PlatformOptions {
  /** The state directory; null for a temporary one, which is removed at the stop. */
  readonly directory: string | null;
  /** Where to put its store: see store-place.ts. */
  readonly store?: "disk" | "memory" | undefined;
  /** The first port to try; if it is busy, the next free port is used. */
  readonly port?: number | undefined;
  /** Read-only: no rollouts are played, and no ready file is written. */
  readonly atRest?: boolean | undefined;
  /** Prints one line for the user. */
  readonly log: (line: string) => void;
  /** Environments to include, in addition to those that come with Rollcall. */
  readonly environments?: readonly EnvironmentPackage[] | undefined;
  /** The folder of wrangler.toml; this package, unless a test uses another Worker. */
  readonly root?: string | undefined;
  /** Another entry module around the root's Worker, and the folder of its bundle; for tests. */
  readonly worker?: Pick<WorkerParts, "entry" | "folder"> | undefined;
  /** The folder of the page and the other assets, if it is not that of the root; for tests. */
  readonly page?: string | undefined;
  /** Values that replace those of wrangler.toml; for tests and benchmarks. */
  readonly bindings?: Readonly<Record<string, string | number>> | undefined;
  /**
   * How many D1 databases it has; default 1. A state directory must not be booted with fewer than before. For tests.
   */
  readonly databases?: number | undefined;
  /** Milliseconds without an answer after which workerd is restarted; default 30 s. */
  readonly hungAfterMs?: number | undefined;
  /** If it is aborted during the boot, everything is undone and the boot rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface Platform {
  readonly url: string;
  readonly key: string;
  readonly directory: string;
  readonly store: StorePlace;
  /** The address of the policy server, ending with /v1. */
  readonly policyUrl: string;
  workerdPid(): number;
  /** The environments that it has besides those of Rollcall. */
  environments(): readonly EnvironmentPackage[];
  /**
   * Continues with the environments that `change` returns, with the same state, port and policy; calls in flight are lost and
   * sent again. Until the new code was started for a trial and bundled, nothing changes. Rejects if it does not start: the
   * platform then continues with its previous code. Environments whose folders have changed meanwhile are dropped. Calls follow each other; one that changes nothing resolves at once.
   */
  load(change: (held: readonly EnvironmentPackage[]) => readonly EnvironmentPackage[]): Promise<void>;
  /** Resolves with the reason if workerd died and could not be restarted. Never rejects. */
  readonly lost: Promise<Error>;
  /** Ends workerd, removes the ready file and unlocks the directory. Unfinished work continues at the next boot. */
  stop(): Promise<void>;
}

/** Longer than any single computation of a rollout: slow work must not be mistaken for a hang. */
const HUNG_AFTER_MS = 30_000;

/** Steps to undo at the stop, last first. */
type Undo = (() => void | Promise<void>)[];

/** Resolves once `/healthz` answers 200. Throws DirectoryInUse if another process has the directory. */
export async function bootPlatform(options: PlatformOptions): Promise<Platform> {
  const undo: Undo = [];
  const output = new HeldOutput((line) => process.stderr.write(`${line}\n`));
  const loads: Loads = { last: Promise.resolve(), refused: false };
  const stop = async () => {
    loads.refused = true;
    await loads.last;
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const directory = openDirectory(options.directory, undo);
    const lock = await lockDirectory(directory);
    undo.push(() => lock.release());
    if (lock.endedOrphan !== null) {
      options.log(`Ended workerd ${lock.endedOrphan.pid}, left behind by an earlier run.`);
    }
    removeReadyFile(directory);
    const platform = await start(options, directory, { lock, undo, output, loads });
    output.release();
    return Object.assign(platform, { stop });
  } catch (error) {
    const { directory } = options;
    const said = error instanceof DirectoryInUse || error instanceof NoEnvironmentPackage;
    const fault = said || directory === null ? error : directoryFault(error, directory);
    if (fault === error) output.release();
    await stop();
    throw fault;
  }
}

function openDirectory(directory: string | null, undo: Undo): string {
  if (directory !== null) {
    makeDirectory(directory);
    return directory;
  }
  const made = makeThrowAwayDirectory();
  undo.push(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Calls of `load`. */
interface Loads {
  /** The last one, whether it succeeds or not. */
  last: Promise<unknown>;
  /** The platform stops. */
  refused: boolean;
}

/** The resources of one boot. */
interface Boot {
  readonly loads: Loads;
  readonly lock: DirectoryLock;
  readonly undo: Undo;
  readonly output: HeldOutput;
}

async function start(options: PlatformOptions, directory: string, boot: Boot): Promise<Omit<Platform, "stop">> {
  const root = options.root ?? PACKAGE_ROOT;
  const migrations = join(root, "migrations");
  refuseDamage(directory, options.log);
  refuseForeignData(directory, migrations);
  const quota = options.atRest ? null : quotaText(openFileLimit());
  if (quota !== null) options.log(quota);
  const store = placeStore(directory, options.store);
  const build = sourcesHash(root);
  const page = options.page ?? (await bundleAssets(root, options.log));
  options.signal?.throwIfAborted();
  const policy = await startPolicy(directory, options.log);
  boot.undo.push(() => policy.stop());
  const control =
    options.atRest === true ? null : await startControl({ root, log: options.log, platform: () => platform });
  if (control !== null) boot.undo.push(() => control.stop());
  const { promise: lost, resolve: lose } = Promise.withResolvers<Error>();
  let held: readonly EnvironmentPackage[] = options.environments ?? [];
  let key = apiKeyOf(directory);
  /** Starts workerd with these environments: on this port, or at first on a free one. */
  const up = async (environments: readonly EnvironmentPackage[], port: number | null) => {
    const bundle = await bundleFor({ ...options, environments }, root, directory);
    options.signal?.throwIfAborted();
    const { url, miniflare, watch, letGoOn } = await launch(options, boot, port, {
      root,
      bundle,
      page,
      directory,
      store: store.path,
      databases: options.databases,
      // A read-only platform ends nothing, and must not overwrite how the last one ended.
      deathsBefore: options.atRest === true ? NO_DEATHS : noteRunning(directory),
      bindings: {
        LIVE_OBJECT_CEILING: liveObjectQuota(openFileLimit()),
        // The network is the user's own, and their models run on it.
        ALLOW_PRIVATE_ENDPOINTS: "true",
        // No proxy stands between this machine and its models.
        SILENCE_LIMIT_S: 600,
        // One isolate has all of this machine's memory, and all of its work.
        MEMORY_BUDGET_MIB: 1024,
        ROLLOUT_CHARACTERS: LIMITS.rolloutCharacters,
        ROLLCALL_SECRET: secretOf(directory),
        AT_REST: String(options.atRest ?? false),
        ...collectorOf(process.env),
        ...options.bindings,
      },
      onUp: (address, pid) => {
        if (control === null || boot.lock.isLost()) return;
        writeReadyFile(directory, {
          url: address,
          key,
          pid: process.pid,
          workerd_pid: pid,
          started_at: Math.floor(Date.now() / 1000),
          policy_url: policy.url,
          control_url: control.url,
          build,
        });
      },
      onDown: () => {
        if (!boot.lock.isLost()) removeReadyFile(directory);
      },
    }).catch((error: unknown) => {
      throw faultOf(error, bundle, environments);
    });
    try {
      options.signal?.throwIfAborted();
      key = await prepareDatabase(miniflare, watch, migrations, { directory, databases: options.databases ?? 1 });
      options.signal?.throwIfAborted();
      letGoOn();
      await watch.begin();
    } catch (error) {
      await endWorkerd(boot);
      throw error;
    }
    void watch.lost.then(lose);
    return { url, watch };
  };
  let { url, watch } = await up(held, null);
  const again = async (environments: readonly EnvironmentPackage[]) => {
    ({ url, watch } = await portFree(() => up(environments, Number(new URL(url).port))));
    held = environments;
  };
  const reload = async (change: (held: readonly EnvironmentPackage[]) => readonly EnvironmentPackage[]) => {
    const wanted = change(held);
    if (wanted.every(({ digest }) => held.some((it) => it.digest === digest))) return;
    const environments = wanted.filter((one) => !held.includes(one) || isUnchanged(one, options.log));
    await tryToStart(environments, held);
    await bundleFor({ ...options, environments }, root, directory);
    try {
      await endWorkerd(boot);
      await again(environments);
    } catch (error) {
      await again(held.filter((one) => isUnchanged(one, options.log))).catch((lostToo: unknown) => {
        lose(new Error(`it did not start again: ${messageOf(lostToo)}`));
      });
      throw error;
    }
  };
  const { loads } = boot;
  const platform: Omit<Platform, "stop"> = {
    ...{ url, directory, store, policyUrl: policy.url, lost },
    get key() {
      return key;
    },
    workerdPid: () => watch.pid(),
    environments: () => held,
    load: (change) => {
      const next = loads.last.then(async () => {
        if (loads.refused) throw new Error("the platform stops");
        await reload(change);
      });
      loads.last = Promise.allSettled([next]);
      return next;
    },
  };
  return platform;
}

/** The last step of `undo` ends workerd, while one runs. */
async function endWorkerd({ undo }: Pick<Boot, "undo">): Promise<void> {
  await undo.pop()?.();
}

const PORT_TRIES = 40;
const PORT_EVERY_MS = 250;

/** Between the end of one workerd and the start of the next, another process may use the port for a moment. */
async function portFree<T>(start: () => Promise<T>): Promise<T> {
  for (let left = PORT_TRIES; ; left -= 1) {
    try {
      return await start();
    } catch (error) {
      const isTaken = error instanceof MiniflareCoreError && error.code === "ERR_ADDRESS_IN_USE";
      if (!isTaken || left === 0) throw error;
    }
    await sleep(PORT_EVERY_MS);
  }
}

/**
 * Whether the folder still has the code that was loaded. A bundle is made from the folders, and no other code may run
 * under the digest of a run, so an environment whose folder has changed is dropped.
 */
function isUnchanged({ id, folder, digest }: EnvironmentPackage, log: (line: string) => void): boolean {
  try {
    if (environmentPackage(folder).digest === digest) return true;
  } catch (error) {
    if (!(error instanceof NoEnvironmentPackage)) throw error;
  }
  log(`${folder} has changed since ${id} was loaded: unfinished runs of it end as environment_changed.`);
  return false;
}

/** Starts the new environments, each in a workerd of its own. Throws NoEnvironmentPackage if one does not start. */
async function tryToStart(
  environments: readonly EnvironmentPackage[],
  held: readonly EnvironmentPackage[],
): Promise<void> {
  const { tryInWorkerd } = await import("./try-in-workerd.ts");
  for (const environment of environments.filter(({ digest }) => held.every((it) => it.digest !== digest))) {
    await tryEnvironmentModule(environment);
    const { refused } = await tryInWorkerd(environment);
    if (refused === null) continue;
    throw new NoEnvironmentPackage(`${environment.entry} cannot be loaded in a Worker: ${refused}`);
  }
}

/**
 * Migrates the D1 databases and seeds the account in the first. Miniflare's access to a database blocks this thread, including the watch
 * and all signals, until workerd answers. So no work that may have hung a previous workerd continues before this is
 * done. If workerd dies meanwhile, waits for the next one and tries again. Returns the accepted key. A new key is
 * stored in the directory before the database: after a kill in between, the next boot finds the old key spent.
 */
async function prepareDatabase(
  miniflare: Miniflare,
  watch: WorkerdWatch,
  migrations: string,
  { directory, databases }: { readonly directory: string; readonly databases: number },
): Promise<string> {
  const account = localAccount(directory);
  for (;;) {
    await watch.answers();
    const deaths = watch.deaths();
    try {
      const database = await miniflare.getD1Database("DB");
      await migrate(database, migrations);
      for (let number = 1; number < databases; number += 1) {
        await migrate(await miniflare.getD1Database(`DB_${number}`), migrations);
      }
      const isSpent = await isLocalKeySpent(database, account.keyId);
      const key = isSpent ? newApiKeyOf(directory) : apiKeyOf(directory);
      await seedAccount(database, { ...account, key }, Date.now());
      return key;
    } catch (error) {
      if (!(await watch.hasDiedSince(deaths))) throw error;
    }
  }
}

/** Builds the Worker of a platform if it is not up to date, so that a boot finds it. */
export function bundleFor(
  options: Pick<PlatformOptions, "environments" | "worker" | "signal">,
  root: string,
  directory: string,
): Promise<string> {
  const { environments = [], worker, signal } = options;
  if (environments.length === 0 && worker === undefined) return bundleWorker(root, signal);
  const own = { entry: join(root, "src/index.ts"), folder: join(directory, "worker"), signal };
  return bundleWorkerWith(root, { environments, ...own, ...worker });
}

/** Without environments the Worker is known to start, so their code is what workerd refuses. */
function faultOf(error: unknown, bundle: string, own: readonly EnvironmentPackage[]): unknown {
  if (own.length === 0 || !(error instanceof MiniflareCoreError)) return error;
  const why = startFailure(error.message, bundle);
  if (why === null) return error;
  const named = own.map(({ entry }) => entry).join(", ");
  return new NoEnvironmentPackage(`${named} cannot be loaded in a Worker: ${why}`, { cause: error });
}

interface Launch {
  readonly root: string;
  readonly bundle: string;
  readonly page: string;
  readonly directory: string;
  readonly store: string;
  readonly databases: number | undefined;
  /** Workerds before this boot that were not stopped in an orderly way, each soon after the previous one. */
  readonly deathsBefore: Deaths;
  readonly bindings: Readonly<Record<string, string | number>>;
  readonly onUp: (url: string, workerdPid: number) => void;
  readonly onDown: () => void;
}

interface Launched {
  readonly url: string;
  readonly miniflare: Miniflare;
  readonly watch: WorkerdWatch;
  /** Lets the unfinished work of earlier workerds continue. */
  readonly letGoOn: () => void;
}

/** The collector for spans, from the same variables as in a deployment. */
function collectorOf(given: NodeJS.ProcessEnv): Record<string, string> {
  const named = ["OTLP_ENDPOINT", "OTLP_HEADERS", "OTLP_CONTENT"].map((name) => [name, given[name] ?? ""] as const);
  return Object.fromEntries(named.filter(([, value]) => value !== ""));
}

/**
 * Starts workerd on this port, or, if it is null, on the first free one. A port may be taken after it was checked: then the
 * next one is tried.
 */
async function launch(options: PlatformOptions, boot: Boot, on: number | null, what: Launch): Promise<Launched> {
  if (on !== null) return await launchOn(on, options, boot, what);
  const wanted = options.port ?? DEFAULT_PORT;
  for (let from = wanted; ; ) {
    const port = await freePort(from);
    try {
      const launched = await launchOn(port, options, boot, what);
      if (port !== wanted) options.log(`Port ${wanted} is busy; using ${port}.`);
      return launched;
    } catch (error) {
      if (!(error instanceof MiniflareCoreError) || error.code !== "ERR_ADDRESS_IN_USE") throw error;
      from = port + 1;
    }
  }
}

async function launchOn(
  port: number,
  options: PlatformOptions,
  { lock, undo, output }: Boot,
  what: Launch,
): Promise<Launched> {
  const url = `http://127.0.0.1:${port}`;
  const entryPort = await unusedPort();
  const watch = new WorkerdWatch({
    entryPort,
    lock,
    log: options.log,
    health: () => healthOf(url),
    hungAfterMs: options.hungAfterMs ?? HUNG_AFTER_MS,
    onUp: (pid) => what.onUp(url, pid),
    onDown: what.onDown,
    soonDeaths: what.deathsBefore,
    onDeath: (deaths) => {
      if (options.atRest !== true && !lock.isLost()) noteDeaths(what.directory, deaths);
    },
  });
  const { promise: begun, resolve: letGoOn } = Promise.withResolvers<void>();
  const runtime = await miniflareOptions({
    ...what,
    bindings: { ...what.bindings, LOCAL_PORT: port },
    port,
    entryPort,
    lastEnd: async () => {
      await begun;
      return watch.soonDeaths();
    },
    log: new StderrLog(LogLevel.ERROR),
    onOutput: (line) => output.line(line),
    onRestart: () => watch.restarted(),
  });
  const miniflare = quietMiniflare(runtime);
  try {
    await Promise.all([miniflare.ready, watch.find()]);
  } catch (error) {
    await watch.stop();
    // The failure is known; a further failure to dispose adds nothing.
    await Promise.allSettled([miniflare.dispose()]);
    throw error;
  }
  undo.push(async () => {
    const orderly = await watch.stop();
    await miniflare.dispose();
    if (options.atRest === true || lock.isLost()) return;
    const { deaths, byItself } = watch.soonDeaths();
    if (orderly) noteStopped(what.directory);
    else noteDeaths(what.directory, { deaths, byItself: byItself + 1 });
  });
  return { url, miniflare, watch, letGoOn };
}

/** Belongs to the platform, not to a command: a run continues after the command that created it has ended. */
async function startPolicy(directory: string, log: (line: string) => void): Promise<PolicyServer> {
  const policy = await startPolicyServer({
    port: policyPort(directory),
    onLost: (reason) => log(`The policy server died: ${reason}. Restart Rollcall to start it again.`),
  });
  keepPolicyPort(directory, policy.port);
  return policy;
}
