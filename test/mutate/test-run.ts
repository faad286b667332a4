/** One run of some tests in a copied tree, in its own process: the core's tests in Node, the Worker's in workerd. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";

const Results = z.object({
  success: z.boolean(),
  numTotalTests: z.int(),
  testResults: z.array(
    z.object({
      assertionResults: z.array(z.object({ status: z.string(), fullName: z.string() })),
    }),
  ),
});

export interface TestRun {
  /** Null if every test passed. */
  readonly failed: string | null;
  readonly seconds: number;
}

const running = new Set<ChildProcess>();

/** An edit may cause an endless loop; even the slowest tests take only a fraction of this on a busy machine. */
const LIMIT_MS = 120_000;

/**
 * Stops at the first test that fails, and ends tests that do not end, which also counts as detected. Throws if the
 * tests could not be run: that is not a failed test.
 */
export async function runTests(folder: string, tests: readonly string[]): Promise<TestRun> {
  const from = performance.now();
  const results = join(folder, "results.json");
  rmSync(results, { force: true });
  const { code, said, late } = await vitest(folder, [
    "run",
    ...(tests.some(isInWorkerd)
      ? ["--config=vitest.config.ts", "--project=workerd"]
      : ["--config=test/mutate/vitest.config.ts"]),
    "--bail=1",
    "--reporter=json",
    `--outputFile=${results}`,
    ...tests,
  ]);
  const seconds = (performance.now() - from) / 1000;
  if (late) return { failed: `no end within ${LIMIT_MS / 1000} s`, seconds };
  const read = Results.safeParse(jsonIn(results));
  if (!read.success) throw new Error(`the tests could not be run (exit ${code}):\n${said}`);
  const failed = read.data.testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .find(({ status }) => status === "failed");
  if (failed === undefined && !(read.data.success && read.data.numTotalTests > 0)) {
    throw new Error(`no test failed, and yet not all passed (exit ${code}):\n${said}`);
  }
  return { failed: failed?.fullName ?? null, seconds };
}

/** Whether the test runs in workerd. No run has both kinds. */
export function isInWorkerd(test: string): boolean {
  return test.startsWith("test/kernel/") && !test.endsWith(".node.test.ts");
}

export function endTests(): void {
  for (const child of running) child.kill("SIGKILL");
}

interface Exit {
  readonly code: number | null;
  readonly said: string;
  /** Ended by the time limit. */
  readonly late: boolean;
}

function vitest(folder: string, args: string[]): Promise<Exit> {
  const program = join(folder, "node_modules/vitest/vitest.mjs");
  const child = spawn(process.execPath, [program, ...args], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  }
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    child.kill("SIGKILL");
  }, LIMIT_MS);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      running.delete(child);
      clearTimeout(timer);
      resolve({ code, said, late });
    });
  });
}

/** Undefined if nothing readable was written. */
function jsonIn(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}
