/**
 * Measures what processes use, from /proc: Linux only. CPU is exact to a tick (10 ms) and counts user and system time;
 * peak memory is the kernel's own high-water mark since the process began; open files are sampled.
 */
import { readdirSync, readFileSync } from "node:fs";

/** The kernel counts CPU in hundredths of a second for every reader of /proc. */
const TICKS_PER_SECOND = 100;
const SAMPLE_EVERY_MS = 200;

type ByName = Readonly<Record<string, number>>;

/** Each by process name. */
export interface Usage {
  /** Between start and stop. */
  readonly cpuSeconds: ByName;
  /** In MiB. */
  readonly peakRssMb: ByName;
  readonly peakOpenFiles: ByName;
}

/** Watches these processes (pids by name) until `stop`. They must all live until then. */
export class Meter {
  readonly #pids: ByName;
  readonly #before: ByName;
  readonly #timer: NodeJS.Timeout;
  #openFiles: ByName;

  constructor(pids: ByName) {
    this.#pids = pids;
    this.#before = mapValues(pids, cpuSeconds);
    this.#openFiles = mapValues(pids, openFiles);
    this.#timer = setInterval(() => this.#sample(), SAMPLE_EVERY_MS);
  }

  stop(): Usage {
    this.cancel();
    const before = this.#before;
    const cpu = mapValues(this.#pids, (pid, name) => cpuSeconds(pid) - (before[name] ?? 0));
    this.#sample();
    return {
      cpuSeconds: cpu,
      peakRssMb: mapValues(this.#pids, peakRssMb),
      peakOpenFiles: this.#openFiles,
    };
  }

  cancel(): void {
    clearInterval(this.#timer);
  }

  #sample(): void {
    const peak = this.#openFiles;
    this.#openFiles = mapValues(this.#pids, (pid, name) => Math.max(openFiles(pid), peak[name] ?? 0));
  }
}

function mapValues(pids: ByName, read: (pid: number, name: string) => number): ByName {
  return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, read(pid, name)]));
}

function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is the name in brackets and may contain any character; utime and stime are fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

function peakRssMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

/** 0 for a process that has ended. */
export function openFiles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return 0;
    throw error;
  }
}
