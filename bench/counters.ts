/**
 * Reads the counts that `perf` (Debian's linux-perf) takes of a process: instructions, which are the same on a busy and
 * on a quiet machine, and calls that wait for a disk. A count is null if the machine or the user's rights do not allow
 * it.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";

const EVENTS = {
  instructions: ["instructions:u"],
  /** Instructions in the kernel for the process; needs more rights than the user's own instructions. */
  kernel_instructions: ["instructions:k"],
  fsyncs: ["syscalls:sys_enter_fsync", "syscalls:sys_enter_fdatasync"],
} as const;
type Name = keyof typeof EVENTS;
const NAMES: readonly Name[] = ["instructions", "kernel_instructions", "fsyncs"];

/** Counts of one process with all its threads, between two moments. */
export type Counts = Readonly<Record<Name, number | null>>;

const UNCOUNTED: Counts = { instructions: null, kernel_instructions: null, fsyncs: null };

export interface Counters {
  /** The counts that are available here. */
  readonly counted: readonly Name[];
  /** Why the others are missing, for a person; null if none is missing. */
  readonly lacking: string | null;
}

/** Tries each kind separately: `perf` counts nothing at all if one of several is not allowed. */
export function findCounters(): Counters {
  const version = spawnSync("perf", ["--version"]);
  if (version.error !== undefined) {
    return { counted: [], lacking: "perf is not installed (Debian: linux-perf): no instructions and no fsyncs" };
  }
  const counted = NAMES.filter((name) => {
    const { stderr } = spawnSync("perf", [...statOf([name]), "true"], { encoding: "utf8" });
    return countsIn(stderr)[name] !== null;
  });
  const missing = NAMES.filter((name) => !counted.includes(name)).map((name) => name.replace("_", " "));
  const lacking = missing.length === 0 ? null : `perf cannot count here: ${missing.join(", ")}`;
  return { counted, lacking };
}

/** Counts from the moment this resolves. `stop` may be called once, while the process lives. */
export async function startCounting({ counted }: Counters, pid: number): Promise<{ stop(): Promise<Counts> }> {
  if (counted.length === 0) return { stop: async () => UNCOUNTED };
  const args = [...statOf(counted), "-p", String(pid), "-D", "-1", "--control", "fd:3,4"];
  const perf = spawn("perf", args, { stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"] });
  const [, , said, orders, answers] = perf.stdio as [null, null, Readable, Writable, Readable];
  const output = text(said);
  const lines = createInterface(answers);
  const ended = once(perf, "exit").then(async () => {
    throw new Error(`perf ended early: ${await output}`);
  });
  const obey = async (order: string) => {
    orders.write(`${order}\n`);
    await Promise.race([once(lines, "line"), ended]);
  };
  await obey("enable");
  return {
    stop: async () => {
      await obey("disable");
      ended.catch(() => undefined);
      perf.kill("SIGINT");
      return countsIn(await output);
    },
  };
}

function statOf(names: readonly Name[]): string[] {
  return ["stat", "-x,", "-e", names.flatMap((name) => EVENTS[name]).join(",")];
}

/** Lines of `count,unit,event,…`; a missing count has text in its place. */
function countsIn(output: string): Counts {
  const byEvent = new Map(output.split("\n").map((line) => [line.split(",")[2], Number(line.split(",")[0])]));
  const sum = (name: Name) => {
    const total = EVENTS[name].reduce((all, event) => all + (byEvent.get(event) ?? Number.NaN), 0);
    return Number.isNaN(total) ? null : total;
  };
  return { instructions: sum("instructions"), kernel_instructions: sum("kernel_instructions"), fsyncs: sum("fsyncs") };
}
