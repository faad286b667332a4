/** Whether the copies of the books are what they should be: files and months in the object store, rows of the database. */
import { readLedgerCopy, readLedgerMonths } from "../../db/ledger.ts";
import type { LedgerMonthRow } from "../../db/ledger-schema.ts";
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

/** What was read again, and where the next call goes on: at files before `next`. */
interface Checked {
  readonly checked_copies: number;
  readonly unchecked_copies: number;
  readonly next: number | null;
}

/** Reads the newest files of entries before this number again; null: of all. */
export async function verifyCopies(
  env: Env,
  books: Books,
  before: number | null,
  found: Differences,
): Promise<Checked> {
  const subrequests = new Subrequests();
  const known = books.copies.filesBefore(before ?? Number.MAX_SAFE_INTEGER, FILES_A_CALL + 1);
  const files = known.slice(0, FILES_A_CALL);
  verifyFiles(books, files, known, found);
  await subrequests.six(files, async (file) => {
    const stored = await subrequests.fetch(() => env.STORE.get(ledgerFileKey(books.owner(), file)));
    const hash = stored === null ? null : sha256Hex(await stored.text());
    found.add("copy of entries", file.sha256, hash, file.first_entry);
  });
  const next = known.length > files.length ? (files.at(-1)?.first_entry ?? null) : null;
  const unchecked_copies = next === null ? 0 : books.copies.countBefore(next);
  return { checked_copies: files.length, unchecked_copies, next };
}

/** Closed months and the balance, as the object store and the database have them. */
export async function verifyRecords(env: Env, books: Books, copying: Copying, found: Differences): Promise<void> {
  const subrequests = new Subrequests();
  await verifyMonths(env, books, subrequests, found);
  await verifyRow(env, books, copying, subrequests, found);
}

/** They follow each other from the first entry on, and those whose entries are here say the same. */
function verifyFiles(
  books: Books,
  files: readonly CopyRow[],
  /** The same, and the one before them. */
  known: readonly CopyRow[],
  found: Differences,
): void {
  const oldest = books.entries.firstNumber();
  for (const [index, file] of files.entries()) {
    found.add("first entry of a copy", (known[index + 1]?.last_entry ?? 0) + 1, file.first_entry);
    if (file.first_entry < oldest) continue;
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
