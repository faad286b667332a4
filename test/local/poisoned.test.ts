/**
 * Code of an environment that stops the whole process: it computes without end, or it takes the process down. The
 * platform ends what hangs, starts again, finds the one it was, and everybody else's work goes on. Real processes: the
 * bundle that deploys, its workerd, and what watches it.
 */
import { expect, test, vi } from "vitest";
import { again, play, without } from "./poison/play.ts";

vi.setConfig({ testTimeout: 600_000 });

test("a hook that never returns ends its own rollout, and 30 that were waiting in theirs are scored", async () => {
  const played = await play({ 23: "setup" }, 31, 0, 4000);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 30 } });
  expect(without(played)).toEqual({
    23: { reason: "failed: environment", why: again("its environment was setting it up, after 0 turns") },
  });
  const ends = played.said.filter((line) => line.includes("did not answer for 4 s"));
  expect(ends).toHaveLength(3);
});
