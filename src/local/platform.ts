/**
 * A whole platform on this machine: the bundle that deploys, in real workerd, on a directory of its own.
 *
 * Invariants. The directory is locked before anything is read or started. `platform.json` is there only while
 * `/healthz` answers: it goes when workerd dies and comes back with the next one. Killing any of the processes at any
 * moment leaves a directory that the next boot takes over.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type PolicyServer, startPolicyServer } from "@rollcall/policy/policy-server";
import { LogLevel, type Miniflare, MiniflareCoreError } from "miniflare";
import { bundleWorker, bundleWorkerWith, type WorkerParts } from "./bundle.ts";
import { DirectoryInUse, type DirectoryLock, lockDirectory } from "./directory-lock.ts";
import { directoryFault } from "./directory-unusable.ts";
import { type EnvironmentPackage, NoEnvironmentPackage } from "./environment-package.ts";
import { healthOf } from "./healthz.ts";
import { isLocalKeySpent, migrate, refuseForeignData, seedAccount } from "./migrate.ts";
import { HeldOutput, miniflareOptions, quietMiniflare, StderrLog, startFailure } from "./miniflare.ts";
import { ceilingText, liveObjectCeiling, openFileLimit } from "./open-files.ts";
import { PACKAGE_ROOT, sourcesHash } from "./package-root.ts";
import { bundlePage } from "./page-bundle.ts";
import { DEFAULT_PORT, freePort } from "./ports.ts";
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
  /** The state directory; null for a throw-away one, removed at the stop. */
  readonly directory: string | null;
  /** Where its store is to be: store-place.ts. */
  readonly store?: "disk" | "memory" | undefined;
  /** Tried first; a busy one moves to the next free. */
  readonly port?: number | undefined;
  /** It only answers: nothing is played, and nobody else finds it. */
  readonly atRest?: boolean | undefined;
  /** One line for the person who watches. */
  readonly say: (line: string) => void;
  /** Held beside those that come with Rollcall. */
  readonly environments?: readonly EnvironmentPackage[] | undefined;
  /** The folder of wrangler.toml; this package unless a test brings a Worker of its own. */
  readonly root?: string | undefined;
  /** Another entry module around the root's Worker, and the folder of its bundle; for tests. */
  readonly worker?: Pick<WorkerParts, "entry" | "folder"> | undefined;
  /** Which values replace those of wrangler.toml; for tests and benchmarks. */
  readonly bindings?: Readonly<Record<string, string | number>> | undefined;
  /** Milliseconds without any answer after which workerd is ended and started again: 30 s unless a test says otherwise. */
  readonly hungAfterMs?: number | undefined;
  /** Aborted while the platform boots: what was begun is undone, and the boot rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface Platform {
  readonly url: string;
  readonly key: string;
  readonly directory: string;
  readonly store: StorePlace;
  /** The policy server, up to and including /v1. */
  readonly policyUrl: string;
  workerdPid(): number;
  /** Resolves with the reason if workerd died and could not be started again. Never rejects. */
  readonly lost: Promise<Error>;
  /** Ends workerd, removes the ready file and gives the directory back. Work under way goes on at the next boot. */
  stop(): Promise<void>;
}

/** Longer than anything that a rollout computes in one go: what is slow must not be taken for stuck. */
const HUNG_AFTER_MS = 30_000;

/** What to undo at the stop, last first. */
type Undo = (() => void | Promise<void>)[];

/** Resolves once `/healthz` answers 200. Throws DirectoryInUse when another process has the directory. */
export async function bootPlatform(options: PlatformOptions): Promise<Platform> {
  const undo: Undo = [];
  const output = new HeldOutput((line) => process.stderr.write(`${line}\n`));
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const directory = openDirectory(options.directory, undo);
    const lock = await lockDirectory(directory);
    undo.push(() => lock.release());
    if (lock.endedOrphan !== null) {
      options.say(`Ended workerd ${lock.endedOrphan.pid}, left behind by an earlier run.`);
    }
    removeReadyFile(directory);
    const platform = await start(options, directory, { lock, undo, output });
    output.release();
    return { ...platform, stop };
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

/** What belongs to one boot. */
interface Boot {
  readonly lock: DirectoryLock;
  readonly undo: Undo;
  readonly output: HeldOutput;
}

async function start(options: PlatformOptions, directory: string, boot: Boot): Promise<Omit<Platform, "stop">> {
  const root = options.root ?? PACKAGE_ROOT;
  const migrations = join(root, "migrations");
  refuseDamage(directory, options.say);
  refuseForeignData(directory, migrations);
  const ceiling = options.atRest ? null : ceilingText(openFileLimit());
  if (ceiling !== null) options.say(ceiling);
  const store = placeStore(directory, options.store);
  const build = sourcesHash(root);
  const page = await bundlePage(root);
  const bundle = await bundleFor(options, root, directory);
  options.signal?.throwIfAborted();
  const policy = await startPolicy(directory, options.say);
  boot.undo.push(() => policy.stop());
  let key = apiKeyOf(directory);
  const { url, miniflare, watch, letGoOn } = await launch(options, boot, {
    root,
    bundle,
    page,
    directory,
    store: store.path,
    // What only reads ends nothing, and must not hide how the last one ended.
    deathsBefore: options.atRest === true ? NO_DEATHS : noteRunning(directory),
    bindings: {
      LIVE_OBJECT_CEILING: liveObjectCeiling(openFileLimit()),
      // Here the network is the person's own: their models answer on it.
      ALLOW_PRIVATE_ENDPOINTS: "true",
      ROLLCALL_SECRET: secretOf(directory),
      AT_REST: String(options.atRest ?? false),
      ...collectorOf(process.env),
      ...options.bindings,
    },
    onUp: (address, pid) => {
      if (options.atRest || boot.lock.isLost()) return;
      writeReadyFile(directory, {
        url: address,
        key,
        pid: process.pid,
        workerd_pid: pid,
        started_at: Math.floor(Date.now() / 1000),
        policy_url: policy.url,
        build,
      });
    },
    onDown: () => {
      if (!boot.lock.isLost()) removeReadyFile(directory);
    },
  }).catch((error: unknown) => {
    throw faultOf(error, bundle, options.environments ?? []);
  });
  options.signal?.throwIfAborted();
  key = await prepareDatabase(miniflare, watch, migrations, directory);
  options.signal?.throwIfAborted();
  letGoOn();
  await watch.begin();
  const workerdPid = () => watch.pid();
  return { url, key, directory, store, policyUrl: policy.url, workerdPid, lost: watch.lost };
}

/**
 * Miniflare's way to a database blocks this thread until workerd has answered: with it the watch, and every signal. So nothing
 * that may have hung a workerd before goes on until this is through. One that dies meanwhile is waited for, and asked again.
 * Returns the key that is let in. A new one stands in the directory before the database knows it: cut off in between, the
 * next boot finds the old one spent as before.
 */
async function prepareDatabase(
  miniflare: Miniflare,
  watch: WorkerdWatch,
  migrations: string,
  directory: string,
): Promise<string> {
  const account = localAccount(directory);
  for (;;) {
    await watch.answers();
    const deaths = watch.deaths();
    try {
      const database = await miniflare.getD1Database("DB");
      await migrate(database, migrations);
      const isSpent = await isLocalKeySpent(database, account.keyId);
      const key = isSpent ? newApiKeyOf(directory) : apiKeyOf(directory);
      await seedAccount(database, { ...account, key }, Date.now());
      return key;
    } catch (error) {
      if (!(await watch.hasDiedSince(deaths))) throw error;
    }
  }
}

/** The Worker of a platform, made now if it is not up to date: a boot then finds it. */
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

/** Without them the Worker is known to start: what workerd refuses is in their code. */
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
  /** Workerds before this boot's first that were not stopped in order, one soon after the other. */
  readonly deathsBefore: Deaths;
  readonly bindings: Readonly<Record<string, string | number>>;
  readonly onUp: (url: string, workerdPid: number) => void;
  readonly onDown: () => void;
}

interface Launched {
  readonly url: string;
  readonly miniflare: Miniflare;
  readonly watch: WorkerdWatch;
  /** What earlier workerds left under way goes on from now. */
  readonly letGoOn: () => void;
}

/** Where spans go, as a deployment's vars and secret say it. */
function collectorOf(given: NodeJS.ProcessEnv): Record<string, string> {
  const named = ["OTLP_ENDPOINT", "OTLP_HEADERS", "OTLP_CONTENT"].map((name) => [name, given[name] ?? ""] as const);
  return Object.fromEntries(named.filter(([, value]) => value !== ""));
}

/** workerd on the first free port. A port that was free when asked may be taken a moment later: then the next. */
async function launch(options: PlatformOptions, boot: Boot, what: Launch): Promise<Launched> {
  const wanted = options.port ?? DEFAULT_PORT;
  for (let from = wanted; ; ) {
    const port = await freePort(from);
    try {
      const launched = await launchOn(port, options, boot, what);
      if (port !== wanted) options.say(`Port ${wanted} is busy; using ${port}.`);
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
  const watch = new WorkerdWatch({
    port,
    lock,
    say: options.say,
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
    // What failed is known; that it also cannot be disposed of adds nothing.
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

/** Part of every local platform, not of a command: a run goes on after the command that made it has ended. */
async function startPolicy(directory: string, say: (line: string) => void): Promise<PolicyServer> {
  const policy = await startPolicyServer({
    port: policyPort(directory),
    onLost: (reason) => say(`The policy server died: ${reason}. Restart Rollcall to start it again.`),
  });
  keepPolicyPort(directory, policy.port);
  return policy;
}
