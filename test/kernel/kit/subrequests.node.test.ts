/** The connections of one invocation or one object, and what waiting for one costs. */
import { setImmediate } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { withinTime } from "../../../src/core/step-timer.ts";
import { StageClock } from "../../../src/kernel/environment/stage-clock.ts";
import { Semaphore } from "../../../src/kernel/kit/semaphore.ts";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** All connections are held, until `release` frees one after the other. */
function held(subrequests: Subrequests) {
  const gates = Array.from({ length: LIMITS.parallelFetches }, () => Promise.withResolvers<void>());
  for (const { promise } of gates) void subrequests.fetch(() => promise);
  return { release: () => gates.shift()?.resolve() };
}

test("at most as many calls are in progress as there are connections, and each waiting call gets its turn", async () => {
  const subrequests = new Subrequests(Number.POSITIVE_INFINITY);
  let [open, most, done] = [0, 0, 0];
  const call = async () => {
    open += 1;
    most = Math.max(most, open);
    await null;
    await null;
    open -= 1;
    done += 1;
  };
  await Promise.all(Array.from({ length: 40 }, () => subrequests.inTurn(call)));
  expect({ most, done, count: subrequests.count }).toEqual({ most: 6, done: 40, count: 40 });
});

/** A request that is not answered until `answer` is called. */
function request() {
  const { promise, resolve } = Promise.withResolvers<Response>();
  return { send: () => promise, answer: (status = 200) => resolve(new Response("", { status })) };
}

/** All connections are held by unanswered requests; the bodies of their replies stay open for ever. */
function unanswered(subrequests: Subrequests) {
  const requests = Array.from({ length: LIMITS.parallelFetches }, request);
  for (const { send } of requests) {
    void subrequests.inTurn(async (connection) => {
      await connection.request(send, new AbortController().signal);
      await new Promise(() => undefined);
    });
  }
  return { answer: (status?: number) => requests.shift()?.answer(status) };
}

test("six unanswered requests block a seventh; the headers of one reply let it leave while the body is read", async () => {
  const subrequests = new Subrequests();
  const { answer } = unanswered(subrequests);
  let made = false;
  const seventh = subrequests.inTurn(async () => {
    made = true;
  });
  await setImmediate();
  expect(made).toBe(false);
  answer();
  await seventh;
  expect(made).toBe(true);
});

test("a call keeps its connection after a refusal, since it may send its request again", async () => {
  const subrequests = new Subrequests();
  const { answer } = unanswered(subrequests);
  let made = false;
  const seventh = subrequests.inTurn(async () => {
    made = true;
  });
  answer(400);
  await setImmediate();
  expect(made).toBe(false);
  answer(200);
  await seventh;
});

test("a second request after an answer waits for a connection, and is not sent if it is given up", async () => {
  const subrequests = new Subrequests();
  const [first, second] = [request(), request()];
  const controller = new AbortController();
  const answered = Promise.withResolvers<void>();
  let sent = 0;
  const call = subrequests.inTurn(async (connection) => {
    await connection.request(first.send, controller.signal);
    answered.resolve();
    await setImmediate();
    const again = () => {
      sent += 1;
      return second.send();
    };
    return await connection.request(again, controller.signal);
  });
  first.answer();
  await answered.promise;
  unanswered(subrequests);
  await setImmediate();
  controller.abort(new Error("nobody wants it"));
  await expect(call).rejects.toThrow("nobody wants it");
  expect(sent).toBe(0);
});

test("a call that is given up while it waits is never made, and takes no other call's turn", async () => {
  const subrequests = new Subrequests();
  const { release } = held(subrequests);
  const made: string[] = [];
  const give = Promise.withResolvers<void>();
  const up = subrequests.inTurn(
    async () => void made.push("up"),
    (wait) => Promise.race([wait, give.promise]),
  );
  const next = subrequests.inTurn(async () => void made.push("next"));
  give.reject(new Error("nobody wants it"));
  await expect(up).rejects.toThrow("nobody wants it");
  release();
  await next;
  expect(made).toEqual(["next"]);
});

test("a call that is given up at the moment of its turn passes the turn on", async () => {
  const turns = new Semaphore(() => 1);
  const begun = Promise.withResolvers<void>();
  const first = turns.run(() => begun.promise);
  const up = turns.run(
    async () => undefined,
    async (wait) => {
      await wait;
      throw new Error("nobody wants it");
    },
  );
  let made = false;
  const next = turns.run(async () => {
    made = true;
  });
  begun.resolve();
  await first;
  await expect(up).rejects.toThrow("nobody wants it");
  await setImmediate();
  expect(made).toBe(true);
  await next;
  expect(turns.taken).toBe(0);
});

test("time in which a hook's call waits for a connection does not count: it has its full time after that", async () => {
  vi.useFakeTimers();
  const times = { setup: 1000, turn: 1000, tool: 1000, cleanup: 1000 };
  const clock = new StageClock({ times, deadline: Number.POSITIVE_INFINITY, now: () => Date.now() });
  const subrequests = new Subrequests();
  const { release } = held(subrequests);
  const call = () => new Promise((done) => setTimeout(done, 900));
  const hook = subrequests.inTurn(call, (wait) => clock.untimed(wait));
  const heard = Promise.allSettled([withinTime(hook, () => clock.timer("turn", "the hook"))]);
  await vi.advanceTimersByTimeAsync(5000);
  release();
  await vi.advanceTimersByTimeAsync(900);
  expect(await heard).toMatchObject([{ status: "fulfilled" }]);
});

test("a hook gets back the time that its call waited elsewhere, and no more", async () => {
  vi.useFakeTimers();
  const times = { setup: 1000, turn: 1000, tool: 1000, cleanup: 1000 };
  const clock = new StageClock({ times, deadline: Number.POSITIVE_INFINITY, now: () => Date.now() });
  const hook = async (after: number) => {
    await new Promise((done) => setTimeout(done, 900));
    clock.excuse(800);
    await new Promise((done) => setTimeout(done, after));
  };
  for (const [after, status] of [
    [850, "fulfilled"],
    [950, "rejected"],
  ] as const) {
    const heard = Promise.allSettled([withinTime(hook(after), () => clock.timer("turn", "the hook"))]);
    await vi.advanceTimersByTimeAsync(2000);
    expect(await heard).toMatchObject([{ status }]);
  }
});

test("a hook that takes longer than allowed besides such a wait is still cut off", async () => {
  vi.useFakeTimers();
  const times = { setup: 1000, turn: 1000, tool: 1000, cleanup: 1000 };
  const clock = new StageClock({ times, deadline: Number.POSITIVE_INFINITY, now: () => Date.now() });
  const subrequests = new Subrequests();
  const { release } = held(subrequests);
  const call = () => new Promise((done) => setTimeout(done, 1100));
  const heard = Promise.allSettled([
    withinTime(
      subrequests.inTurn(call, (wait) => clock.untimed(wait)),
      () => clock.timer("turn", "the hook"),
    ),
  ]);
  await vi.advanceTimersByTimeAsync(5000);
  release();
  await vi.advanceTimersByTimeAsync(1100);
  expect(await heard).toMatchObject([{ status: "rejected", reason: { name: "StageTimeoutError" } }]);
});
