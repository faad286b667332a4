/**
 * `--track wandb`: a process of the Python package sends the run to Weights & Biases with W&B's own library, while the
 * command follows the run. It reads the platform's API only. If it fails, the run and the command's result are the same.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { CommandLine } from "./command-line.ts";
import type { Connection } from "./connect.ts";
import { usageError } from "./exit.ts";
import type { TRACK_FLAGS } from "./run-flags.ts";
import type { Terminal } from "./terminal/terminal.ts";

export interface Tracker {
  /** The interpreter that has the package. */
  readonly python: string;
  readonly project: string | undefined;
}

const MODULE = ["-m", "rollcall.track"] as const;
const INSTALL =
  "install the wheel of Rollcall's folder python with its extra wandb, as in pip install './python[wandb]'";

/** Null without the flag. Throws a usage error that says what to install, before anything is spent. */
export async function trackerOf(line: CommandLine<keyof typeof TRACK_FLAGS>): Promise<Tracker | null> {
  const project = line.text("track-project");
  if (line.text("track") === undefined) {
    if (project !== undefined) throw usageError("--track-project: needs --track wandb", "track-project");
    return null;
  }
  const python = process.env["ROLLCALL_PYTHON"] ?? "python3";
  const child = spawn(python, [...MODULE, "--check"], { stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (part: Buffer) => {
    stderr += part.toString();
  });
  const why = await exitOf(child);
  if (why === null) return { python, project };
  const said = stderr.trim().split("\n").at(-1) ?? "";
  throw usageError(
    `--track: ${said === "" ? why : said}: ${INSTALL}, and name its Python with ROLLCALL_PYTHON`,
    "track",
  );
}

/** Follows the run, and sends it meanwhile. Returns when both are done; if the following fails, the sending is ended. */
export async function tracked<T>(
  tracker: Tracker | null,
  runId: string,
  { url, key, project }: Pick<Connection, "url" | "key" | "project">,
  { log }: Pick<Terminal, "log">,
  follow: () => Promise<T>,
): Promise<T> {
  if (tracker === null) return await follow();
  const argv = [...MODULE, runId, ...(tracker.project === undefined ? [] : ["--project", tracker.project])];
  const named = project === undefined ? {} : { ROLLCALL_PROJECT: project };
  const env = { ...process.env, ROLLCALL_URL: url, ROLLCALL_API_KEY: key, ...named };
  // What it prints is not the command's result.
  const child = spawn(tracker.python, argv, { env, stdio: ["ignore", 2, 2] });
  const over = exitOf(child);
  let followed: T;
  try {
    followed = await follow();
  } catch (thrown) {
    child.kill("SIGTERM");
    await over;
    throw thrown;
  }
  const why = await over;
  if (why !== null) {
    log(`${runId} was not sent completely: ${why}. Continue with: ${tracker.python} ${argv.join(" ")}`);
  }
  return followed;
}

/** Null if it ended well. */
function exitOf(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code, signal) => {
      resolve(code === 0 ? null : signal === null ? `exit code ${code}` : `ended by ${signal}`);
    });
  });
}
