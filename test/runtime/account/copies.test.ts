/** Books of many files and closed months: what they cost, and that all of it is found again. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { AccountBooks } from "../../../src/runtime/account/account-books.ts";
import { endsOf, newOrganization, type Organization, orderOf, topUp } from "./booking.ts";

const START = Date.UTC(2026, 10, 20, 12);

/** Rows that the object's database read and wrote while `use` ran. */
async function rowsUsed(org: Organization, use: (books: AccountBooks) => Promise<unknown>) {
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
    await use(new AccountBooks({ storage, waitUntil: state.waitUntil.bind(state) }, env, () => START));
    return { read, written };
  });
}

/** A closed month of so many files. */
async function withFiles(files: number): Promise<Organization> {
  const org = await newOrganization("postpaid");
  await org.inside(async (object, { storage }) => {
    object.now = () => START;
    await object.books.post(topUp(org, 0));
    storage.sql.exec("insert into months values ('2026-10', 1, ?, 1, 0, 0, '{}', 'hash', 1)", files);
    storage.sql.exec(
      `with recursive files(n) as (select 1 union all select n + 1 from files where n < ?)
        insert into copies select n, n, '2026-10', 'hash', 1 from files`,
      files,
    );
    storage.sql.exec("update entries set number = ?", files + 1);
    storage.sql.exec("update sources set number = ?", files + 1);
    storage.sql.exec("update months set first_entry = ?, last_entry = ? where sha256 is null", files + 1, files + 1);
  });
  return org;
}

test("what a settlement reads does not grow with the files there are", async () => {
  const costs: number[] = [];
  for (const files of [10, 5000]) {
    const org = await withFiles(files);
    const settle = async (books: AccountBooks) => {
      await books.settle(orderOf(org, "run_1", endsOf("run_1", 1, [5])));
      books.nextAt();
      await books.balance(org.id);
    };
    costs.push((await rowsUsed(org, settle)).read);
  }
  const [few = 0, many = 0] = costs;
  expect(many).toBeLessThan(few + 10);
});

test("a settlement writes 12 rows, and 3 for each end that is charged", async () => {
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
    written.push((await rowsUsed(org, (books) => books.settle(orderOf(org, "run_1", ends, 5000)))).written);
  }
  expect(written.slice(1)).toEqual([12 + 3, 12 + 3 * 100]);
});
