/**
 * The archive and the hours of usage while everything around the ledger fails: stores that refuse, stores that accept
 * without an answer, and objects that are killed at any write and any call.
 */
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { expect, test } from "vitest";
import { AccountLedger } from "../../../src/billing/ledger/account-ledger.ts";
import type { LedgerEntry } from "../../../src/contract/money.ts";
import { TEST_HANGS_MS } from "../../hang-limits.ts";
import { Life } from "../../kernel/life.ts";
import { DAY_MS, endsOf, HOUR_MS, newOrganization, type Organization, orderOf, topUp } from "./booking.ts";
import { TIMES } from "./histories.ts";

const START = Date.UTC(2026, 9, 30);

/** The outcome of a call to a store. */
type Fate = "fine" | "refused" | "unheard" | "killed before" | "killed after";

const event = fc.oneof(
  fc.record({ what: fc.constant("settle" as const), prices: fc.array(fc.nat(9), { minLength: 1, maxLength: 5 }) }),
  fc.record({ what: fc.constant("top up" as const), micros: fc.nat(50) }),
  fc.record({ what: fc.constant("wait" as const), hours: fc.constantFrom(0.02, 1, 24 * 20) }),
);
const fate = fc.constantFrom<Fate>("fine", "fine", "fine", "refused", "unheard", "killed before", "killed after");
/** The fates of the stores' calls, and the number of writes after which the object is killed, if it is. */
const harm = fc.record({ fates: fc.array(fate, { maxLength: 4 }), writes: fc.option(fc.nat(25)) });
type Harm = typeof harm extends fc.Arbitrary<infer T> ? T : never;
const NONE: Harm = { fates: [], writes: null };
const story = fc.array(fc.record({ event, harm }), { minLength: 2, maxLength: 8 });

/** The calls of the stores with these fates; later calls succeed. */
function stores(fates: readonly Fate[], life: Life): Env {
  const left = [...fates];
  const suffer = async <T>(call: () => Promise<T>): Promise<T> => {
    life.go();
    const next = left.shift() ?? "fine";
    if (next === "killed before") life.end();
    if (next === "refused") throw new Error("the store is away");
    const answer = await call();
    if (next === "killed after") life.end();
    if (next === "unheard") throw new Error("the answer is lost");
    return answer;
  };
  const STORE = new Proxy(env.STORE, {
    get: (real, name) => {
      if (name !== "put") return Reflect.get(real, name).bind(real);
      return (key: string, text: string) => suffer(() => real.put(key, text));
    },
  });
  const real = new WeakMap<object, D1PreparedStatement>();
  const statement = (prepared: D1PreparedStatement, query: string): D1PreparedStatement => {
    const wrapped = new Proxy(prepared, {
      get: (_, name) => {
        if (name === "bind") return (...values: unknown[]) => statement(prepared.bind(...values), query);
        const member: unknown = Reflect.get(prepared, name);
        if (typeof member !== "function") return member;
        const call = (...args: unknown[]) => Reflect.apply(member, prepared, args);
        return /^insert/.test(query) ? (...args: unknown[]) => suffer(async () => await call(...args)) : call;
      },
    });
    real.set(wrapped, prepared);
    return wrapped;
  };
  const DB = new Proxy(env.DB, {
    get: (database, name) => {
      if (name === "prepare") return (query: string) => statement(database.prepare(query), query);
      if (name !== "batch") return Reflect.get(database, name).bind(database);
      return (all: D1PreparedStatement[]) => suffer(() => database.batch(all.map((one) => real.get(one) ?? one)));
    },
  });
  return { ...env, STORE, DB };
}

/** An organisation's ledger over its object's storage, with its own clock and stores. A killed one stops. */
async function withLedger(
  org: Organization,
  now: number,
  { fates, writes }: Harm,
  use: (ledger: AccountLedger) => Promise<unknown>,
): Promise<void> {
  const life = new Life(writes);
  try {
    await org.inside(async (_, state) => {
      const holder = { storage: life.storage(state.storage), waitUntil: state.waitUntil.bind(state) };
      const ledger = new AccountLedger(holder, stores(fates, life), () => now);
      ledger.archiveBounds = { kept: 3, entriesAFile: 2 };
      await use(ledger);
    });
  } catch (thrown) {
    if (!/killed|the store is away|the answer is lost/.test(String(thrown))) throw thrown;
  }
}

async function storedEntries({ id }: Organization): Promise<LedgerEntry[]> {
  const { objects } = await env.STORE.list({ prefix: `org/${id}/ledger/` });
  const files = objects.map(({ key }) => key).filter((key) => key.endsWith(".ndjson"));
  const texts = await Promise.all(files.map(async (key) => (await env.STORE.get(key))?.text() ?? ""));
  return texts.flatMap((text) => text.split("\n").filter((line) => line !== "")).map((line) => JSON.parse(line));
}

const USED = "select sum(json_extract(counts, '$.rollouts')) as n from usage_hours where org_id = ?";

test(
  "whatever fails and is killed, each entry is in the object or in one file, usage is counted once, and the ledger verifies",
  async () => {
    await fc.assert(
      fc.asyncProperty(story, async (events) => {
        const org = await newOrganization("postpaid");
        let now = START;
        let n = 1;
        let posted = 0;
        const charged: number[] = [];
        for (const { event: happens, harm: suffered } of events) {
          if (happens.what === "wait") now += happens.hours * HOUR_MS;
          // A request is repeated until it is answered.
          if (happens.what === "settle") {
            const ends = endsOf("run_1", n, happens.prices);
            await withLedger(org, now, suffered, (ledger) => ledger.settle(orderOf(org, "run_1", ends)));
            await withLedger(org, now, NONE, (ledger) => ledger.settle(orderOf(org, "run_1", ends)));
            n += ends.length;
            charged.push(...happens.prices.filter((price) => price > 0));
          }
          if (happens.what === "top up") {
            const order = topUp(org, happens.micros);
            await withLedger(org, now, suffered, (ledger) => ledger.post(order));
            await withLedger(org, now, NONE, (ledger) => ledger.post(order));
            posted += happens.micros;
          }
          await withLedger(org, now + 70_000, suffered, (ledger) => ledger.tend());
        }
        const end = now + 62 * DAY_MS;
        for (const at of [now + 70_000, end, end + 70_000]) await withLedger(org, at, NONE, (ledger) => ledger.tend());
        await withLedger(org, end, NONE, async (ledger) => {
          const balance = posted - charged.reduce((sum, price) => sum + price, 0);
          const found = await ledger.verify();
          expect(found).toMatchObject({ differences: [], balance_micros: balance, recomputed_micros: balance });
          const asked = { before: null, limit: 1000, kind: null, run_id: null, source_id: null };
          const all = (await ledger.entries(asked)).entries.toReversed();
          expect(all.map(({ number }) => number)).toEqual(all.map((_, index) => index + 1));
          expect(all.length).toBe(found.entries);
          const stored = await storedEntries(org);
          const archived = found.entries < 5 ? 0 : found.entries - 3 - ((found.entries - 3) % 2);
          expect(stored).toEqual(all.slice(0, archived));
          const ends = all.filter(({ kind }) => kind === "rollout").map(({ amount_micros }) => -amount_micros);
          expect(ends).toEqual(charged);
          const ids = Array.from({ length: n - 1 }, (_, index) => `run_1-${index + 1}`);
          expect((await ledger.entriesOf("run_1", ids)).entries.length).toBe(charged.length);
        });
        if (n === 1) return;
        const used = await env.DB.prepare(USED).bind(org.id).first<{ n: number | null }>();
        expect(used?.n).toBe(n - 1);
      }),
      { numRuns: 25 * TIMES },
    );
  },
  TIMES * TEST_HANGS_MS,
);

const BREAKS: readonly (readonly [what: string, statement: string, named: RegExp])[] = [
  ["an entry's amount", "update entries set lines = replace(lines, '7', '8') where number = 4", /account|revenue/],
  [
    "one line of an entry",
    "update entries set lines = replace(lines, '-7', '-6') where number = 4",
    /sum of the lines/,
  ],
  ["an entry that is gone", "delete from entries where number = 4", /number of an entry/],
  ["a balance", "update accounts set micros = micros + 1 where name = 'balance'", /account balance/],
  ["the sums of a month", "update months set accounts = replace(accounts, '22', '23')", /in 2026-11|account/],
  ["a closing balance", "update months set closing_micros = closing_micros + 1", /closing balance/],
  [
    "the sums of the archive",
    "update facts set value = replace(value, '10', '11') where name = 'archived'",
    /in 2026-11/,
  ],
  ["a file that is gone", "delete from archive", /number of archived entries/],
  ["what was posted once", "update sources set source_id = 'other' where number = 6", /source of an entry/],
];

test.each(BREAKS)("the verification of the ledger names a difference in %s", async (_, statement, named) => {
  const org = await newOrganization("postpaid");
  const now = Date.UTC(2026, 10, 10);
  await withLedger(org, now, NONE, async (ledger) => {
    await ledger.post(topUp(org, 102));
    await ledger.settle(orderOf(org, "run_1", endsOf("run_1", 1, [0, 10, 2, 7, 3])));
    await ledger.post(topUp(org, 5));
  });
  await withLedger(org, now + 70_000, NONE, async (ledger) => {
    await ledger.tend();
    expect((await ledger.verify()).differences).toEqual([]);
  });
  await org.inside((_object, { storage }) => void storage.sql.exec(statement));
  await withLedger(org, now + 80_000, NONE, async (ledger) => {
    const { differences } = await ledger.verify();
    expect(differences.map(({ what }) => what).join()).toMatch(named);
  });
});
