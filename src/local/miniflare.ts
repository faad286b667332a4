/**
 * Miniflare as a part of a command: its options, keeping it away from signals and stdout, and its failure messages.
 *
 * Invariant. wrangler.toml is the only list of bindings: wrangler itself converts it to Miniflare's options. The only
 * bindings named here are the three values that a deployment gets from its operator, and LAST_END and NETWORK, which no
 * deployment has.
 */

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire, SourceMap, type SourceMapPayload } from "node:module";
import { dirname, join, resolve } from "node:path";
import { rootCertificates } from "node:tls";
import { convertV4MiniflareOptions, Log, Miniflare, type MiniflareOptions, Response } from "miniflare";
import type { unstable_getMiniflareWorkerOptions } from "wrangler";
import type { Deaths } from "./state-directory.ts";

type WorkerOptions = ReturnType<typeof unstable_getMiniflareWorkerOptions>["workerOptions"];

interface Kept {
  readonly hash: string;
  readonly options: WorkerOptions;
}

interface LocalRuntime {
  /** The folder of wrangler.toml. */
  readonly root: string;
  readonly bundle: string;
  /** The folder of the page and the other assets (assets.ts). */
  readonly page: string;
  /** The folder for objects, D1 and R2. */
  readonly store: string;
  /** For the platform's clients. */
  readonly port: number;
  /** For Miniflare's own requests; default: an unused one. */
  readonly entryPort?: number;
  /** Values for this machine: secrets, and variables whose value in wrangler.toml is for a deployment. */
  readonly bindings: Readonly<Record<string, string | number>>;
  /** How many D1 databases it has; default 1. */
  readonly databases?: number | undefined;
  /** How the previous workerds ended. Resolves when work that may have ended them may continue. */
  readonly lastEnd: () => Promise<Deaths>;
  readonly log: Log;
  /** Called with each line that the Worker prints. */
  readonly onOutput: (line: string) => void;
  /** Called after Miniflare has restarted a dead workerd on the same port. */
  readonly onRestart: () => Promise<void>;
}

/**
 * Lines of the runtime that are no news for users: a finished object was retired to free its file descriptors, a reply was
 * cut so that its reader requests it again, or an alarm runs later than it was set for.
 */
const NOTICES = /jsg\.Error: (retired|memory for this page ran out|the client stopped reading)|^NOSENTRY /;

export async function miniflareOptions(runtime: LocalRuntime): Promise<MiniflareOptions> {
  const workerOptions = await readWorkerOptions(runtime.root);
  // The bundle is one module, so the rules for loading other modules do not apply.
  const { modulesRules: _, ...given } = workerOptions;
  const worker = {
    ...given,
    // A part of the names of stored objects.
    name: "",
    modules: [{ type: "ESModule" as const, path: runtime.bundle }],
    modulesRoot: dirname(runtime.bundle),
    ...(given["assets"] !== undefined && { assets: { ...Object(given["assets"]), directory: runtime.page } }),
    d1Databases: { ...Object(given["d1Databases"]), ...furtherDatabases(runtime.databases ?? 1) },
    bindings: { ...Object(given["bindings"]), ...runtime.bindings },
    serviceBindings: {
      ...Object(given["serviceBindings"]),
      LAST_END: async () => Response.json(await runtime.lastEnd()),
      ...networkBinding(runtime.bindings["ALLOW_PRIVATE_ENDPOINTS"] === "true"),
    },
  };
  return convertV4MiniflareOptions({
    workers: [worker, doorTo(worker.name, runtime.port)],
    host: "127.0.0.1",
    port: runtime.entryPort ?? 0,
    resourcePersistencePath: runtime.store,
    // Otherwise Miniflare requests the properties of a request from a Cloudflare server.
    cf: false,
    log: runtime.log,
    handleStructuredLogs: ({ message }) => {
      if (!NOTICES.test(message)) runtime.onOutput(message);
    },
    unsafeHandleRuntimeRestart: runtime.onRestart,
  });
}

/** The bindings of D1 databases besides `DB`, by name. */
function furtherDatabases(databases: number): Record<string, { readonly id: string }> {
  return Object.fromEntries(
    Array.from({ length: databases - 1 }, (_, at) => [`DB_${at + 1}`, { id: `rollcall-${at + 1}` }]),
  );
}

/**
 * The platform's port, as a socket of a second Worker that does nothing else. A socket of the Worker itself, and Miniflare's
 * own port, would pass each request through Miniflare's entry and its router of assets, which costs as much CPU as the
 * Worker's own work for a small request. So the Worker serves its assets itself (kernel/http/pages.ts).
 */
function doorTo(serviceName: string, port: number) {
  return {
    name: "door",
    modules: [{ type: "ESModule" as const, path: "door.js", contents: "export default {};" }],
    unsafeDirectSockets: [{ host: "127.0.0.1", port, serviceName }],
  };
}

/** An environment variable. "off": no NETWORK binding, so calls use `fetch`, as in a deployment. */
export const NETWORK_BINDING = "ROLLCALL_NETWORK_BINDING";

/**
 * The binding for network access without Miniflare's outbound Worker, through which every `fetch` of a Worker passes.
 */
function networkBinding(privateToo: boolean) {
  return process.env[NETWORK_BINDING] === "off" ? {} : { NETWORK: networkService(privateToo) };
}

/** workerd's own network, with Miniflare's certificates. Without `privateToo`, only for public addresses. */
export function networkService(privateToo: boolean) {
  const file = process.env["NODE_EXTRA_CA_CERTS"];
  const own = file !== undefined && existsSync(file) ? readFileSync(file, "utf8") : "";
  const trustedCertificates = [
    // On Windows, workerd does not find the system's certificates.
    ...(process.platform === "win32" ? rootCertificates : []),
    ...(own.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []),
  ];
  const allow = privateToo ? ["public", "private", "240.0.0.0/4"] : ["public"];
  return { network: { allow, deny: [], tlsOptions: { trustBrowserCas: true, trustedCertificates } } };
}

/**
 * wrangler.toml as Miniflare's options, converted by wrangler itself. Wrangler takes more than a second to load, so the
 * result is cached in `dist` until the file or the wrangler version changes. `root` has the wrangler.toml.
 */
export async function readWorkerOptions(root: string): Promise<WorkerOptions> {
  const folder = join(root, "dist");
  const config = join(root, "wrangler.toml");
  const hash = hashOf(config);
  const kept = keptIn(folder);
  if (kept?.hash === hash) return kept.options;
  // Wrangler prints messages to stdout, which belongs to the command.
  process.env["WRANGLER_LOG"] ??= "error";
  const { unstable_getMiniflareWorkerOptions: read } = await import("wrangler");
  const { workerOptions: options } = read(config);
  keep(folder, { hash, options });
  return options;
}

function hashOf(config: string): string {
  const wrangler = createRequire(import.meta.url).resolve("wrangler/package.json");
  return createHash("sha256").update(readFileSync(config)).update(readFileSync(wrangler)).digest("hex");
}

function fileIn(folder: string): string {
  return join(folder, "worker-options.json");
}

/** Null if there are none, or they cannot be read. */
function keptIn(folder: string): Kept | null {
  try {
    return JSON.parse(readFileSync(fileIn(folder), "utf8"));
  } catch (error) {
    if (error instanceof SyntaxError || isFileError(error)) return null;
    throw error;
  }
}

/** If the folder cannot be written, the options are converted each time. */
function keep(folder: string, kept: Kept): void {
  const draft = `${fileIn(folder)}.${process.pid}`;
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(draft, JSON.stringify(kept));
    renameSync(draft, fileIn(folder));
  } catch (error) {
    if (!isFileError(error)) throw error;
  }
}

function isFileError(error: unknown): boolean {
  return error instanceof Error && "code" in error;
}

/** Miniflare ends the process on a signal. Its handlers are removed, since the command decides how to stop. */
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

/** Writes Miniflare's lines to stderr: stdout belongs to the command. */
export class StderrLog extends Log {
  override log(message: string): void {
    process.stderr.write(`${message}\n`);
  }
}

const UNCAUGHT = /Uncaught (.+?)(?:\\n|"|\n|$)/;
const AT = /at (?:[^\n]*[(/])?index\.js:(\d+):(\d+)/;

/**
 * Why workerd does not run a bundle, with the position in the source file. `said`: workerd's output when it failed to
 * start. Null if the code is not the cause.
 */
export function startFailure(said: string, bundle: string): string | null {
  const why = UNCAUGHT.exec(said)?.[1];
  if (why === undefined) return null;
  const [, line, column] = AT.exec(said) ?? [];
  const place = line === undefined ? null : placeOf(bundle, Number(line), Number(column));
  return place === null ? why : `${why}\n  at ${place}`;
}

/** Null if the position is not in the bundle's source map. */
function placeOf(bundle: string, line: number, column: number): string | null {
  const map: SourceMapPayload = JSON.parse(readFileSync(`${bundle}.map`, "utf8"));
  const found = new SourceMap(map).findEntry(line - 1, column - 1);
  if (!("originalSource" in found)) return null;
  // The bundle was built in another folder and moved; the map names that folder.
  const file = resolve(map.sourceRoot || dirname(bundle), found.originalSource);
  return `${file}:${found.originalLine + 1}:${found.originalColumn + 1}`;
}

/** Holds back the Worker's output until it is known whether a plain error message replaces it. */
export class HeldOutput {
  readonly #write: (line: string) => void;
  #held: string[] | null = [];

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  line(text: string): void {
    if (this.#held === null) this.#write(text);
    else this.#held.push(text);
  }

  /** Writes the held lines; later lines are written immediately. */
  release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const text of held) this.#write(text);
  }
}
