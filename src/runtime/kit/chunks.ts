/**
 * JSON text in SQLite, in chunks. A row in production may hold 2 MB and the local runtime does not check: nothing here
 * writes a row over `LIMITS.rowBytes`, wherever it runs.
 *
 * Invariants. The table's name is the one an environment's sql cannot reach (`PLATFORM_TABLE`). Every row says how many parts its value has, and part 0 is always rewritten: what a longer value left
 * behind when a shorter one took its place is beyond that count, and never read.
 */
import { LIMITS } from "../../contract/limits.ts";
import { cutBefore } from "../../contract/shown-text.ts";

/** UTF-16 units per row: at most 3 bytes each in UTF-8, so a row stays under 1.9 MB. */
const CHUNK_CHARACTERS = Math.floor(LIMITS.rowBytes / 3);

export function createChunks(sql: SqlStorage): void {
  sql.exec(
    "create table if not exists facts (kind integer, item integer, part integer, parts integer not null, text text not null, primary key (kind, item, part)) without rowid",
  );
}

export function writeChunks(sql: SqlStorage, kind: number, item: number, value: unknown): void {
  const parts = partsOf(JSON.stringify(value));
  for (const [part, text] of parts.entries()) {
    const { length } = parts;
    sql.exec("insert or replace into facts values (?, ?, ?, ?, ?)", kind, item, part, length, text);
  }
}

/** Every item of the kind. */
export function deleteChunks(sql: SqlStorage, kind: number): void {
  sql.exec("delete from facts where kind = ?", kind);
}

/** Every item, by kind and in order, parsed; empty where the table was never made. Writes nothing. */
export function readChunks(sql: SqlStorage): Map<number, unknown[]> {
  const kinds = new Map<number, string[]>();
  const table = sql.exec("select 1 from sqlite_master where name = 'facts'").toArray();
  if (table.length === 0) return new Map();
  let parts = 1;
  for (const row of sql.exec<Chunk>("select * from facts order by kind, item, part")) {
    if (row.part === 0) parts = row.parts;
    if (row.part >= parts) continue;
    const items = kinds.get(row.kind) ?? [];
    items[row.item] = (items[row.item] ?? "") + row.text;
    kinds.set(row.kind, items);
  }
  const parsed = [...kinds].map(([kind, texts]): [number, unknown[]] => [
    kind,
    texts.map((text): unknown => JSON.parse(text)),
  ]);
  return new Map(parsed);
}

type Chunk = { kind: number; item: number; part: number; parts: number; text: string };

/** Never cuts between the halves of a surrogate pair: each half alone would be stored as a replacement character. */
function partsOf(text: string): string[] {
  const parts: string[] = [];
  for (let from = 0; from < text.length; ) {
    const cut = cutBefore(text, from + CHUNK_CHARACTERS);
    parts.push(text.slice(from, cut));
    from = cut;
  }
  return parts;
}
