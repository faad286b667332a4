/**
 * How much time without an answer counts against workerd: the time while it computes, so that a busy machine ends none.
 */
import { expect, test } from "vitest";
import { cpuMsOf } from "../../src/local/processes.ts";
import { countedSilence } from "../../src/local/workerd-watch.ts";

test("silence counts while workerd computes, and a tenth of it while it waits for the processor", () => {
  expect(countedSilence(1000, 1000)).toBe(1000);
  expect(countedSilence(1000, 300)).toBe(300);
  expect(countedSilence(1000, 0)).toBe(100);
});

test("several threads count as one, and on a system without CPU times all of the time counts", () => {
  expect(countedSilence(1000, 1900)).toBe(1000);
  expect(countedSilence(1000, null)).toBe(1000);
});

test("one request counts for at most 2.5 s, whatever else kept the boot from asking", () => {
  expect(countedSilence(60_000, 60_000)).toBe(2500);
});

test.runIf(process.platform === "linux")(
  "the CPU time of a process is read from the system; a process that is gone has none",
  () => {
    const before = cpuMsOf(process.pid) ?? Number.NaN;
    let rounds = 0;
    while ((cpuMsOf(process.pid) ?? 0) < before + 50) rounds += 1;
    expect(rounds).toBeGreaterThan(0);
    expect(cpuMsOf(2 ** 22 + 1)).toBeNull();
  },
);
