/**
 * `--track wandb`: a process of the Python package sends the run to Weights & Biases with W&B's own library, while the
 * command follows the run. It reads the platform's API only. If it fails, the run and the command's result are the same.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import type { CommandLine } from "./command-line.ts";
import type { Connection } from "./connect.ts";
import { usageError } from "./exit.ts";
import { aborted } from "./interrupt.ts";
import type { TRACK_FLAGS } from "./run-flags.ts";
import type { Terminal } from "./terminal/terminal.ts";

export interface Tracker {
  /** The interpreter that has the package. */
  readonly python: string;
  readonly project: string | undefined;
}

export interface Following {
  readonly log: Terminal["log"];
  /** Aborted by Ctrl-C or by --timeout: the sending is ended early. */
  readonly signal: AbortSignal;
  /** The command that resumes the run, without its `--resume`. */
  readonly command: string;
  /** What comes after all its flags. */
  readonly program?: string | undefined;
  /** How long the process may take to end when it is stopped. */
  readonly stopsWithinMs?: number;
}

const MODULE = ["-m", "rollcall.track"] as const;
/** W&B's library may first finish what it is sending. */
const STOPS_WITHIN_MS = 10_000;
/** After it has ended. A process that it started may hold its pipes open for as long as it runs. */
const LAST_LINES_WITHIN_MS = 200;
/** A longer line is logged in parts. */
const LINE_CHARACTERS = 8192;
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

/**
 * Follows the run, and sends it meanwhile. Returns when both are done. If the following fails or the signal is aborted,
 * the sending is ended within a bounded time. If not everything was sent, it says so, and which command continues.
 */
export async function tracked<T>(
  tracker: Tracker | null,
  runId: string,
  connection: Pick<Connection, "url" | "key" | "project" | "kind" | "flags" | "environment">,
  following: Following,
  follow: () => Promise<T>,
): Promise<T> {
  if (tracker === null) return await follow();
  const { url, key, project } = connection;
  const argv = [...MODULE, runId, ...(tracker.project === undefined ? [] : ["--project", tracker.project])];
  const named = project === undefined ? {} : { ROLLCALL_PROJECT: project };
  const env = { ...process.env, ROLLCALL_URL: url, ROLLCALL_API_KEY: key, ...named };
  const { log, signal, stopsWithinMs = STOPS_WITHIN_MS } = following;
  const child = spawn(tracker.python, argv, { env, stdio: ["ignore", "pipe", "pipe"] });
  // What it prints is not the command's result, and must not be in the middle of a picture.
  for (const stream of [child.stdout, child.stderr]) logLines(stream, log);
  const over = exitOf(child);
  let why: string | null = null;
  try {
    const followed = await follow();
    await Promise.race([over, aborted(signal)]);
    why = signal.aborted ? await stop(child, over, stopsWithinMs) : await over;
    return followed;
  } catch (thrown) {
    why = await stop(child, over, stopsWithinMs);
    throw thrown;
  } finally {
    if (why !== null) log(`${runId} was not sent completely: ${why}${howToGoOn(runId, connection, following)}`);
  }
}

/** Like `exitOf`. A process that does not end in time is killed. */
async function stop(child: ChildProcess, over: Promise<string | null>, withinMs: number): Promise<string | null> {
  child.kill("SIGINT");
  const timer = setTimeout(() => child.kill("SIGKILL"), withinMs);
  const why = await over;
  clearTimeout(timer);
  return why === null ? null : `its tracker was stopped, ${why}`;
}

/** A progress bar ends its lines with a carriage return. A line without an end is logged when the stream ends. */
function logLines(stream: Readable, log: Following["log"]): void {
  let begun = "";
  stream.setEncoding("utf8");
  stream.on("data", (part: string) => {
    // The line feed after a carriage return may be in the next part.
    const lines = (begun + part).split(/\r\n|\n|\r(?!$)/);
    begun = lines.pop() ?? "";
    for (const line of lines) log(line);
    for (; begun.length > LINE_CHARACTERS; begun = begun.slice(LINE_CHARACTERS)) log(begun.slice(0, LINE_CHARACTERS));
  });
  stream.on("close", () => {
    if (begun !== "") log(begun.replace(/\r$/, ""));
  });
}

function howToGoOn(
  runId: string,
  { kind, flags, environment }: Pick<Connection, "kind" | "flags" | "environment">,
  { command, program = "" }: Following,
): string {
  if (kind === "ephemeral") return "";
  // Only a platform that is booted again needs the code of the environment again.
  const own = environment?.own && kind === "embedded" ? ` ${environment.reference}` : "";
  return `. Continue with: ${command}${own} --resume ${runId}${flags}${program}`;
}

/** Null if it ended well. Its last lines are read before; processes that it started are not awaited. */
function exitOf(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    child.once("error", (error) => resolve(error.message));
    child.once("exit", () => {
      timer = setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      }, LAST_LINES_WITHIN_MS);
    });
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      resolve(code === 0 ? null : signal === null ? `exit code ${code}` : `ended by ${signal}`);
    });
  });
}
