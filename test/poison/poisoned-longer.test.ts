/** `npm run test:poison`: code that stops the process, in cases where it takes several crashes to find it (minutes). */
import { expect, test } from "vitest";
import { again, play, playAgain, without } from "../local/poison/play.ts";

test("a setup that never returns ends its own rollout, and 500 that waited in theirs are scored", async () => {
  const played = await play({ 123: "setup" }, 501, 0);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 500 } });
  expect(without(played)).toEqual({
    123: { reason: "failed: environment", why: again("its environment was setting it up, after 0 turns") },
  });
});

// After four crashes in a row a rollout may be given up before it reaches the step that ends the process again. Its
// reason then does not name that step.
const REPLYING =
  /crashed or hung 3 times while (its environment was replying|code of its environment ran), after 1 turns/;

test("a reply and a score that never come end their own rollouts and no other", async () => {
  const played = await play({ 3: "reply", 5: "score" }, 20, 8);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 18 } });
  expect(without(played)).toEqual({
    3: { reason: "failed: environment", why: expect.stringMatching(REPLYING) },
    5: { reason: "unscored: scorer", why: again("it was being scored") },
  });
});

test("so do a row that cannot be made and a hook that runs forever after the outside has answered", async () => {
  const played = await play({ 3: "row", 7: "fetched" }, 20, 16);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 18 } });
  expect(without(played)).toEqual({
    3: { reason: "failed: environment", why: again("its task was being built") },
    7: { reason: "failed: environment", why: again("") },
  });
});

test("so does code that runs forever in a timer, which only its own end reveals", async () => {
  const played = await play({ 4: "slept" }, 12, 24);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 11 } });
  expect(without(played)).toEqual({
    4: { reason: "failed: environment", why: again("") },
  });
});

test("so does a list of tools that is never made", async () => {
  const played = await play({ 6: "tools" }, 12, 32);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 11 } });
  expect(without(played)).toEqual({
    6: {
      reason: "failed: environment",
      why: again(""),
    },
  });
});

test("so does a hook that closes a rollout, after the reply that ended it", async () => {
  const played = await play({ 6: "closed" }, 12, 40);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 11 } });
  expect(without(played)).toEqual({
    6: { reason: "failed: environment", why: again("") },
  });
});

test("so does a hook that crashes the process", async () => {
  const played = await play({ 2: "crash" }, 12, 48);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 11 } });
  expect(without(played)).toEqual({
    2: { reason: "failed: environment", why: again("") },
  });
});

test("a platform that is stopped while code hangs is started again, and ends that code's rollout", async () => {
  const played = await playAgain({ 4: "setup" }, 12, 56);
  expect(played.run).toMatchObject({ status: "completed", counts: { scored: 11 } });
  expect(without(played)).toEqual({
    4: { reason: "failed: environment", why: again("its environment was setting it up, after 0 turns") },
  });
});
