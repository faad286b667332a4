/** When runs that wait for money are notified, and notified again. */
import { expect, test } from "vitest";
import { makeBooks } from "../../../src/billing/books/books-schema.ts";
import { Spending, type Terms } from "../../../src/billing/books/budgets.ts";
import { HOLD_LEASE_MS, Holds, type Means } from "../../../src/billing/books/holds.ts";
import { Rows } from "../../../src/kernel/kit/rows.ts";
import { MemoryStorage } from "./books-in-memory.ts";

const TERMS: Terms = { org_id: "org_a", billing: "prepaid", credit_limit_micros: null, budgets: [], read_at: 0 };

function holds(): Holds {
  const storage = new MemoryStorage();
  makeBooks(storage);
  const rows = new Rows(storage.sql);
  return new Holds(rows, new Spending(rows));
}

const means = (balance: number, now: number): Means => ({ terms: TERMS, balance, month: "2026-11", now });

function run(run_id: string) {
  const facts = { environment: "e", model: "m", kind: "eval", price_version: "v1" } as const;
  return { scope: { orgId: "org_a", projectId: "pj_a" }, run_id, payer: "key_a", ...facts };
}

const told = (all: Holds, of: Means) => all.toTell(of).map(({ run_id }) => run_id);

test("a run that was notified and has not asked is notified again after ten seconds, and not before", () => {
  const all = holds();
  all.ask(run("run_1"), { asked: 50, least: 0 }, means(20, 0));
  expect([told(all, means(20, 1)), all.nextAt(means(20, 1), 1)]).toEqual([[], HOLD_LEASE_MS]);
  const more = (now: number) => means(50, now);
  expect([told(all, more(1000)), all.nextAt(more(1000), 1000)]).toEqual([["run_1"], 1000]);
  all.noteTold(["run_1"], 1000);
  expect([told(all, more(10_999)), told(all, more(11_000))]).toEqual([[], ["run_1"]]);
  expect(all.nextAt(more(2000), 2000)).toBe(11_000);
  expect(all.ask(run("run_1"), { asked: 50, least: 0 }, more(12_000))).toMatchObject({ micros: 50, short: null });
  expect([told(all, more(30_000)), all.anyShort()]).toEqual([[], false]);
});

test("a reservation ends with its lease to the millisecond, and its money is then available to others", () => {
  const all = holds();
  all.ask(run("run_1"), { asked: 50, least: 0 }, means(50, 0));
  const other = (now: number) => all.offer(run("run_2"), 10, means(50, now), "first").short === null;
  expect([other(HOLD_LEASE_MS - 1), other(HOLD_LEASE_MS)]).toEqual([false, true]);
  expect([all.reserved(HOLD_LEASE_MS - 1), all.reserved(HOLD_LEASE_MS)]).toEqual([50, 0]);
  all.dropEnded(HOLD_LEASE_MS - 1);
  expect(all.nextAt(null, 0)).toBe(HOLD_LEASE_MS);
  all.dropEnded(HOLD_LEASE_MS);
  expect(all.nextAt(null, 0)).toBeNull();
});

test("a run's own reservation counts as its own when it asks for more, and otherwise as the others'", () => {
  const all = holds();
  all.ask(run("run_1"), { asked: 30, least: 0 }, means(50, 0));
  expect(all.offer(run("run_1"), 50, means(50, 1), "next")).toEqual({ micros: 50, short: null });
  expect(all.offer(run("run_1"), 51, means(50, 1), "next")).toMatchObject({
    micros: 50,
    short: { shortfall_micros: 1 },
  });
  expect(all.offer(run("run_2"), 21, means(50, 1), "first")).toMatchObject({ micros: 20, short: { by: "balance" } });
});

test("a charged run keeps the rest of its reservation for a whole new lease", () => {
  const all = holds();
  all.ask(run("run_1"), { asked: 50, least: 0 }, means(50, 0));
  const later = HOLD_LEASE_MS - 1;
  const left = { micros: 30, until: later + HOLD_LEASE_MS, short: null };
  expect(all.use(run("run_1"), 20, later)).toEqual(left);
  expect([all.reserved(left.until - 1), all.reserved(left.until)]).toEqual([30, 0]);
  expect(all.use(run("run_1"), 20, left.until)).toBeNull();
});
