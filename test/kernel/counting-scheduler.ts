/** Scheduling turns that record what was computed when. */
import { onTestFinished } from "vitest";
import { FairScheduler } from "../../src/kernel/kit/fair-scheduler.ts";

/** An organisation began to compute this many steps, or the process polled its sockets. */
export type Seen = { readonly org: string; readonly steps: number } | "loop";

export function countingScheduler(): { scheduler: FairScheduler; seen: Seen[] } {
  const seen: Seen[] = [];
  let over = false;
  const tick = () => {
    if (seen.at(-1) !== "loop") seen.push("loop");
    if (!over) setImmediate(tick);
  };
  setImmediate(tick);
  onTestFinished(() => {
    over = true;
  });
  let now = 0;
  const wait = async (ms: number) => {
    await new Promise((resolve) => setTimeout(resolve, Math.min(ms, 1)));
    now += ms;
  };
  class CountingScheduler extends FairScheduler {
    override async spend(org: string, steps: number, first?: boolean): Promise<void> {
      await super.spend(org, steps, first);
      seen.push({ org, steps });
    }
  }
  return { scheduler: new CountingScheduler({ now: () => now, wait }), seen };
}

/** The most steps that were computed between two polls of the sockets. */
export function longestPass(seen: readonly Seen[]): number {
  let [most, now] = [0, 0];
  for (const one of seen) {
    now = one === "loop" ? 0 : now + one.steps;
    most = Math.max(most, now);
  }
  return most;
}
