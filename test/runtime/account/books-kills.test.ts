/**
 * Copies and closed months while everything around the books fails: stores that refuse, stores that take and do not say so,
 * and objects that are killed at any call to the outside.
 */
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { LedgerEntry } from "../../../src/contract/money.ts";
import { AccountBooks } from "../../../src/runtime/account/account-books.ts";
import { DAY_MS, endsOf, HOUR_MS, newOrganization, type Organization, orderOf, topUp } from "./booking.ts";
import { TIMES } from "./histories.ts";
import { Life } from "./life.ts";

const START = Date.UTC(2026, 9, 30);

/** What becomes of a call to a store. */
type Fate = "fine" | "refused" | "unheard" | "killed before" | "killed after";

const event = fc.oneof(
  fc.record({ what: fc.constant("settle" as const), prices: fc.array(fc.nat(9), { minLength: 1, maxLength: 5 }) }),
  fc.record({ what: fc.constant("top up" as const), micros: fc.nat(50) }),
  fc.record({ what: fc.constant("wait" as const), hours: fc.constantFrom(0.02, 1, 24 * 20) }),
);
const fate = fc.constantFrom<Fate>("fine", "fine", "fine", "refused", "unheard", "killed before", "killed after");
/** Of the stores' calls, and after how many writes of its own the object is killed, if it is. */
const harm = fc.record({ fates: fc.array(fate, { maxLength: 4 }), writes: fc.option(fc.nat(25)) });
type Harm = typeof harm extends fc.Arbitrary<infer T> ? T : never;
const NONE: Harm = { fates: [], writes: null };
const story = fc.array(fc.record({ event, harm }), { minLength: 2, maxLength: 8 });

/** Calls of the stores, each with its fate; those beyond the list are fine. */
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

/** Books of an organisation over the storage of its object, with a clock and stores of their own; killed ones do nothing any more. */
async function withBooks(
  org: Organization,
  now: number,
  { fates, writes }: Harm,
  use: (books: AccountBooks) => Promise<unknown>,
): Promise<void> {
  const life = new Life(writes);
  try {
    await org.inside(async (_, state) => {
      const holder = { storage: life.storage(state.storage), waitUntil: state.waitUntil.bind(state) };
      await use(new AccountBooks(holder, stores(fates, life), () => now));
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
  "whatever fails and is killed, entries have one copy, and the books hold",
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
          // What is asked is asked until it is answered.
          if (happens.what === "settle") {
            const ends = endsOf("run_1", n, happens.prices);
            await withBooks(org, now, suffered, (books) => books.settle(orderOf(org, "run_1", ends)));
            await withBooks(org, now, NONE, (books) => books.settle(orderOf(org, "run_1", ends)));
            n += ends.length;
            charged.push(...happens.prices.filter((price) => price > 0));
          }
          if (happens.what === "top up") {
            const order = topUp(org, happens.micros);
            await withBooks(org, now, suffered, (books) => books.post(order));
            await withBooks(org, now, NONE, (books) => books.post(order));
            posted += happens.micros;
          }
          await withBooks(org, now + 70_000, suffered, (books) => books.tend());
        }
        const end = now + 62 * DAY_MS;
        for (const at of [now + 70_000, end, end + 70_000]) await withBooks(org, at, NONE, (books) => books.tend());
        await withBooks(org, end, NONE, async (books) => {
          const balance = posted - charged.reduce((sum, price) => sum + price, 0);
          const found = await books.verify();
          expect(found).toMatchObject({
            differences: [],
            balance_micros: balance,
            recomputed_micros: balance,
            uncopied: 0,
          });
          const stored = await storedEntries(org);
          expect(stored.map(({ number }) => number)).toEqual(stored.map((_, index) => index + 1));
          expect(stored.length).toBe(found.entries);
          const asked = { before: null, limit: 1000, kind: null, run_id: null, source_id: null };
          const { entries: all } = await books.entries(asked);
          expect(all.toReversed()).toEqual(stored);
          const ends = stored.filter(({ kind }) => kind === "rollout").map(({ amount_micros }) => -amount_micros);
          expect(ends).toEqual(charged);
          const ids = Array.from({ length: n - 1 }, (_, index) => `run_1-${index + 1}`);
          expect((await books.entriesOf("run_1", ids)).entries.length).toBe(charged.length);
        });
        if (n === 1) return;
        const left = await org.inside((_, { storage }) => storage.sql.exec("select count(*) as n from entries").one());
        const used = await env.DB.prepare(USED).bind(org.id).first<{ n: number | null }>();
        expect([left["n"], used?.n]).toEqual([0, n - 1]);
      }),
      { numRuns: 25 * TIMES },
    );
  },
  TIMES * 30_000,
);

test("a kill before it is noted that the database heard of the balance is no difference, and it is told again", async () => {
  const org = await newOrganization("postpaid");
  const now = Date.UTC(2026, 10, 10);
  for (const [at, fates] of [
    [0, []],
    [HOUR_MS, ["fine", "fine", "killed after"]],
  ] as const) {
    await withBooks(org, now + at, NONE, (books) =>
      books.settle(orderOf(org, "run_1", endsOf("run_1", at === 0 ? 1 : 2, [7]))),
    );
    await withBooks(org, now + at + 70_000, { fates: [...fates], writes: null }, (books) => books.tend());
  }
  const row = () =>
    env.DB.prepare("select balance_micros as n from ledger_copies where org_id = ?").bind(org.id).first("n");
  expect(await row()).toBe(-14);
  await withBooks(org, now + HOUR_MS + 71_000, NONE, async (books) => {
    expect((await books.verify()).differences).toEqual([]);
    await books.tend();
  });
  await run("update ledger_copies set balance_micros = 1 where org_id = ?", org.id);
  await withBooks(org, now + HOUR_MS + 72_000, NONE, async (books) => {
    expect((await books.verify()).differences).toHaveLength(1);
  });
});

test("months chain: each names the hash of the one before, and its row and its statement say the same", async () => {
  const org = await newOrganization("postpaid");
  const months = ["2026-08", "2026-09", "2026-11"];
  for (const [index, month] of months.entries()) {
    const now = Date.parse(`${month}-10`);
    await withBooks(org, now, NONE, async (books) => {
      await books.settle(orderOf(org, "run_1", endsOf("run_1", index + 1, [10 + index])));
      await books.tend();
    });
  }
  await withBooks(org, Date.parse("2026-12-01"), NONE, (books) => books.tend());
  const statements = await Promise.all(
    months.map(async (month) =>
      JSON.parse((await (await env.STORE.get(`org/${org.id}/ledger/${month}.json`))?.text()) ?? "{}"),
    ),
  );
  expect(
    statements.map(({ opening_micros, closing_micros, accounts }) => [opening_micros, closing_micros, accounts]),
  ).toEqual([
    [0, -10, { balance: -10, "revenue/rollout": 10 }],
    [-10, -21, { balance: -11, "revenue/rollout": 11 }],
    [-21, -33, { balance: -12, "revenue/rollout": 12 }],
  ]);
  expect(statements.map(({ previous }) => previous)).toEqual([null, statements[0].sha256, statements[1].sha256]);
  const rows = await env.DB.prepare("select sha256 from ledger_months where org_id = ? order by month")
    .bind(org.id)
    .all();
  expect(rows.results.map(({ sha256 }) => sha256)).toEqual(statements.map(({ sha256 }) => sha256));
});

const BREAKS: readonly (readonly [what: string, statement: string, named: RegExp])[] = [
  ["an entry's amount", "update entries set lines = replace(lines, '7', '8') where number = 3", /copy|account|revenue/],
  [
    "one line of an entry",
    "update entries set lines = replace(lines, '-7', '-6') where number = 3",
    /sum of the lines/,
  ],
  ["an entry that is gone", "delete from entries where number = 2", /number of an entry/],
  ["a balance", "update accounts set micros = micros + 1 where name = 'balance'", /account balance/],
  ["the sums of a month", "update months set accounts = replace(accounts, '85', '86')", /in 2026-11|hash|account/],
  ["a closing balance", "update months set closing_micros = closing_micros + 1", /closing balance/],
  ["a copy's hash", "update copies set sha256 = 'x'", /entries of a copy/],
  ["what was posted once", "update sources set source_id = 'other'", /source of an entry/],
];

test.each(BREAKS)("the check of the books names a difference in %s", async (_, statement, named) => {
  const org = await newOrganization("postpaid");
  const now = Date.UTC(2026, 10, 10);
  await withBooks(org, now, NONE, async (books) => {
    await books.post(topUp(org, 102));
    await books.settle(orderOf(org, "run_1", endsOf("run_1", 1, [0, 10, 7])));
  });
  await withBooks(org, now + 70_000, NONE, async (books) => {
    await books.tend();
    expect((await books.verify()).differences).toEqual([]);
  });
  await org.inside((_object, { storage }) => void storage.sql.exec(statement));
  await withBooks(org, now + 80_000, NONE, async (books) => {
    const { differences } = await books.verify();
    expect(differences.map(({ what }) => what).join()).toMatch(named);
  });
});

const REMOTE: readonly (readonly [what: string, spoil: (org: Organization) => Promise<unknown>, named: RegExp])[] = [
  [
    "a file of entries",
    ({ id }) => env.STORE.put(`${folder(id)}2026-11/000000000001-000000000002.ndjson`, "{}\n"),
    /copy of entries/,
  ],
  ["a statement that is gone", ({ id }) => env.STORE.delete(`${folder(id)}2026-11.json`), /stored statement/],
  [
    "the row of a month",
    ({ id }) => run("update ledger_months set closing_micros = 1 where org_id = ?", id),
    /row of 2026-11/,
  ],
  [
    "the row of the balance",
    ({ id }) => run("update ledger_copies set balance_micros = 1 where org_id = ?", id),
    /row of the balance/,
  ],
];
const folder = (orgId: string) => `org/${orgId}/ledger/`;
const run = (statement: string, orgId: string) => env.DB.prepare(statement).bind(orgId).run();

test.each(REMOTE)("the check of the books names a difference in %s", async (_, spoil, named) => {
  const org = await newOrganization("postpaid");
  const now = Date.UTC(2026, 10, 10);
  await withBooks(org, now, NONE, async (books) => {
    await books.settle(orderOf(org, "run_1", endsOf("run_1", 1, [10, 7])));
  });
  for (const at of [now + 70_000, now + 40 * DAY_MS]) await withBooks(org, at, NONE, (books) => books.tend());
  await withBooks(org, now + 41 * DAY_MS, NONE, async (books) =>
    expect((await books.verify()).differences).toEqual([]),
  );
  await spoil(org);
  await withBooks(org, now + 41 * DAY_MS, NONE, async (books) => {
    const { differences } = await books.verify();
    expect(differences.map(({ what }) => what).join()).toMatch(named);
  });
});
