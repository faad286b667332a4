/** `rollcall serve` in its own processes, here in their own process group, which a test may kill. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { isRunning, markOf, type ProcessMark } from "../../src/local/processes.ts";
import { readReadyFile } from "../../src/local/state-directory.ts";
import { WAIT_HANGS_MS } from "../hang-limits.ts";

export const BIN = join(import.meta.dirname, "../../bin/rollcall.mjs");
const LOOK_EVERY_MS = 5;

export interface Served {
  readonly url: string;
  readonly key: string;
  /** The base URL of the policy server, ending with /v1. */
  readonly policy: string;
  readonly node: ProcessMark;
  readonly workerd: ProcessMark;
  /** The process group of both processes. */
  readonly group: number;
  /** When the platform reported that it answers, in epoch milliseconds. */
  readonly readyAt: number;
  /** Its output since it was started. */
  said(): string;
}

/**
 * Resolves when the platform reports that it is ready, in one line of JSON. Throws with its output if it ends instead.
 * `script`: the script that boots it, with its arguments.
 */
export async function serve(
  directory: string,
  port: number,
  script: readonly string[] = [BIN, "serve", "--json", "--port", String(port)],
): Promise<Served> {
  const child = spawn(process.execPath, script, {
    detached: true,
    env: { ...process.env, ROLLCALL_DIR: directory },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (part) => {
    said += part;
  });
  const word = await new Promise<string>((resolve, reject) => {
    child.stdout.once("data", (line) => resolve(String(line)));
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`the platform ended before it was ready:\n${said}`)));
  });
  if ("error" in JSON.parse(word)) throw new Error(`the platform does not start: ${word}`);
  return { ...standing(directory), group: Number(child.pid), said: () => said };
}

/** The same platform after it has replaced its workerd. */
export async function rebooted(directory: string, before: Served): Promise<Served> {
  await until(
    () => (readReadyFile(directory)?.workerd_pid ?? before.workerd.pid) !== before.workerd.pid,
    WAIT_HANGS_MS,
  );
  return { ...before, ...standing(directory) };
}

/** Ends all remaining processes of a platform. */
export function endGroup({ group }: Served): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

/** The times between which a process ended. */
export async function deathOf(mark: ProcessMark): Promise<{ after: number; before: number }> {
  let after = Date.now();
  await until(() => {
    const looked = Date.now();
    if (!isRunning(mark)) return true;
    after = looked;
    return false;
  }, WAIT_HANGS_MS);
  return { after, before: Date.now() };
}

/** Polls until the condition holds; throws if it does not in time. */
export async function until(condition: () => boolean | Promise<boolean>, withinMs: number): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within ${withinMs} ms: ${condition}`);
    await pause(LOOK_EVERY_MS);
  }
}

function standing(directory: string): Omit<Served, "group" | "said"> {
  const ready = readReadyFile(directory);
  if (ready === null) throw new Error("the platform said it was ready and has no ready file");
  const [node, workerd] = [markOf(ready.pid), markOf(ready.workerd_pid)];
  if (node === null || workerd === null) {
    throw new Error(`the ready file names a dead process: ${JSON.stringify(ready)}`);
  }
  const { url, key, policy_url } = ready;
  return { url, key, policy: policy_url ?? "", node, workerd, readyAt: Date.now() };
}
