/**
 * Copies the storage of an object: out, in pages of text, and into an empty object of the same class. A page has one
 * JSON value a line. The tables come first, then the key-value entries, the rows, and at last the indexes.
 *
 * Invariants. Reading writes nothing, also in an object that was never created. Only storage that is empty, or that an
 * unfinished copy wrote, is written to. A copy that is begun again begins from nothing.
 */
import { decodeStored, encodeStored } from "./stored-values.ts";

/** Characters of a page, beyond which it ends with the current row. */
const PAGE_CHARACTERS = 4_000_000;
const ROWS_AT_ONCE = 200;
/** Marks storage that is being written, with the name of the copy, and whether all of it is written. */
const COPYING = "copying";

interface Copying {
  readonly of: string;
  readonly complete: boolean;
}

type Line =
  | { readonly make: string }
  | { readonly key: string; readonly value: unknown }
  | { readonly table: string; readonly columns: readonly string[] }
  | { readonly row: readonly unknown[] };

/** One page of an object's storage. */
export interface StoragePage {
  readonly text: string;
  /** Where the next page begins; null after the last one. */
  readonly next: string | null;
  /** Changes with each write and each instance. Pages with the same value are of one state. */
  readonly state: string;
}

/** The end of a page: before the row after `after` in the table with this number, or before the entry after `after`. */
type Place =
  | { readonly in: "entries"; readonly after: string | null }
  | { readonly in: "table"; readonly table: number; readonly after: readonly SqlStorageValue[] | null };

interface TableShape {
  readonly name: string;
  readonly make: string;
  readonly columns: readonly string[];
  /** What its rows are ordered by: the columns of its primary key, or the row's number. */
  readonly order: readonly string[];
}

export class StorageCopy {
  readonly #storage: DurableObjectStorage;
  readonly #instance = crypto.randomUUID();

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
  }

  /** `after`: `next` of the previous page; null for the first. */
  read(after: string | null): StoragePage {
    const page = new PageText();
    const tables = this.#tables();
    const next = this.#fill(page, tables, after === null ? null : placeOf(after));
    return { text: page.text, next: next === null ? null : JSON.stringify(encodeStored(next)), state: this.#state() };
  }

  /** Writes one page. False: the copy of this name is complete, and nothing was written. */
  async write(of: string, first: boolean, last: boolean, text: string): Promise<boolean> {
    const copying = this.#copying();
    if (copying?.of === of && copying.complete) return false;
    if (copying === null && !this.#isEmpty()) throw new Error("the object is not empty");
    if (first) await this.#storage.deleteAll();
    else if (copying?.of !== of) throw new Error("the first page is missing");
    this.#storage.transactionSync(() => {
      for (const line of linesOf(text)) this.#put(line);
      this.#storage.kv.put<Copying>(COPYING, { of, complete: last });
    });
    return true;
  }

  /** Whether all pages of a copy are written, and it is not ended yet. */
  get isComplete(): boolean {
    return this.#copying()?.complete === true;
  }

  end(): void {
    this.#storage.kv.delete(COPYING);
  }

  #copying(): Copying | null {
    return this.#storage.kv.get<Copying>(COPYING) ?? null;
  }

  #isEmpty(): boolean {
    return this.#tables().length === 0 && this.#storage.kv.list({ limit: 1 })[Symbol.iterator]().next().done === true;
  }

  #fill(page: PageText, tables: readonly TableShape[], from: Place | null): Place | null {
    if (from === null) for (const { make } of tables) page.add({ make });
    if (from?.in !== "table") {
      const after = this.#entries(page, from?.after ?? null);
      if (after !== null) return { in: "entries", after };
    }
    const begun = from?.in === "table" ? from : { table: 0, after: null };
    for (let table = begun.table; table < tables.length; table += 1) {
      const after = this.#rows(page, tables[table], table === begun.table ? begun.after : null);
      if (after !== null) return { in: "table", table, after };
    }
    for (const make of this.#others()) page.add({ make });
    return null;
  }

  /** The key of the last entry of a full page; null if there are no more. */
  #entries(page: PageText, after: string | null): string | null {
    for (const [key, value] of this.#storage.kv.list(after === null ? {} : { startAfter: after })) {
      page.add({ key, value: encodeStored(value) });
      if (page.isFull) return key;
    }
    return null;
  }

  /** The place of the last row of a full page; null if the table has no more. */
  #rows(page: PageText, table: TableShape | undefined, from: readonly SqlStorageValue[] | null) {
    if (table === undefined) return null;
    const { name, columns, order } = table;
    page.add({ table: name, columns });
    const names = order.map(quoted).join(", ");
    const read = [...order.map((column, at) => `${quoted(column)} as "place ${at}"`), ...columns.map(quoted)];
    for (let after = from; ; ) {
      const places = order.map(() => "?").join(", ");
      const where = after === null ? "" : `where (${names}) > (${places})`;
      const query = `select ${read.join(", ")} from ${quoted(name)} ${where} order by ${names} limit ?`;
      const rows = [...this.#storage.sql.exec(query, ...(after ?? []), ROWS_AT_ONCE).raw()];
      for (const row of rows) {
        page.add({ row: row.slice(order.length).map(encodeStored) });
        after = row.slice(0, order.length);
        if (page.isFull) return after;
      }
      if (rows.length < ROWS_AT_ONCE) return null;
    }
  }

  #tables(): TableShape[] {
    return this.#schema("table").map(({ name, sql: make }) => {
      const columns = this.#storage.sql
        .exec<{ name: string; pk: number }>(`select name, pk from pragma_table_info(?)`, name)
        .toArray();
      const key = columns.filter(({ pk }) => pk > 0).sort((one, other) => one.pk - other.pk);
      const order = /\bwithout\s+rowid\s*$/i.test(make) ? key.map((column) => column.name) : ["rowid"];
      return { name, make, columns: columns.map((column) => column.name), order };
    });
  }

  #others(): string[] {
    return [...this.#schema("index"), ...this.#schema("trigger"), ...this.#schema("view")].map(({ sql }) => sql);
  }

  /** Without what SQLite and the runtime make by themselves. */
  #schema(type: string): { name: string; sql: string }[] {
    return this.#storage.sql
      .exec<{ name: string; sql: string }>(
        `select name, sql from sqlite_master where type = ? and sql is not null
          and name not like 'sqlite\\_%' escape '\\' and name not like '\\_cf\\_%' escape '\\' order by rowid`,
        type,
      )
      .toArray();
  }

  #state(): string {
    const { changes } = this.#storage.sql.exec<{ changes: number }>("select total_changes() as changes").one();
    return `${this.#instance}/${changes}`;
  }

  #into = "";

  #put(line: Line): void {
    const { kv, sql } = this.#storage;
    if ("make" in line) sql.exec(line.make);
    else if ("key" in line) kv.put(line.key, decodeStored(line.value));
    else if ("table" in line) {
      const { columns, table } = line;
      const places = columns.map(() => "?").join(", ");
      this.#into = `insert into ${quoted(table)} (${columns.map(quoted).join(", ")}) values (${places})`;
    } else sql.exec(this.#into, ...(line.row.map(decodeStored) as SqlStorageValue[]));
  }
}

class PageText {
  #characters = 0;
  readonly #lines: string[] = [];

  add(line: Line): void {
    const text = JSON.stringify(line);
    this.#characters += text.length + 1;
    this.#lines.push(text);
  }

  get isFull(): boolean {
    return this.#characters >= PAGE_CHARACTERS;
  }

  get text(): string {
    return this.#lines.map((line) => `${line}\n`).join("");
  }
}

function* linesOf(text: string): Generator<Line> {
  for (const line of text.split("\n")) if (line !== "") yield JSON.parse(line) as Line;
}

function placeOf(next: string): Place {
  return decodeStored(JSON.parse(next)) as Place;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
