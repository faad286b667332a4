/** What the boot counts as silence of a workerd: time that it computes, so that a busy machine ends none. */
import { expect, test } from "vitest";
import { cpuMsOf } from "../../src/local/processes.ts";
import { countedSilence } from "../../src/local/workerd-watch.ts";

test("time without an answer counts while workerd computes, and a tenth of it while it waits for the processor", () => {
  expect(countedSilence(1000, 1000)).toBe(1000);
  expect(countedSilence(1000, 300)).toBe(300);
  expect(countedSilence(1000, 0)).toBe(100);
});

test("several threads count as one, and a system that does not tell counts all of the time", () => {
  expect(countedSilence(1000, 1900)).toBe(1000);
  expect(countedSilence(1000, null)).toBe(1000);
});

test("one question counts for no more than 2.5 s, whatever else kept the boot from asking", () => {
  expect(countedSilence(60_000, 60_000)).toBe(2500);
});

test.runIf(process.platform === "linux")(
  "what a process computes is read from the system; one that is gone has none",
  () => {
    const before = cpuMsOf(process.pid) ?? Number.NaN;
    let rounds = 0;
    while ((cpuMsOf(process.pid) ?? 0) < before + 50) rounds += 1;
    expect(rounds).toBeGreaterThan(0);
    expect(cpuMsOf(2 ** 22 + 1)).toBeNull();
  },
);
