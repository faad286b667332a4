/** Whether the copies of the books are what they should be: files and months in the object store, rows of the database. */
import { readLedgerCopy, readLedgerMonths } from "../../db/ledger.ts";
import type { LedgerMonthRow } from "../../db/schema.ts";
import { ledgerFileKey, ledgerMonthKey } from "../kit/names.ts";
import { sha256Hex } from "../kit/secrets.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type { Books } from "./books.ts";
import type { ClosedMonth, CopyRow } from "./copies.ts";
import type { Copying } from "./copying.ts";
import type { MonthRow } from "./entries.ts";
import type { Differences } from "./verify.ts";

/** Files that one call reads, the newest first. */
const FILES_A_CALL = 400;

/** How many files were not read again. */
export async function verifyCopies(env: Env, books: Books, copying: Copying, found: Differences): Promise<number> {
  const subrequests = new Subrequests();
  const files = books.copies.filesBefore(Number.MAX_SAFE_INTEGER, FILES_A_CALL);
  const unread = books.copies.count() - files.length;
  verifyFiles(books, files, found);
  await subrequests.six(files, async (file) => {
    const stored = await subrequests.fetch(() => env.STORE.get(ledgerFileKey(books.owner(), file)));
    const hash = stored === null ? null : sha256Hex(await stored.text());
    found.add("copy of entries", file.sha256, hash, file.first_entry);
  });
  await verifyMonths(env, books, subrequests, found);
  await verifyRow(env, books, copying, subrequests, found);
  return unread;
}

/** They follow each other, and those whose entries are here say the same. */
function verifyFiles(books: Books, files: readonly CopyRow[], found: Differences): void {
  const oldest = books.rows.one<{ number: number | null }>("select min(number) as number from entries")?.number;
  for (const [index, file] of files.entries()) {
    const before = files[index + 1];
    if (before !== undefined) found.add("first entry of a copy", before.last_entry + 1, file.first_entry);
    if (oldest === null || oldest === undefined || file.first_entry < oldest) continue;
    found.add("entries of a copy", sha256Hex(books.copies.textOf(file)), file.sha256, file.first_entry);
  }
}

async function verifyMonths(env: Env, books: Books, subrequests: Subrequests, found: Differences): Promise<void> {
  const rows = books.rows.all<MonthRow>("select * from months where sha256 is not null order by month desc limit 60");
  const owner = books.owner();
  const all = await subrequests.fetch(() => readLedgerMonths(env.DB, owner));
  const copied = new Map(all.map((row) => [row.month, row]));
  for (const row of rows) {
    const closed = books.copies.closed(row);
    found.add(`hash of ${row.month}`, closed.state.sha256, row.sha256);
    const stored = await subrequests.fetch(() => env.STORE.get(ledgerMonthKey(owner, row.month)));
    const text = stored === null ? null : await stored.text();
    found.add(`stored statement of ${row.month}`, sha256Hex(closed.text), text === null ? null : sha256Hex(text));
    compareRow(closed, copied.get(row.month), found);
  }
}

function compareRow({ state }: ClosedMonth, row: LedgerMonthRow | undefined, found: Differences): void {
  const names = ["first_entry", "last_entry", "opening_micros", "closing_micros", "sha256"] as const;
  for (const name of names) found.add(`row of ${state.month}: ${name}`, state[name], row?.[name] ?? null);
}

/** Of the moment it was last told, unless it is being told anew, or a kill hid whether it heard. */
async function verifyRow(env: Env, books: Books, copying: Copying, subrequests: Subrequests, found: Differences) {
  const told = copying.heard();
  const row = await subrequests.fetch(() => readLedgerCopy(env.DB, books.owner()));
  if (told === null || JSON.stringify(copying.heard()) !== JSON.stringify(told)) return;
  for (const name of ["balance_micros", "reserved_micros", "last_entry"] as const) {
    found.add(`row of the balance: ${name}`, told[name], row?.[name] ?? null);
  }
}
