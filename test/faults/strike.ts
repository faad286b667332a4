/** Kills processes, restarts the platform if it does not restart itself, and measures. */
import { setTimeout as pause } from "node:timers/promises";
import { WAIT_HANGS_MS } from "../hang-limits.ts";
import { deathOf, rebooted, type Served } from "../local/served-platform.ts";
import type { Death } from "./account.ts";
import type { FaultModel } from "./fault-model.ts";
import { LEAST_IN_FLIGHT } from "./limits.ts";
import type { Victim } from "./plan.ts";

/** With few rollouts in flight there may be no call left to make. */
const LAST_CALL_WITHIN_MS = 3000;
const LOOK_EVERY_MS = 5;

/** The part of a model that is needed here. */
type Held = Pick<FaultModel, "hold" | "times">;

interface Target {
  readonly served: Served;
  readonly directory: string;
  /** The next start of the platform on its directory. */
  readonly serveAgain: () => Promise<Served>;
  readonly model: Held;
  /** The other servers that the platform calls. */
  readonly silent: readonly Held[];
  /** The minimum number of rollouts in flight now. */
  readonly in_flight: number;
  /** False: the run was cancelled, and the model may get no more calls. */
  readonly goes_on: boolean;
}

export async function strike(
  victim: Victim,
  { served, directory, serveAgain, model, silent, in_flight, goes_on }: Target,
): Promise<{ served: Served; death: Death }> {
  // Held until the platform is back: an orphaned process would continue the run, and the next process begins before it
  // reports that.
  const releases = [model, ...silent].map((one) => one.hold());
  try {
    const dead = deathOf(served.workerd);
    kill(victim, served);
    const back = victim === "workerd" ? rebooted(directory, served) : serveAgain();
    const [died, again] = await Promise.all([dead, back]);
    const few = in_flight < LEAST_IN_FLIGHT || !goes_on;
    // Nothing calls the platform meanwhile: it must begin by itself.
    const withinMs = few ? LAST_CALL_WITHIN_MS : WAIT_HANGS_MS;
    const called = await firstCall(model, died.before, withinMs);
    const recovery_ms = called === null ? null : Math.max(0, called - again.readyAt);
    const { readyAt: ready_at } = again;
    return { served: again, death: { victim, ...died, in_flight, ready_at, recovery_ms } };
  } finally {
    for (const release of releases) release();
  }
}

async function firstCall(model: Held, after: number, withinMs: number): Promise<number | null> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const called = model.times.find((at) => at > after);
    if (called !== undefined) return called;
    if (Date.now() > deadline) return null;
    await pause(LOOK_EVERY_MS);
  }
}

function kill(victim: Victim, { node, workerd, group }: Served): void {
  switch (victim) {
    case "node":
      process.kill(node.pid, "SIGKILL");
      return;
    case "workerd":
      process.kill(workerd.pid, "SIGKILL");
      return;
    case "group":
      process.kill(-group, "SIGKILL");
  }
}
