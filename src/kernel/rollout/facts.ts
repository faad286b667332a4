/**
 * The table in which an object stores its rollouts: JSON text in chunks. A row in production may hold 2 MB, and the
 * local runtime does not check that. No row here is larger than `LIMITS.rowBytes`, wherever it runs.
 *
 * Invariants. The first write creates the table, so an object in which no rollout was begun stores nothing. An
 * environment's SQL cannot access a table of this name (`PLATFORM_TABLE`). Every row has the number of parts of its
 * value, and part 0 is always rewritten. If a shorter value replaces a longer one, old parts beyond that number remain,
 * but are never read. A row costs money whatever its size, so a short head may stand behind a turn, in the turn's row and
 * on a line of its own: JSON has no line breaks. Of all heads, the one with the most writes is the newest.
 */
import { LIMITS } from "../../contract/limits.ts";
import { cutBefore } from "../../contract/shown-text.ts";

/** Kinds of values. The numbers are stored, so a number must never get another meaning. */
export const FACT = {
  spec: 0,
  /** The rollout without its turns. */
  head: 1,
  cancel: 2,
  acknowledged: 3,
  /** A tool that has begun and must not run twice. */
  unrepeatable: 4,
  /** One item per turn; a head may stand behind it. */
  turns: 5,
  /** Never stored under this number: the last head behind a turn, as it is read. */
  headBehindTurn: -1,
  // 7 was used before and must not be reused.
  /** The number of failed tries in a row. */
  tries: 8,
  /** The lease and the end of an agent's rollout. */
  agent: 9,
} as const;

type Kind = (typeof FACT)[keyof typeof FACT];

/**
 * A value of a rollout. `item` numbers the values of a kind that has several. `head`: a head to store behind a turn, or, if
 * it is long, in its own row.
 */
export type Fact = readonly [kind: Kind, item: number, value: unknown, head?: unknown];

/** A longer head has a row of its own, which is overwritten: else each turn would keep a copy of a large state. */
const BEHIND_CHARACTERS = 4096;

/** UTF-16 units per row: at most 3 bytes each in UTF-8, so a row stays under 1.9 MB. */
const CHUNK_CHARACTERS = Math.floor(LIMITS.rowBytes / 3);
/** A statement takes at most 100 parameters, and a row has six. */
const ROWS_PER_STATEMENT = 16;

type Chunk = { kind: number; item: number; part: number; parts: number; text: string };
type Row = readonly [rollout: string, kind: Kind, item: number, part: number, parts: number, text: string];

export class FactsTable {
  readonly #sql: SqlStorage;
  #made: boolean | null = null;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** The rollouts that were begun here; true if the report was acknowledged. */
  rollouts(): Map<string, boolean> {
    if (!this.#isMade()) return new Map();
    const rows = this.#sql.exec<{ rollout: string; over: number }>(
      `select rollout, exists (select 1 from facts as other where other.rollout = facts.rollout and other.kind = ?) as over
        from facts where kind = ? and part = 0`,
      FACT.acknowledged,
      FACT.spec,
    );
    return new Map(rows.toArray().map(({ rollout, over }) => [rollout, over === 1]));
  }

  write(rollout: string, facts: readonly Fact[]): void {
    if (!this.#isMade()) this.#make();
    const rows = facts.flatMap((fact) =>
      textsOf(fact).flatMap(([kind, item, whole]) => {
        const parts = partsOf(whole);
        return parts.map((text, part): Row => [rollout, kind, item, part, parts.length, text]);
      }),
    );
    for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT) {
      const some = rows.slice(from, from + ROWS_PER_STATEMENT);
      const places = some.map(() => "(?, ?, ?, ?, ?, ?)").join(", ");
      this.#sql.exec(`insert or replace into facts values ${places}`, ...some.flat());
    }
  }

  /** Deletes all items of the kind. */
  delete(rollout: string, kind: Kind): void {
    this.#sql.exec("delete from facts where rollout = ? and kind = ?", rollout, kind);
  }

  /** All values of the rollout by kind, in order, parsed. */
  read(rollout: string): Map<number, unknown[]> {
    const kinds = new Map<number, string[]>();
    if (!this.#isMade()) return new Map();
    let parts = 1;
    const stored = "select kind, item, part, parts, text from facts where rollout = ? order by kind, item, part";
    for (const row of this.#sql.exec<Chunk>(stored, rollout)) {
      if (row.part === 0) parts = row.parts;
      if (row.part >= parts) continue;
      const items = kinds.get(row.kind) ?? [];
      items[row.item] = (items[row.item] ?? "") + row.text;
      kinds.set(row.kind, items);
    }
    const behind = kinds.get(FACT.turns)?.findLast((text) => text.includes("\n"));
    if (behind !== undefined) kinds.set(FACT.headBehindTurn, [behind.slice(behind.indexOf("\n") + 1)]);
    const parsed = [...kinds].map(([kind, texts]): [number, unknown[]] => [
      kind,
      texts.map((text): unknown => JSON.parse(valueIn(text))),
    ]);
    return new Map(parsed);
  }

  /** The JSON of one item, without a head behind it and without reading others; null if it was never written. */
  item(rollout: string, kind: Kind, item: number): string | null {
    if (!this.#isMade()) return null;
    const query = "select parts, text from facts where rollout = ? and kind = ? and item = ? order by part";
    const rows = this.#sql.exec<Pick<Chunk, "parts" | "text">>(query, rollout, kind, item).toArray();
    const [first] = rows;
    return first === undefined
      ? null
      : valueIn(
          rows
            .slice(0, first.parts)
            .map(({ text }) => text)
            .join(""),
        );
  }

  /** The number of items of a kind whose items are numbered from 0 without gaps. */
  count(rollout: string, kind: Kind): number {
    if (!this.#isMade()) return 0;
    const query =
      "select item + 1 as n from facts where rollout = ? and kind = ? order by item desc, part desc limit 1";
    return this.#sql.exec<{ n: number }>(query, rollout, kind).toArray()[0]?.n ?? 0;
  }

  /** Must be called when the object's storage was deleted. */
  forget(): void {
    this.#made = null;
  }

  #isMade(): boolean {
    this.#made ??= this.#sql.exec("select 1 from sqlite_master where name = 'facts'").toArray().length > 0;
    return this.#made;
  }

  #make(): void {
    this.#sql.exec(
      `create table if not exists facts (
        rollout text not null, kind integer, item integer, part integer, parts integer not null, text text not null,
        primary key (rollout, kind, item, part)) without rowid`,
    );
    this.#made = true;
  }
}

/** The JSON of a fact, and of its head: behind it in one text, or as a value of its own. */
function textsOf([kind, item, value, head]: Fact): (readonly [kind: Kind, item: number, text: string])[] {
  const text = JSON.stringify(value);
  if (head === undefined) return [[kind, item, text]];
  const behind = JSON.stringify(head);
  if (behind.length <= BEHIND_CHARACTERS) return [[kind, item, `${text}\n${behind}`]];
  return [
    [kind, item, text],
    [FACT.head, 0, behind],
  ];
}

function valueIn(text: string): string {
  const end = text.indexOf("\n");
  return end === -1 ? text : text.slice(0, end);
}

/** Never cuts inside a surrogate pair: each half alone would be stored as a replacement character. */
function partsOf(text: string): string[] {
  const parts: string[] = [];
  for (let from = 0; from < text.length; ) {
    const cut = cutBefore(text, from + CHUNK_CHARACTERS);
    parts.push(text.slice(from, cut));
    from = cut;
  }
  return parts;
}
