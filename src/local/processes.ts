/** Identifies processes by pid and start time, also across a reboot: the system uses pids again. */
import { type ChildProcess, execFileSync } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Identifies exactly one process. */
export interface ProcessMark {
  readonly pid: number;
  /** Its start time, in the system's own format; opaque. */
  readonly started: string;
}

interface Row extends ProcessMark {
  readonly parent: number;
  readonly command: string;
}

/** The process that has this pid now; null if there is none (a zombie does not count). */
export function markOf(pid: number): ProcessMark | null {
  const row = readRow(pid);
  return row === null ? null : { pid, started: row.started };
}

export function isRunning(mark: ProcessMark): boolean {
  return markOf(mark.pid)?.started === mark.started;
}

/** A tick is a hundredth of a second on every Linux that Node supports. */
const TICK_MS = 10;

/**
 * The CPU time of a process, over all of its threads; null if this system does not report it, or the process is gone.
 */
export function cpuMsOf(pid: number): number | null {
  if (process.platform !== "linux") return null;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

export function isWorkerd(mark: ProcessMark): boolean {
  const row = readRow(mark.pid);
  return row !== null && row.started === mark.started && /(^|\/)workerd( |$)/.test(row.command);
}

/** The workerd that `parent` started to listen on `port`; null if it does not exist (yet). */
export function findWorkerd(parent: number, port: number): ProcessMark | null {
  const found = children(parent).find((row) => isWorkerd(row) && row.command.includes(`127.0.0.1:${port} `));
  return found === undefined ? null : { pid: found.pid, started: found.started };
}

function children(parent: number): Row[] {
  return process.platform === "linux"
    ? readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .map((name) => linuxRow(Number(name)))
        .filter((row) => row?.parent === parent)
        .filter((row) => row !== null)
    : psRows(["-ax"]).filter((row) => row.parent === parent);
}

function readRow(pid: number): Row | null {
  return process.platform === "linux" ? linuxRow(pid) : (psRows(["-p", String(pid)])[0] ?? null);
}

/** From /proc: a slim Linux image has no `ps`. */
function linuxRow(pid: number): Row | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the name in brackets, which may contain anything, including brackets and spaces.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, parent] = fields;
    const ticks = fields[19];
    if (state === undefined || ticks === undefined || state === "Z" || state === "X") return null;
    return {
      pid,
      parent: Number(parent),
      started: `${bootId()}/${ticks}`,
      command: `${executable(pid)} ${commandLine(pid)}`,
    };
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

function executable(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch (error) {
    // A process of another user, or a kernel thread: it is not ours, and we may not read its path.
    if (isGone(error) || (error instanceof Error && "code" in error && error.code === "EACCES")) {
      return "";
    }
    throw error;
  }
}

function commandLine(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
}

function isGone(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : null;
  return code === "ENOENT" || code === "ESRCH" || code === "EPERM";
}

const PS_LINE = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\w+\s+\w+\s+\d+\s+[\d:]+\s+\d+)\s+(.*)$/;

function psRows(which: readonly string[]): Row[] {
  let listing: string;
  try {
    listing = execFileSync("ps", [...which, "-o", "pid=,ppid=,stat=,lstart=,args="], {
      encoding: "utf8",
      env: { ...process.env, LC_ALL: "C" },
      stdio: ["ignore", "pipe", "ignore"],
      maxBuffer: 64 * 1024 * 1024,
    });
  } catch (error) {
    // `ps -p` exits with 1 if no process has that pid.
    if (error instanceof Error && "status" in error && error.status === 1) return [];
    throw error;
  }
  return listing.split("\n").flatMap((line) => {
    const [, pid, parent, state, started, command] = PS_LINE.exec(line) ?? [];
    if (pid === undefined || started === undefined || state?.startsWith("Z")) return [];
    return [{ pid: Number(pid), parent: Number(parent), started, command: `${command ?? ""} ` }];
  });
}

/**
 * Child processes of this one that SIGKILL ended. There are few: each is a workerd, a trainer, or a tool of the boot.
 */
const killed = new Set<number>();
let watching = false;

/** Miniflare does not expose the handle of its workerd, but Node's diagnostics channel reports every child process. */
export function watchForKills(): void {
  if (watching) return;
  watching = true;
  subscribe("child_process", (message) => {
    const { process: child } = message as { process: ChildProcess };
    child.once("exit", (_code, signal) => {
      if (signal === "SIGKILL" && child.pid !== undefined) killed.add(child.pid);
    });
  });
}

export function wasKilled(pid: number): boolean {
  return killed.has(pid);
}
