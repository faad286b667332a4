/**
 * Environment code that stops the whole process: it computes without end, or crashes the process. The platform ends
 * what hangs, restarts, finds the rollout that caused it, and continues everybody else's work. Real processes: the
 * deployed bundle, its workerd, and the watch.
 */
import { expect, test } from "vitest";
import { again, play, without } from "./poison/play.ts";

test("a hook that never returns ends its own rollout, and 30 rollouts waiting in hooks are scored", async () => {
  const played = await play({ 23: "setup" }, 31, 0, 4000);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 30 } });
  expect(without(played)).toEqual({
    23: { reason: "failed: environment", why: again("its environment was setting it up, after 0 turns") },
  });
  const ends = played.said.filter((line) => line.includes("did not answer for 4 s"));
  expect(ends).toHaveLength(3);
});
