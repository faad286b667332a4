import { expect, test } from "vitest";
import { pauseWork, scoringGroupWork, WORK } from "../../../src/core/rubrics/work.ts";
import { FairScheduler, PASS_STEPS } from "../../../src/kernel/kit/fair-scheduler.ts";
import { beginInTurn, type Pause } from "../../../src/kernel/scoring/scoring-turns.ts";

/** Events in order: a scoring group computed this many steps, or the process polled its sockets. */
type Seen = readonly [scoringGroup: string, steps: number] | "loop";

function bench() {
  const seen: Seen[] = [];
  let now = 0;
  const wait = async (ms: number) => {
    await new Promise((resolve) => setTimeout(resolve, Math.min(ms, 1)));
    now += ms;
    seen.push("loop");
  };
  const scheduler = new FairScheduler({ now: () => now, wait });
  /** A scoring group whose scores take this many steps each. */
  const scoringGroup = async (org: string, name: string, scores: readonly number[]) => {
    const work = scoringGroupWork();
    const pass = async (pause: Pause) => {
      for (const steps of scores) {
        const score = (async () => {
          work.spend(steps, "scoring");
          seen.push([name, steps]);
        })();
        await pause(score);
      }
      return name;
    };
    const begun = await beginInTurn(org, work, pass, { scheduler });
    await begun.idle;
    return await begun.result;
  };
  return { seen, scheduler, unit: scoringGroup };
}

/** The most steps that were computed without polling the sockets. */
function longestPass(seen: readonly Seen[]): number {
  let [most, now] = [0, 0];
  for (const one of seen) {
    now = one === "loop" ? 0 : now + one[1];
    most = Math.max(most, now);
  }
  return most;
}

const HEAVY = 9_000_000;

test("no pass exceeds its steps by more than one score, however large a scoring group or a message is", async () => {
  const { seen, unit: scoringGroup } = bench();
  for (let at = 0; at < 6; at += 1) await scoringGroup("greedy", `g${at}`, Array(9).fill(HEAVY));
  expect(longestPass(seen)).toBe(HEAVY);
});

test("many light scoring groups are computed in one pass, up to its steps", async () => {
  const { seen, unit: scoringGroup } = bench();
  const light = PASS_STEPS / 10;
  for (let at = 0; at < 40; at += 1) await scoringGroup("org", `u${at}`, [light]);
  expect(longestPass(seen)).toBeLessThanOrEqual(PASS_STEPS + light);
  expect(seen.filter((one) => one === "loop").length).toBeLessThan(12);
});

test("organisations alternate: a light scoring group waits for one score of another's heavy groups, not for all of them", async () => {
  const { seen, unit: scoringGroup } = bench();
  const greedy = Array.from({ length: 5 }, (_, at) => scoringGroup("greedy", `g${at}`, Array(9).fill(HEAVY)));
  await Promise.resolve();
  const fair = Array.from({ length: 3 }, (_, at) => scoringGroup("fair", `f${at}`, [1000]));
  await Promise.all([...greedy, ...fair]);
  const order = seen.filter((one) => one !== "loop").map(([name]) => name[0]);
  const last = order.lastIndexOf("f");
  // Each of the three waits for at most one more heavy score, and for the one that ran when they came.
  expect(order.slice(0, last).filter((kind) => kind === "g").length).toBeLessThanOrEqual(4);
  expect(order).toHaveLength(48);
});

test("a scoring group that waits for something outside delays no other", async () => {
  const { scheduler, unit: scoringGroup } = bench();
  const outside = Promise.withResolvers<void>();
  const late = async (pause: Pause) => {
    await pause(outside.promise);
    return "late";
  };
  const waiting = await beginInTurn("a", scoringGroupWork(), late, { scheduler });
  await waiting.idle;
  expect(await scoringGroup("b", "light", [10])).toBe("light");
  outside.resolve();
  expect(await waiting.result).toBe("late");
});

test("a scoring group that throws returns its turn", async () => {
  const { scheduler, unit: scoringGroup } = bench();
  const broken = async () => {
    throw new Error("broken");
  };
  const begun = await beginInTurn("a", scoringGroupWork(), broken, { scheduler });
  await expect(begun.result).rejects.toThrow("broken");
  await begun.idle;
  expect(await scoringGroup("b", "light", [10])).toBe("light");
});

test("a score that is computed in pieces, with a pause between them, delays others by one piece at most", async () => {
  const { seen, scheduler, unit: scoringGroup } = bench();
  const work = scoringGroupWork();
  const pieces = async () => {
    for (let piece = 0; piece < 20; piece += 1) {
      work.spend(PASS_STEPS, "scoring");
      seen.push(["pieces", PASS_STEPS]);
      await pauseWork({ [WORK]: work });
    }
  };
  const heavy = beginInTurn("greedy", work, (pause) => pause(pieces()), { scheduler });
  const light = (async () => {
    await heavy;
    return await scoringGroup("fair", "fair", [1000]);
  })();
  const { idle, result } = await heavy;
  await Promise.all([idle, result, light]);
  expect(longestPass(seen)).toBeLessThanOrEqual(PASS_STEPS + 1000);
  const order = seen.filter((one) => one !== "loop").map(([name]) => name);
  expect(order.slice(0, 5)).toContain("fair");
  expect(order).toHaveLength(21);
});
