/**
 * Telling processes apart. A pid alone says little: the system gives it out again. A pid and the moment it started
 * name one process for good, also across a reboot.
 */
import { type ChildProcess, execFileSync } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** One process and no other. */
export interface ProcessMark {
  readonly pid: number;
  /** When it started, as the system tells it; opaque. */
  readonly started: string;
}

interface Row extends ProcessMark {
  readonly parent: number;
  readonly command: string;
}

/** The process that has this pid now, or null when there is none (a zombie is none). */
export function markOf(pid: number): ProcessMark | null {
  const row = readRow(pid);
  return row === null ? null : { pid, started: row.started };
}

export function isRunning(mark: ProcessMark): boolean {
  return markOf(mark.pid)?.started === mark.started;
}

/** Hundredths of a second, on every Linux that Node runs on. */
const TICK_MS = 10;

/** What a process has computed, all of its threads together; null where this system does not tell, or it is gone. */
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

/** The workerd that `parent` started to listen on `port`, or null when it is not there (yet). */
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
    // The second field is the name in brackets and may hold anything, brackets and spaces included.
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
    // Another user's process, or a kernel thread: not ours, and its path is not for us.
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
    // `ps -p` exits 1 when no process has that pid.
    if (error instanceof Error && "status" in error && error.status === 1) return [];
    throw error;
  }
  return listing.split("\n").flatMap((line) => {
    const [, pid, parent, state, started, command] = PS_LINE.exec(line) ?? [];
    if (pid === undefined || started === undefined || state?.startsWith("Z")) return [];
    return [{ pid: Number(pid), parent: Number(parent), started, command: `${command ?? ""} ` }];
  });
}

/** Child processes of this one that SIGKILL ended. Few: each is a workerd, a trainer, or a tool of the boot. */
const killed = new Set<number>();
let watching = false;

/** Miniflare keeps the handle of the workerd it starts to itself; Node tells of every child there is. */
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
