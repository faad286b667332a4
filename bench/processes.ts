/**
 * Starts the processes of a benchmark: each side gets new ones, and none outlives the benchmark. A child with a channel
 * ends with it; the platform gets a signal.
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import * as z from "zod";
import { NETWORK_BINDING } from "../src/local/miniflare.ts";
import { readReadyFile } from "../src/local/state-directory.ts";

export interface Child {
  readonly pid: number;
  stop(): Promise<void>;
}

export interface Model extends Child {
  readonly url: string;
  /** The number of completions so far. */
  requests(): Promise<number>;
}

export interface Baseline extends Child {
  run(): Promise<z.infer<typeof BaselineResult>>;
}

export interface BenchedPlatform extends Child {
  readonly url: string;
  readonly key: string;
  readonly workerdPid: number;
}

const BaselineResult = z.object({ seconds: z.number(), prompt_tokens: z.number() });
const Serving = z.object({ url: z.string(), key: z.string(), pid: z.int(), directory: z.string() });

const running = new Set<ChildProcess>();
// For an error in the benchmark itself.
process.on("exit", () => {
  for (const child of running) if (!child.killed) child.kill();
});

/** Ends every child and waits for it: the platform removes its directory before it exits. */
export async function stopAll(): Promise<void> {
  await Promise.all([...running].map(end));
}

async function end(child: ChildProcess): Promise<void> {
  if (!running.has(child)) return;
  const ended = once(child, "exit");
  // A second signal would make the platform stop at once and leave its directory behind.
  if (!child.killed) child.kill();
  await ended;
}

export async function startModel(turns: number, latencyMs = 0, sigma = 0): Promise<Model> {
  const child = forkHere("model.ts", [turns, latencyMs, sigma]);
  const { url } = z.object({ url: z.string() }).parse(await told(child.process));
  return {
    ...child,
    url,
    requests: async () => {
      child.process.send("count");
      return z.object({ requests: z.int() }).parse(await told(child.process)).requests;
    },
  };
}

export async function startBaseline(modelUrl: string, rollouts: number, turns: number): Promise<Baseline> {
  const child = forkHere("baseline.ts", [modelUrl, rollouts, turns]);
  await told(child.process);
  return {
    ...child,
    run: async () => {
      child.process.send("go");
      return BaselineResult.parse(await told(child.process));
    },
  };
}

/** Where a platform keeps its state: in memory if the machine has enough, or in a folder of `TMPDIR` on a disk. */
export type Place = "memory" | "disk";

/** How calls leave the platform: by `fetch`, as in a deployment, or by the binding that only Miniflare has. */
export type WayOut = "fetch" | "binding";

/** A platform on an empty directory, which is removed with it. */
export async function startPlatform(place: Place = "memory", wayOut: WayOut = "binding"): Promise<BenchedPlatform> {
  const command = join(import.meta.dirname, "..", "bin", "rollcall.mjs");
  const folder = place === "disk" ? makeFolderOnDisk() : null;
  const process_ = spawn(process.execPath, [command, "serve", ...(folder === null ? ["--ephemeral"] : []), "--json"], {
    env: {
      ...process.env,
      ...(folder !== null && { ROLLCALL_DIR: folder }),
      ...(wayOut === "fetch" && { [NETWORK_BINDING]: "off" }),
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (folder !== null) process_.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const child = adopt(process_);
  const ended = failure(process_, "the platform");
  const [line] = await Promise.race([once(createInterface(process_.stdout), "line"), ended]);
  const { url, key, directory } = Serving.parse(JSON.parse(line));
  const ready = readReadyFile(directory);
  if (ready === null) throw new Error("the platform is gone again");
  return { ...child, url, key, workerdPid: ready.workerd_pid };
}

/** Linux's number for a file system in memory. */
const TMPFS = 0x01021994;

function makeFolderOnDisk(): string {
  if (statfsSync(tmpdir()).type === TMPFS) {
    throw new Error(`${tmpdir()} is in memory; set TMPDIR to a folder on a disk`);
  }
  return mkdtempSync(join(tmpdir(), "rollcall-bench-"));
}

function forkHere(file: string, args: readonly (string | number)[]) {
  const path = join(import.meta.dirname, file);
  return adopt(fork(path, args.map(String), { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}

function adopt<Process extends ChildProcess>(process_: Process): Child & { process: Process } {
  running.add(process_);
  process_.once("exit", () => running.delete(process_));
  return {
    process: process_,
    pid: process_.pid ?? 0,
    stop: () => end(process_),
  };
}

/** The next message of a child. */
async function told(child: ChildProcess): Promise<unknown> {
  const [message] = await Promise.race([once(child, "message"), failure(child, "a child")]);
  return message;
}

async function failure(child: ChildProcess, name: string): Promise<never> {
  const [code, signal] = await once(child, "exit");
  throw new Error(`${name} ended early (${code ?? signal})`);
}
