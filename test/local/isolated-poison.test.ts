/**
 * Environment code in isolates of its own that stops the whole process: on one machine workerd does not enforce the
 * limits of an isolate. Real processes: the deployed bundle, its workerd, and the watch.
 */
import { expect, test } from "vitest";
import { play, without } from "./poison/play.ts";

test("a hook that never returns and one that fills the memory end their own rollouts, and 30 others are scored", async () => {
  const played = await play({ 7: "crash", 23: "setup" }, 32, 47, 4000, true);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 30 } });
  // Which of its code ran depends on how many deaths the other one has caused.
  const ended = { reason: "failed: environment", why: expect.stringContaining("crashed or hung 3 times while") };
  expect(without(played)).toEqual({ 7: ended, 23: ended });
});
