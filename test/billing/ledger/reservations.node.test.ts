/** When runs that wait for money are notified, and notified again. */
import { expect, test } from "vitest";
import { Spending, type Terms } from "../../../src/billing/ledger/budgets.ts";
import { makeLedger } from "../../../src/billing/ledger/ledger-schema.ts";
import { type Means, RESERVATION_LEASE_MS, Reservations } from "../../../src/billing/ledger/reservations.ts";
import { Rows } from "../../../src/kernel/kit/rows.ts";
import { MemoryStorage } from "./ledger-in-memory.ts";

const TERMS: Terms = { org_id: "org_a", billing: "prepaid", credit_limit_micros: null, budgets: [], read_at: 0 };

function reservations(): Reservations {
  const storage = new MemoryStorage();
  makeLedger(storage);
  const rows = new Rows(storage.sql);
  return new Reservations(rows, new Spending(rows));
}

const means = (balance: number, now: number): Means => ({ terms: TERMS, balance, month: "2026-11", now });

function run(run_id: string) {
  const facts = { environment: "e", model: "m", kind: "eval", price_version: "v1" } as const;
  return { scope: { orgId: "org_a", projectId: "pj_a" }, run_id, payer: "key_a", ...facts };
}

const told = (all: Reservations, of: Means) => all.toNotify(of).map(({ run_id }) => run_id);

test("a run that was notified and has not asked is notified again after ten seconds, and not before", () => {
  const all = reservations();
  all.ask(run("run_1"), { asked: 50, least: 0 }, means(20, 0));
  expect([told(all, means(20, 1)), all.nextAt(means(20, 1), 1)]).toEqual([[], RESERVATION_LEASE_MS]);
  const more = (now: number) => means(50, now);
  expect([told(all, more(1000)), all.nextAt(more(1000), 1000)]).toEqual([["run_1"], 1000]);
  all.noteNotified(["run_1"], 1000);
  expect([told(all, more(10_999)), told(all, more(11_000))]).toEqual([[], ["run_1"]]);
  expect(all.nextAt(more(2000), 2000)).toBe(11_000);
  expect(all.ask(run("run_1"), { asked: 50, least: 0 }, more(12_000))).toMatchObject({ micros: 50, short: null });
  expect([told(all, more(30_000)), all.anyShort()]).toEqual([[], false]);
});

test("a reservation ends with its lease to the millisecond, and its money is then available to others", () => {
  const all = reservations();
  all.ask(run("run_1"), { asked: 50, least: 0 }, means(50, 0));
  const other = (now: number) => all.offer(run("run_2"), 10, means(50, now), "first").short === null;
  expect([other(RESERVATION_LEASE_MS - 1), other(RESERVATION_LEASE_MS)]).toEqual([false, true]);
  expect([all.reserved(RESERVATION_LEASE_MS - 1), all.reserved(RESERVATION_LEASE_MS)]).toEqual([50, 0]);
  all.dropEnded(RESERVATION_LEASE_MS - 1);
  expect(all.nextAt(null, 0)).toBe(RESERVATION_LEASE_MS);
  all.dropEnded(RESERVATION_LEASE_MS);
  expect(all.nextAt(null, 0)).toBeNull();
});

test("a run's own reservation counts as its own when it asks for more, and otherwise as the others'", () => {
  const all = reservations();
  all.ask(run("run_1"), { asked: 30, least: 0 }, means(50, 0));
  expect(all.offer(run("run_1"), 50, means(50, 1), "next")).toEqual({ micros: 50, short: null });
  expect(all.offer(run("run_1"), 51, means(50, 1), "next")).toMatchObject({
    micros: 50,
    short: { shortfall_micros: 1 },
  });
  expect(all.offer(run("run_2"), 21, means(50, 1), "first")).toMatchObject({ micros: 20, short: { by: "balance" } });
});

test("a charged run keeps the rest of its reservation for a whole new lease", () => {
  const all = reservations();
  all.ask(run("run_1"), { asked: 50, least: 0 }, means(50, 0));
  const later = RESERVATION_LEASE_MS - 1;
  const left = { micros: 30, until: later + RESERVATION_LEASE_MS, short: null };
  expect(all.use(run("run_1"), 20, later)).toEqual(left);
  expect([all.reserved(left.until - 1), all.reserved(left.until)]).toEqual([30, 0]);
  expect(all.use(run("run_1"), 20, left.until)).toBeNull();
});
