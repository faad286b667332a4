/** When the reports of one object are sent, by a clock of the test. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Debounced, reportsApartMs } from "../../../src/kernel/rollout/debounced.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Items are lengths of rollouts in milliseconds. */
function sending() {
  const sent: { readonly at: number; readonly items: readonly number[] }[] = [];
  const from = Date.now();
  const send = async (items: readonly number[]) => {
    sent.push({ at: Date.now() - from, items });
    return items;
  };
  const apart = (took: number) => reportsApartMs({ started_at: 0, ended_at: took });
  const debounced = new Debounced(
    send,
    () => Number.POSITIVE_INFINITY,
    0,
    () => false,
    apart,
  );
  const addAt = async (at: number, took: number) => {
    await vi.advanceTimersByTimeAsync(from + at - Date.now());
    void debounced.add(took);
  };
  return { sent, addAt };
}

test("reports that are far apart are each sent within 10 ms", async () => {
  const { sent, addAt } = sending();
  for (const at of [0, 300, 600]) await addAt(at, 50_000);
  await vi.runAllTimersAsync();
  expect(sent.map(({ at }) => at)).toEqual([10, 310, 610]);
});

test("dense reports of long rollouts are sent 250 ms apart, and none is left behind", async () => {
  const { sent, addAt } = sending();
  for (let at = 0; at < 1000; at += 20) await addAt(at, 50_000);
  await vi.runAllTimersAsync();
  expect(sent.map(({ at }) => at)).toEqual([10, 260, 510, 760, 1010]);
  expect(sent.flatMap(({ items }) => items).length).toBe(50);
});

test("a report waits at most a twentieth of its rollout's time, and takes those that wait longer along", async () => {
  const { sent, addAt } = sending();
  await addAt(0, 50_000);
  await addAt(20, 50_000);
  await addAt(30, 1000);
  await addAt(100, 100);
  await vi.runAllTimersAsync();
  expect(sent).toEqual([
    { at: 10, items: [50_000] },
    { at: 60, items: [50_000, 1000] },
    { at: 110, items: [100] },
  ]);
});

test("a fault that passes fails all reports of a call, and another one only the report that it is about", async () => {
  const outcomesOf = async (passes: boolean) => {
    let calls = 0;
    const send = async (items: readonly number[]) => {
      calls += 1;
      if (items.includes(13)) throw new Error("no");
      return items;
    };
    const debounced = new Debounced<number, number>(
      send,
      () => 3,
      0,
      () => passes,
    );
    const reports = [1, 13, 2].map((item) => debounced.add(item));
    const outcomes = await Promise.allSettled(reports);
    return [calls, ...outcomes.map(({ status }) => status)];
  };
  expect(await outcomesOf(true)).toEqual([1, "rejected", "rejected", "rejected"]);
  expect(await outcomesOf(false)).toEqual([4, "fulfilled", "rejected", "fulfilled"]);
});
