/** The time of a call, which does not run while the platform itself does not read. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CallTimer } from "../../../src/kernel/kit/call-timer.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("a wait does not count, and the rest of the time runs after it", async () => {
  const end = vi.fn();
  const timer = new CallTimer(100, 1000, end);
  await vi.advanceTimersByTimeAsync(60);
  const waits = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const untimed = waits.map(({ promise }) => timer.untimed(promise));
  await vi.advanceTimersByTimeAsync(200);
  waits[0]?.resolve();
  await vi.advanceTimersByTimeAsync(200);
  waits[1]?.resolve();
  await Promise.all(untimed);
  await vi.advanceTimersByTimeAsync(39);
  expect(end).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(end).toHaveBeenCalledOnce();
});

test("however long it waits, it ends at its latest time", async () => {
  const end = vi.fn();
  const timer = new CallTimer(100, 300, end);
  void timer.untimed(Promise.withResolvers<void>().promise);
  await vi.advanceTimersByTimeAsync(299);
  expect(end).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(end).toHaveBeenCalledOnce();
});

test("a latest time before its own does not shorten it, and a closed one never ends a call", async () => {
  const [end, never] = [vi.fn(), vi.fn()];
  new CallTimer(100, 0, end);
  const closed = new CallTimer(100, 200, never);
  const wait = Promise.withResolvers<void>();
  const untimed = closed.untimed(wait.promise);
  closed.close();
  wait.resolve();
  await untimed;
  await vi.advanceTimersByTimeAsync(99);
  expect(end).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1000);
  expect(end).toHaveBeenCalled();
  expect(never).not.toHaveBeenCalled();
});
