/** Runs the command line as a user does: a process of its own. */
import { spawn } from "node:child_process";
import { join } from "node:path";

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const BIN = join(import.meta.dirname, "../../bin/rollcall.mjs");

/** `onStderr` sees everything said so far each time more comes; it may kill the process. */
export function rollcall(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
  onStderr: (said: string, kill: (signal: NodeJS.Signals) => void) => void = () => undefined,
  cwd: string = process.cwd(),
  stdin = "",
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [BIN, ...argv], {
      cwd,
      env: { ...process.env, OPENAI_BASE_URL: "", OPENAI_API_KEY: "", ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    child.stdin.on("error", reject).end(stdin);
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (part) => {
      stdout += part;
    });
    child.stderr.on("data", (part) => {
      stderr += part;
      onStderr(stderr, (signal) => child.kill(signal));
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}
