/**
 * kill -9 loses only the model calls in flight. Each test runs real processes: the platform as `rollcall serve` boots
 * it, its workerd, and a model that outlives them and keeps the log.
 */
import { expect, test } from "vitest";
import { TURNS } from "./arithmetic-model.ts";
import { type CrashAccount, crashRun, type Victim } from "./crash-run.ts";
import { testPort } from "./test-port.ts";

const ROLLOUTS = 300;

function crash(victim: Victim, port: number): Promise<CrashAccount> {
  return crashRun({
    rollouts: ROLLOUTS,
    maxConcurrent: 100,
    latencyMs: 200,
    port,
    victims: [victim],
  });
}

/** Rollouts that had started and not ended while workerd died. */
function inFlight({ results, crashes }: CrashAccount): Set<string> {
  const open = results.filter(({ timing }) => {
    const started = timing.start_time * 1000;
    const ended = started + timing.total * 1000;
    return crashes.some(({ after, before }) => started <= before && ended >= after - 1);
  });
  return new Set(open.map(({ rollout_id }) => rollout_id));
}

function expectNothingLostOrDoubled(account: CrashAccount): void {
  const { run, results, model, d1 } = account;
  expect(run).toMatchObject({ status: "completed", counts: { in_flight: 0, scored: ROLLOUTS } });
  expect(results).toHaveLength(ROLLOUTS);
  expect(new Set(results.map(({ rollout_id }) => rollout_id)).size).toBe(ROLLOUTS);
  expect(results.filter(({ turns, metrics }) => turns === TURNS && metrics["right"] === 1)).toEqual(results);
  const { prompt_tokens, completion_tokens } = model.usage();
  const turns = ROLLOUTS * TURNS;
  expect(run.report).toMatchObject({ turns, usage: { prompt_tokens, completion_tokens } });
  expect(d1).toEqual({ status: run.status, counts: run.counts, report: run.report });
}

function expectOnlyCallsInFlightRepeated(account: CrashAccount): void {
  const { run, model, crashes } = account;
  const asked = model.asked();
  const requests = model.times().length;
  const again = [...asked].filter(([, times]) => times > 1).map(([key]) => key.split(":")[0] ?? "");
  const open = inFlight(account);
  expect(crashes[0]?.unanswered).toBeGreaterThanOrEqual(50);
  expect(open.size).toBeGreaterThanOrEqual(50);
  expect(asked.size).toBe(ROLLOUTS * TURNS);
  expect(Math.max(...asked.values())).toBeLessThanOrEqual(2);
  expect(again.filter((rollout) => !open.has(rollout))).toEqual([]);
  expect(new Set(again).size).toBe(again.length);
  expect(requests).toBeLessThanOrEqual(ROLLOUTS * TURNS + open.size);
  expect(requests).toBeLessThanOrEqual(run.report.calls);
  expect(model.changed).toEqual([]);
}

test("after kill -9 of only node, the next start ends the orphan and the run continues", async () => {
  const account = await crash("node alone", testPort(0));
  expectNothingLostOrDoubled(account);
  expectOnlyCallsInFlightRepeated(account);
  expect(account.crashes[0]?.said).toContain("left behind by an earlier run");
});

test("after kill -9 of only workerd, the platform restarts it and the run continues", async () => {
  const account = await crash("workerd alone", testPort(10));
  expectNothingLostOrDoubled(account);
  expectOnlyCallsInFlightRepeated(account);
  expect(account.crashes[0]?.said).toContain("it is restarted with the same state");
});

test("after kill -9 of the whole group, the next start continues the run", async () => {
  const account = await crash("the group", testPort(20));
  expectNothingLostOrDoubled(account);
  expectOnlyCallsInFlightRepeated(account);
});
