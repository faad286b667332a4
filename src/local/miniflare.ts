/**
 * Miniflare as a part of a command: how it is set up, that it leaves signals and stdout to the command, and what it says
 * when it fails.
 *
 * Invariant. wrangler.toml is the only list of bindings; Miniflare's options are made from it by wrangler itself. Nothing
 * here names a binding but the three values a deployment gets from its operator, and two that no deployment has: LAST_END
 * and NETWORK.
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
  /** The folder of the built page (page-bundle.ts). */
  readonly page: string;
  /** Where objects, D1 and R2 are kept. */
  readonly store: string;
  readonly port: number;
  /** Values for this machine: secrets, and variables that stand in wrangler.toml with a deployment's value. */
  readonly bindings: Readonly<Record<string, string | number>>;
  /** How the workerds before the one that asks ended; answered when work that may have ended them may go on. */
  readonly lastEnd: () => Promise<Deaths>;
  readonly log: Log;
  /** What the Worker printed, line by line. */
  readonly onOutput: (line: string) => void;
  /** Miniflare starts a workerd that died again by itself, on the same port; then it calls this. */
  readonly onRestart: () => Promise<void>;
}

export async function miniflareOptions(runtime: LocalRuntime): Promise<MiniflareOptions> {
  const workerOptions = await readWorkerOptions(runtime.root);
  // The bundle is one module: the rules for loading others have nothing left to apply to.
  const { modulesRules: _, ...worker } = workerOptions;
  return convertV4MiniflareOptions({
    ...worker,
    modules: [{ type: "ESModule", path: runtime.bundle }],
    modulesRoot: dirname(runtime.bundle),
    ...(worker["assets"] !== undefined && { assets: { ...Object(worker["assets"]), directory: runtime.page } }),
    bindings: { ...Object(worker["bindings"]), ...runtime.bindings },
    serviceBindings: {
      ...Object(worker["serviceBindings"]),
      LAST_END: async () => Response.json(await runtime.lastEnd()),
      ...networkBinding(runtime.bindings["ALLOW_PRIVATE_ENDPOINTS"] === "true"),
    },
    host: "127.0.0.1",
    port: runtime.port,
    resourcePersistencePath: runtime.store,
    // Without this Miniflare asks a server of Cloudflare's for the properties of a request.
    cf: false,
    log: runtime.log,
    // Retiring a finished object is how its descriptors are freed, and the runtime calls that broken.
    handleStructuredLogs: ({ message }) => {
      if (!/jsg\.Error: retired/.test(message)) runtime.onOutput(message);
    },
    unsafeHandleRuntimeRestart: runtime.onRestart,
  });
}

/** A variable of the environment. "off": no NETWORK, so that calls leave by `fetch`, as they do in a deployment. */
export const NETWORK_BINDING = "ROLLCALL_NETWORK_BINDING";

/** The way to the network past Miniflare's outbound Worker, through which every `fetch` of a Worker goes. */
function networkBinding(privateToo: boolean) {
  return process.env[NETWORK_BINDING] === "off" ? {} : { NETWORK: networkService(privateToo) };
}

/** workerd's own network, with the certificates that Miniflare trusts. Without `privateToo` it connects to nothing else. */
export function networkService(privateToo: boolean) {
  const file = process.env["NODE_EXTRA_CA_CERTS"];
  const own = file !== undefined && existsSync(file) ? readFileSync(file, "utf8") : "";
  const trustedCertificates = [
    // There workerd does not find the certificates of the system.
    ...(process.platform === "win32" ? rootCertificates : []),
    ...(own.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []),
  ];
  const allow = privateToo ? ["public", "private", "240.0.0.0/4"] : ["public"];
  return { network: { allow, deny: [], tlsOptions: { trustBrowserCas: true, trustedCertificates } } };
}

/**
 * wrangler.toml as Miniflare's options, made by wrangler itself. Wrangler takes more than a second to load, so what it
 * made is kept in `dist` and made again only when the file, or wrangler, is another one. `root` has the wrangler.toml.
 */
export async function readWorkerOptions(root: string): Promise<WorkerOptions> {
  const folder = join(root, "dist");
  const config = join(root, "wrangler.toml");
  const hash = hashOf(config);
  const kept = keptIn(folder);
  if (kept?.hash === hash) return kept.options;
  // Wrangler reports what it reads on stdout, which belongs to the command.
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

/** Null where there is none that can be read. */
function keptIn(folder: string): Kept | null {
  try {
    return JSON.parse(readFileSync(fileIn(folder), "utf8"));
  } catch (error) {
    if (error instanceof SyntaxError || isFileError(error)) return null;
    throw error;
  }
}

/** In a folder that cannot be written they are made anew each time. */
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

/** Miniflare ends the process on a signal, at once; how to stop is the command's to decide, so its handlers go. */
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

/** Miniflare's own lines go to stderr: stdout belongs to the command. */
export class StderrLog extends Log {
  override log(message: string): void {
    process.stderr.write(`${message}\n`);
  }
}

const UNCAUGHT = /Uncaught (.+?)(?:\\n|"|\n|$)/;
const AT = /at (?:[^\n]*[(/])?index\.js:(\d+):(\d+)/;

/**
 * Why workerd does not run a bundle, told in terms of the files it was made from. `said`: what workerd wrote while it
 * failed to start. Null where that is not the code's fault.
 */
export function startFailure(said: string, bundle: string): string | null {
  const why = UNCAUGHT.exec(said)?.[1];
  if (why === undefined) return null;
  const [, line, column] = AT.exec(said) ?? [];
  const place = line === undefined ? null : placeOf(bundle, Number(line), Number(column));
  return place === null ? why : `${why}\n  at ${place}`;
}

/** Null where the bundle's map does not know it. */
function placeOf(bundle: string, line: number, column: number): string | null {
  const map: SourceMapPayload = JSON.parse(readFileSync(`${bundle}.map`, "utf8"));
  const found = new SourceMap(map).findEntry(line - 1, column - 1);
  if (!("originalSource" in found)) return null;
  // The bundle was made in another folder and moved; the map says in which.
  const file = resolve(map.sourceRoot || dirname(bundle), found.originalSource);
  return `${file}:${found.originalLine + 1}:${found.originalColumn + 1}`;
}

/** What a Worker prints, kept back until it is known whether somebody else says it in one plain line. */
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

  /** What was kept, and from now on every line at once. */
  release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const text of held) this.#write(text);
  }
}
