/** The ledger's archive: its content, its cost, and ledgers that are older than the archive. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { AccountLedger } from "../../../src/billing/ledger/account-ledger.ts";
import { textOf } from "../../../src/billing/ledger/archive.ts";
import type { StoredEntry } from "../../../src/billing/ledger/entries.ts";
import { LEDGER_MIGRATIONS } from "../../../src/billing/ledger/ledger-schema.ts";
import { migrate } from "../../../src/kernel/kit/migrate.ts";
import { ledgerFileKey } from "../../../src/kernel/kit/names.ts";
import { endsOf, newOrganization, type Organization, orderOf, topUp } from "./booking.ts";

const START = Date.UTC(2026, 10, 20, 12);

/** Rows that the object's database read and wrote while `use` ran. */
async function rowsUsed(org: Organization, use: (ledger: AccountLedger) => Promise<unknown>, now = START) {
  return await org.inside(async (_, state) => {
    let [read, written] = [0, 0];
    const exec = (query: string, ...bindings: unknown[]) => {
      const cursor = state.storage.sql.exec(query, ...bindings);
      const rows = cursor.toArray();
      read += cursor.rowsRead;
      written += cursor.rowsWritten;
      return { toArray: () => rows };
    };
    const storage = new Proxy(state.storage, {
      get: (real, name) => {
        if (name === "sql") return { exec };
        const value: unknown = Reflect.get(real, name);
        return typeof value === "function" ? value.bind(real) : value;
      },
    });
    await use(new AccountLedger({ storage, waitUntil: state.waitUntil.bind(state) }, env, () => now));
    return { read, written };
  });
}

/** An organisation with this many archived files. */
async function withFiles(files: number): Promise<Organization> {
  const org = await newOrganization("postpaid");
  await org.inside(async (object, { storage }) => {
    object.now = () => START;
    await object.ledger.post(topUp(org, 0));
    storage.sql.exec("update months set first_entry = ?, last_entry = ?", files + 1, files + 1);
    storage.sql.exec("insert into months values ('2026-10', 1, ?, 1, 0, 0, '{}', 1)", files);
    storage.sql.exec(
      `with recursive files(n) as (select 1 union all select n + 1 from files where n < ?)
        insert into archive select n, n, '2026-10' from files`,
      files,
    );
    storage.sql.exec("update entries set number = ?", files + 1);
    storage.sql.exec("update sources set number = ?", files + 1);
  });
  return org;
}

test("the reads of a settlement do not grow with the archive", async () => {
  const costs: number[] = [];
  for (const files of [10, 5000]) {
    const org = await withFiles(files);
    const settle = async (ledger: AccountLedger) => {
      await ledger.settle(orderOf(org, "run_1", endsOf("run_1", 1, [5])));
      ledger.nextAt();
      await ledger.balance(org.id);
    };
    costs.push((await rowsUsed(org, settle)).read);
  }
  const [few = 0, many = 0] = costs;
  expect(many).toBeLessThan(few + 10);
});

test("a settlement writes 12 rows, and 3 for each charged end", async () => {
  const org = await newOrganization("prepaid");
  await org.account().post(topUp(org, 1_000_000));
  const written: number[] = [];
  for (const [first, count] of [
    [1, 1],
    [2, 1],
    [3, 100],
  ] as const) {
    const ends = endsOf("run_1", first, new Array<number>(count).fill(200)).map((end) => {
      return { ...end, lines: { rollout: 60, turns: 120, scoring: 20 } };
    });
    written.push((await rowsUsed(org, (ledger) => ledger.settle(orderOf(org, "run_1", ends, 5000)))).written);
  }
  expect(written.slice(1)).toEqual([12 + 3, 12 + 3 * 100]);
});

test("copying an hour of usage writes 1 row, and archiving a file writes 2 rows and 1 for each entry", async () => {
  const org = await newOrganization("postpaid");
  await rowsUsed(org, (ledger) => ledger.settle(orderOf(org, "run_1", endsOf("run_1", 1, [1, 2, 3, 4, 5, 6]))));
  const copied = await rowsUsed(org, (ledger) => ledger.tend(), START + 60_000);
  const archived = await rowsUsed(org, async (ledger) => {
    ledger.archiveBounds = { kept: 3, entriesAFile: 3 };
    await ledger.tend();
  });
  expect([copied.written, archived.written]).toEqual([1, 2 + 3]);
});

test("entries are archived once a whole file exceeds the kept ones, and lists continue in the files", async () => {
  const org = await newOrganization("postpaid");
  await org.inside((object) => {
    object.ledger.archiveBounds = { kept: 3, entriesAFile: 2 };
  });
  const account = org.account();
  const query = { before: null, limit: 10, kind: null, run_id: null, source_id: null };
  await org.inside(async (object) => {
    object.now = () => START;
    await object.settle(orderOf(org, "run_1", endsOf("run_1", 1, [1, 2, 3, 4])));
  });
  await org.alarmAt(START + 1);
  expect(await filesOf(org)).toEqual([]);
  await account.settle(orderOf(org, "run_1", endsOf("run_1", 5, [5, 6, 7])));
  const all = await account.entries(query);
  await org.alarmAt(START + 2);
  const files = await filesOf(org);
  expect(files.map(({ name }) => name)).toEqual([
    "2026-11/000000000001-000000000002.ndjson",
    "2026-11/000000000003-000000000004.ndjson",
  ]);
  const stored = files.flatMap(({ text }) => text.trimEnd().split("\n")).map((line) => JSON.parse(line));
  expect(stored).toEqual(all.entries.toReversed().slice(0, 4));
  const left = await org.inside((_, { storage }) => storage.sql.exec("select number from entries").toArray());
  expect(left).toEqual([{ number: 5 }, { number: 6 }, { number: 7 }]);
  expect(await account.entries(query)).toEqual(all);
  expect(await account.verify(org.id)).toEqual({
    ...{ entries: 7, balance_micros: -28, recomputed_micros: -28, differences: [] },
  });
});

async function filesOf({ id }: Organization): Promise<{ name: string; text: string }[]> {
  const folder = `org/${id}/ledger/`;
  const { objects } = await env.STORE.list({ prefix: folder });
  return await Promise.all(
    objects.map(async ({ key }) => {
      return { name: key.slice(folder.length), text: (await (await env.STORE.get(key))?.text()) ?? "" };
    }),
  );
}

/** A ledger from before the archive: one month is closed, and its last entry is about to be moved to a file. */
async function withOldLedger(): Promise<Organization> {
  const org = await newOrganization("postpaid");
  const [first] = LEDGER_MIGRATIONS;
  if (first === undefined) throw new Error("there are no migrations");
  const kept = await org.inside(async (_, { storage }) => {
    migrate(storage, [first]);
    const lines = (micros: number) =>
      JSON.stringify([
        { account: "balance", micros: -micros },
        { account: "revenue/rollout", micros },
      ]);
    const exec = (query: string, ...values: (string | number)[]) => void storage.sql.exec(query, ...values);
    const columns = "(number, kind, source_id, period, at, run_id, lines)";
    for (const [number, at, micros] of [
      [1, Date.UTC(2026, 9, 9), 5],
      [2, Date.UTC(2026, 9, 9), 6],
      [3, START, 7],
      [4, START, 8],
    ] as const) {
      const values = [number, `run_1-${number}`, at, lines(micros)] as const;
      exec(`insert into entries ${columns} values (?, 'rollout', ?, '', ?, 'run_1', ?)`, ...values);
    }
    exec("insert into cursors values ('run_1', 'ends', 4, 1, 4)");
    const months = "insert into months values (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    const sums = (micros: number) => `{"balance":${-micros},"revenue/rollout":${micros}}`;
    storage.sql.exec(months, "2026-10", 1, 2, 1, 0, -11, sums(11), "hash", START);
    storage.sql.exec(months, "2026-11", 3, 4, START, -11, -26, sums(15), null, null);
    exec("insert into accounts values ('balance', -26), ('revenue/rollout', 26)");
    exec("insert into copies values (1, 2, '2026-10', 'hash', 1), (3, 3, '2026-11', 'hash', 1)");
    exec("insert into facts values ('org_id', ?), ('told', '{}')", JSON.stringify(org.id));
    const rows = storage.sql.exec<StoredEntry>("select * from entries where number <= 2").toArray();
    exec("delete from entries where number = 1");
    return rows;
  });
  const file = { month: "2026-10", first_entry: 1, last_entry: 2 };
  await env.STORE.put(ledgerFileKey(org.id, file), textOf(kept));
  return org;
}

test("a ledger of an earlier release opens: moved entries are read from files, and all adds up", async () => {
  const org = await withOldLedger();
  const account = org.account();
  const query = { before: null, limit: 10, kind: null, run_id: "run_1", source_id: null };
  const { entries } = await account.entries(query);
  expect(entries.map(({ number, amount_micros }) => [number, amount_micros])).toEqual([
    [4, -8],
    [3, -7],
    [2, -6],
    [1, -5],
  ]);
  expect(await account.closedMonths(org.id, null, 9)).toMatchObject([{ month: "2026-10", closing_micros: -11 }]);
  const sound = { balance_micros: -26, recomputed_micros: -26, differences: [] };
  expect(await account.verify(org.id)).toEqual({ entries: 4, ...sound });
  await org.inside(async (object) => {
    object.now = () => START;
    object.ledger.archiveBounds = { kept: 0, entriesAFile: 1 };
    await object.settle(orderOf(org, "run_1", endsOf("run_1", 5, [0])));
  });
  await org.alarmAt(START + 1);
  expect((await filesOf(org)).map(({ name }) => name)).toHaveLength(3);
  expect(await account.verify(org.id)).toEqual({ entries: 4, ...sound });
});
