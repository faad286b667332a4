/**
 * A platform that npm started ends when npm ends, for whatever reason. Tested with real processes, in a group that a
 * test can count.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { readReadyFile } from "../../src/local/state-directory.ts";
import { until } from "../local/served-platform.ts";
import { testPort } from "../local/test-port.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

const ROOT = join(import.meta.dirname, "../..");
const SECONDS = 1000;
const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) if (isGroupAlive(child)) process.kill(-groupOf(child), 9);
});

function groupOf({ pid }: ChildProcess): number {
  if (pid === undefined) throw new Error("it was not started");
  return pid;
}

function isGroupAlive(child: ChildProcess): boolean {
  try {
    return process.kill(-groupOf(child), 0);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false;
    throw error;
  }
}

/** Resolves when the platform answers and `said` is on its stderr. */
async function npmStart(flags: readonly string[], said: RegExp): Promise<[ChildProcess, string]> {
  const directory = temporaryDirectory();
  const child = spawn("npm", ["start", "--", "--port", String(testPort(0)), ...flags], {
    cwd: ROOT,
    detached: true,
    env: { ...process.env, ROLLCALL_DIR: directory },
    stdio: ["ignore", "ignore", "pipe"],
  });
  started.push(child);
  let stderr = "";
  child.stderr.on("data", (part) => {
    stderr += part;
  });
  const isReady = () => readReadyFile(directory) !== null && said.test(stderr);
  await until(isReady, 60 * SECONDS);
  return [child, directory];
}

test.each(["SIGTERM", "SIGHUP", "SIGKILL"] as const)(
  "%s to npm alone shuts down the platform it started",
  async (signal) => {
    const [npm, directory] = await npmStart(["--no-demo"], /(?:)/);
    npm.kill(signal);
    await until(() => !isGroupAlive(npm), 15 * SECONDS);
    expect(readReadyFile(directory)).toBeNull();
  },
  120 * SECONDS,
);

test("SIGTERM to npm ends a demo in progress, including its trainer", async () => {
  const [npm, directory] = await npmStart(["--eval-examples", "0"], /Run run_\w+ on http/);
  npm.kill("SIGTERM");
  await until(() => !isGroupAlive(npm), 30 * SECONDS);
  expect(readReadyFile(directory)).toBeNull();
});
