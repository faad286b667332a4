/**
 * How workerds ended that followed each other soon. What it is asked for: `src/runtime/environment/suspects.ts`.
 *
 * Invariant. A kill from outside (by a person, a supervisor, the system for want of memory) is a death, of which nobody can
 * say that it would come again; what workerd does itself is a death by any other signal, or a silence that ends in our own kill.
 */
import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";

export interface Deaths {
  readonly deaths: number;
  /** How many of them it came to by itself. */
  readonly byItself: number;
}

export const NO_DEATHS: Deaths = { deaths: 0, byItself: 0 };

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
