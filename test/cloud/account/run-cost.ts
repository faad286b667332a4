/** What a run cost, by the account's own analytics. */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Bench } from "./bench.ts";
import { playRun } from "./play-run.ts";

/** Dollars for a million, November 2026: docs/cost.md. */
const PRICES = { gb_s: 12.5, requests: 0.15, rows_written: 1, rows_read: 0.001 } as const;
const GB_PER_OBJECT = 0.128;
/** The objects of the run itself, and seconds before an idle object leaves memory. */
const OTHER_OBJECTS = 4;
const IDLE_S = 10;

const QUERY = `query($account: string!, $script: string!, $from: Time!, $to: Time!) {
  viewer { accounts(filter: { accountTag: $account }) {
    invocations: durableObjectsInvocationsAdaptiveGroups(
      limit: 1000, filter: { scriptName: $script, datetime_geq: $from, datetime_leq: $to }
    ) { sum { requests } dimensions { namespaceId } }
    periodic: durableObjectsPeriodicGroups(limit: 1000, filter: { datetime_geq: $from, datetime_leq: $to }) {
      sum { duration rowsRead rowsWritten } dimensions { namespaceId }
    }
  } }
}`;

const Dimensions = z.object({ namespaceId: z.string() });
const Periodic = z.object({ duration: z.number(), rowsRead: z.number(), rowsWritten: z.number() });
const Usage = z.object({
  invocations: z.array(z.object({ sum: z.object({ requests: z.number() }), dimensions: Dimensions })),
  periodic: z.array(z.object({ sum: Periodic, dimensions: Dimensions })),
});
const Answer = z.object({ viewer: z.object({ accounts: z.array(Usage) }) });

interface Billed {
  readonly gb_s: number;
  readonly requests: number;
  readonly rows_written: number;
  readonly rows_read: number;
}

/** Plays the run, then waits until the analytics have it. */
export async function costOfRun(bench: Bench) {
  const { rollouts } = bench.sizes;
  const from = new Date();
  const run = await playRun(bench, { environment: "calculator", rollouts });
  const objects = Math.min(2, Math.ceil(rollouts / LIMITS.rolloutsPerShard)) + OTHER_OBJECTS;
  const expected_gb_s = (run.seconds + IDLE_S) * GB_PER_OBJECT * objects;
  const billed = await settledBill(bench, from);
  const micros = (bill: Billed) =>
    bill.gb_s * PRICES.gb_s +
    bill.requests * PRICES.requests +
    bill.rows_written * PRICES.rows_written +
    bill.rows_read * PRICES.rows_read;
  const dollars_per_1000 = billed === null ? null : (micros(billed) / 1e6 / rollouts) * 1000;
  return { run, rollouts, expected_gb_s, billed, dollars_per_1000 };
}

/** The bill once two answers in a row are equal; the last one at the end of the time; null without any numbers. */
async function settledBill(bench: Bench, from: Date): Promise<Billed | null> {
  const { analyticsEveryS: every, analyticsLimitS: limit } = bench.sizes;
  const until = performance.now() + limit * 1000;
  const to = new Date();
  for (let before: Billed | null = null; ; ) {
    await sleep(every * 1000, undefined, { signal: bench.signal });
    const now = await readBill(bench, from, to);
    if (now !== null && JSON.stringify(now) === JSON.stringify(before)) return now;
    if (performance.now() > until) return now;
    before = now;
  }
}

async function readBill({ account, graphql, product }: Bench, from: Date, to: Date): Promise<Billed | null> {
  const script = product.record.worker;
  const variables = { account: account.id, script, from: from.toISOString(), to: to.toISOString() };
  const [found] = Answer.parse(await graphql(QUERY, variables)).viewer.accounts;
  if (found === undefined || found.invocations.length === 0) return null;
  // The second list has no name of a Worker: the first one tells which classes are its.
  const own = new Set(found.invocations.map(({ dimensions }) => dimensions.namespaceId));
  const periodic = found.periodic.filter(({ dimensions }) => own.has(dimensions.namespaceId));
  if (periodic.length === 0) return null;
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  return {
    gb_s: sum(periodic.map(({ sum }) => sum.duration)),
    requests: sum(found.invocations.map(({ sum }) => sum.requests)),
    rows_written: sum(periodic.map(({ sum }) => sum.rowsWritten)),
    rows_read: sum(periodic.map(({ sum }) => sum.rowsRead)),
  };
}
