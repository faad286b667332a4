/** Histograms of times. */
import { expect, test } from "vitest";
import { addLatencies, boundOf, latenciesOf, PLATFORM_BOUNDS_MS } from "../../src/kernel/messages/latency.ts";

test("the platform's added time is counted besides the model's time, and its bounds are at most 42 % too high", () => {
  const added = Array.from({ length: 100 }, (_, at) => ({ latency_ms: 50, platform_ms: at < 98 ? 3 : 200 }));
  const both = addLatencies(latenciesOf(added), latenciesOf([{ latency_ms: 70 }]));
  expect(both?.counts.reduce((sum, count) => sum + count, 0)).toBe(101);
  const { platform } = both ?? {};
  expect(platform?.sum_ms).toBe(98 * 3 + 2 * 200);
  const within = (share: number) => (platform === undefined ? null : boundOf(platform, PLATFORM_BOUNDS_MS, share));
  expect([within(0.5), within(0.98), within(0.99)]).toEqual([4, 4, 256]);
  expect(boundOf({ counts: [], sum_ms: 0 }, PLATFORM_BOUNDS_MS, 0.5)).toBeNull();
  const [, ...later] = PLATFORM_BOUNDS_MS;
  for (const [at, bound] of later.entries()) expect(bound / (PLATFORM_BOUNDS_MS[at] ?? 0)).toBeLessThan(1.42);
  expect(PLATFORM_BOUNDS_MS.at(-1)).toBe(16_384);
});
