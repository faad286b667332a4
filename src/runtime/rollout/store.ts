/**
 * What one rollout keeps in its own SQLite.
 *
 * One table, `facts`, of JSON text in chunks: kind 0 the spec, 1 the head (the rollout without its turns), 2 a cancel
 * request, 3 the acknowledgement, 4 a tool that must not run twice and has begun, 5 the turns, an item each. The table is made by `begin`: an object that was never begun holds nothing. This object is its
 * only writer, so what is on disk is read once, and a turn answered since the head was written needs no second write of
 * the head. What a hook leaves for its own repetition goes with the write of its outcome: kind 4, and the sql calls it
 * made, which the rollout's database keeps under the number of heads written until then. Rollouts stored by earlier
 * releases are migrated as they are read. Kind 7 is who makes the call that is away; 8 the tries in a row that came to nothing.
 */
import type { CancelReason } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import { cutBefore } from "../../contract/shown-text.ts";
import type { Turn } from "../../contract/trajectory.ts";
import { migrateRollout } from "../../core/rollout/migrations.ts";
import type { Rollout } from "../../core/rollout/rollout.ts";
import { lastIds } from "../../core/rollout/tokens.ts";
import type { Delivery, RolloutSpec } from "../contract/wire.ts";
import { bootId } from "../environment/suspects.ts";
import { type FailedTries, NO_TRIES } from "./fault.ts";

/** UTF-16 units per row: at most 3 bytes each in UTF-8, so a row stays under 1.9 MB. */
const CHUNK_CHARACTERS = Math.floor(LIMITS.rowBytes / 3);

type Chunk = { kind: number; item: number; part: number; parts: number; text: string };

const KIND = {
  spec: 0,
  head: 1,
  cancel: 2,
  acknowledged: 3,
  unrepeatable: 4,
  turns: 5,
  taker: 7,
  tries: 8,
} as const;

/** Ids are in the turns, and the turns have rows of their own. */
type Head = Omit<Rollout, "turns" | "last_ids"> & {
  readonly answered: number;
  /** The process that wrote it. */
  readonly boot: string;
  /** Heads written, this one included. */
  readonly writes: number;
};

/** A tool that must not run twice, begun in the reply to the last of so many turns. */
interface Unrepeatable {
  readonly turn: number;
  readonly tool: string;
}

/** The delivery that makes this try of this turn. */
interface Taker extends Delivery {
  readonly turn: number;
  readonly call: number;
}

interface Facts {
  spec: RolloutSpec | null;
  head: Head | null;
  turns: readonly Turn[];
  cancel: CancelReason | null;
  acknowledged: boolean;
  unrepeatable: Unrepeatable | null;
  taker: Taker | null;
  tries: FailedTries;
}

export class RolloutStore {
  readonly #sql: SqlStorage;
  #askedSql = false;
  #begunHere = false;
  #facts: Facts | null = null;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** The spec, or null for an object that was never begun (or was freed). Writes nothing. */
  spec(): RolloutSpec | null {
    return this.#read().spec;
  }

  begin(spec: RolloutSpec): void {
    createChunks(this.#sql);
    this.#write(KIND.spec, spec).spec = spec;
    this.#begunHere = true;
  }

  /** Whether what it does next is something that this process, and not one before it, came to. */
  ranHere(): boolean {
    const { head } = this.#read();
    return head === null ? this.#begunHere : head.boot === bootId();
  }

  /** Forgets what was read of a storage that was deleted. */
  forget(): void {
    this.#facts = null;
  }

  /** The rollout as last saved, or null before its first save. */
  load(): Rollout | null {
    const { head, turns } = this.#read();
    if (head === null) return null;
    const { answered, boot: _, writes: __, ...rollout } = head;
    const loaded: Rollout = { ...rollout, turns, last_ids: lastIds(turns) };
    // The answer was written and then the process was killed: the call is over.
    return turns.length > answered ? { ...loaded, phase: "reply", intent: null } : loaded;
  }

  /** Writes what came of a model call. */
  saveOutcome(rollout: Rollout): void {
    if (rollout.phase === "reply") this.#saveAnswer(rollout);
    else this.save(rollout);
  }

  /** Writes the turn just answered; everything else follows from it. */
  #saveAnswer(rollout: Rollout): void {
    const { turns } = rollout;
    const last = turns.at(-1);
    if (last !== undefined) this.#writeTurn(last);
    this.#read().turns = turns;
  }

  /** Writes the head, and the turns that are new or changed. What the last hook left for its repetition is void. */
  save(rollout: Rollout): void {
    const { turns, last_ids: _, ...rest } = rollout;
    const facts = this.#read();
    for (const turn of turns) {
      if (facts.turns[turn.index] !== turn) this.#writeTurn(turn);
    }
    facts.turns = turns;
    const head = { ...rest, answered: turns.length, boot: bootId(), writes: this.writes() + 1 };
    this.#write(KIND.head, head).head = head;
    if (facts.unrepeatable !== null) deleteChunks(this.#sql, KIND.unrepeatable);
    facts.unrepeatable = null;
    this.#askedSql = false;
  }

  /** How many heads were written. */
  writes(): number {
    return this.#read().head?.writes ?? 0;
  }

  /** To be called when a hook asks for sql: its outcome must be stored before another hook runs. */
  noteSql(): void {
    this.#askedSql = true;
  }

  /** Whether a hook has left something that goes with the write of its outcome. */
  isUnderWay(): boolean {
    return this.#askedSql || this.#read().unrepeatable !== null;
  }

  cancelRequest(): CancelReason | null {
    return this.#read().cancel;
  }

  requestCancel(reason: CancelReason): void {
    this.#write(KIND.cancel, reason).cancel = reason;
  }

  /** True once the run has acknowledged the final report. */
  acknowledged(): boolean {
    return this.#read().acknowledged;
  }

  acknowledge(): void {
    this.#write(KIND.acknowledged, true).acknowledged = true;
  }

  /** The tool that was begun and must not run twice; null when there is none. */
  unrepeatable(): Unrepeatable | null {
    return this.#read().unrepeatable;
  }

  /** To be called right before the tool is. */
  beginUnrepeatable(tool: string): void {
    const begun = { turn: this.#read().turns.length, tool };
    this.#write(KIND.unrepeatable, begun).unrepeatable = begun;
  }

  /**
   * Whether this delivery may make the call: one does, so that a message that came twice is paid for once. A later try
   * of the same message takes it over, since its consumer is gone.
   */
  takeCall(turn: number, call: number, by: Delivery): boolean {
    const { taker } = this.#read();
    const taken = taker !== null && taker.turn === turn && taker.call === call;
    if (taken && (taker.id !== by.id || taker.attempt >= by.attempt)) return false;
    const next: Taker = { turn, call, ...by };
    this.#write(KIND.taker, next).taker = next;
    return true;
  }

  failedTries(): FailedTries {
    return this.#read().tries;
  }

  /** Kept in memory where it cannot be written; on disk because an object may be retired between two tries. */
  noteTries(tries: FailedTries): void {
    const facts = this.#read();
    const same = facts.tries.failed === tries.failed && facts.tries.faults === tries.faults;
    facts.tries = tries;
    if (!same) this.#write(KIND.tries, tries);
  }

  #writeTurn(turn: Turn): void {
    writeChunks(this.#sql, KIND.turns, turn.index, turn);
  }

  #write(kind: number, value: unknown): Facts {
    writeChunks(this.#sql, kind, 0, value);
    return this.#read();
  }

  #read(): Facts {
    this.#facts ??= factsOf(readChunks(this.#sql));
    return this.#facts;
  }
}

/** Only this module writes these rows, so their shapes are its own. */
function factsOf(stored: Map<number, unknown[]>): Facts {
  const first = <T>(kind: number) => (stored.get(kind)?.[0] as T | undefined) ?? null;
  return {
    spec: first<RolloutSpec>(KIND.spec),
    head: migratedHead(first<Head>(KIND.head)),
    turns: (stored.get(KIND.turns) ?? []) as Turn[],
    cancel: first<CancelReason>(KIND.cancel),
    acknowledged: first<boolean>(KIND.acknowledged) === true,
    unrepeatable: first<Unrepeatable>(KIND.unrepeatable),
    taker: first<Taker>(KIND.taker),
    tries: first<FailedTries>(KIND.tries) ?? NO_TRIES,
  };
}

function migratedHead(head: Head | null): Head | null {
  return head === null ? null : (migrateRollout(head) as Head);
}

/**
 * JSON text in SQLite, in chunks. A row in production may hold 2 MB and the local runtime does not check: nothing here
 * writes a row over `LIMITS.rowBytes`, wherever it runs.
 *
 * Invariants. The table's name is the one an environment's sql cannot reach (`PLATFORM_TABLE`). Every row says how many parts its value has, and part 0 is always rewritten: what a longer value left
 * behind when a shorter one took its place is beyond that count, and never read.
 */
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
