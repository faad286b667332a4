/**
 * What one rollout keeps in the storage of the object that plays it (facts.ts).
 *
 * Invariants. The object is the only writer, so what is on disk is read once, and a turn answered since the head was
 * written needs no second write of the head. An answer is written with what the environment made of it, in one write;
 * whoever is about to do anything that leaves the object calls `keepAnswer` first. What a hook leaves for its own
 * repetition goes with the write of its outcome: a tool that must not run twice, and the sql calls it made, which the
 * rollout's database keeps under the number of heads written until then. Rollouts stored by earlier releases are migrated
 * as they are read.
 */
import type { CancelReason } from "../../contract/errors.ts";
import type { Turn } from "../../contract/trajectory.ts";
import { migrateRollout } from "../../core/rollout/migrations.ts";
import type { Rollout } from "../../core/rollout/rollout.ts";
import { lastIds } from "../../core/rollout/tokens.ts";
import { bootId } from "../environment/suspects.ts";
import type { RolloutSpec } from "../messages/wire.ts";
import { FACT, type FactsTable } from "./facts.ts";
import { type FailedTries, NO_TRIES } from "./fault.ts";
import { openPurse, type RolloutPurse, resumedPurse } from "./purse.ts";

/** Ids are in the turns, and the turns have rows of their own. */
type Head = Omit<Rollout, "turns" | "last_ids"> & {
  readonly answered: number;
  /** The process that wrote it. */
  readonly boot: string;
  /** Heads written, this one included. */
  readonly writes: number;
  /** Absent in a head that was written before there were any. */
  readonly purse?: RolloutPurse;
};

/** A tool that must not run twice, begun in the reply to the last of so many turns. */
interface Unrepeatable {
  readonly turn: number;
  readonly tool: string;
}

interface Facts {
  cancel: CancelReason | null;
  acknowledged: boolean;
  unrepeatable: Unrepeatable | null;
  tries: FailedTries;
}

/** What may be megabytes: it is in memory only while the rollout is played. */
interface Body {
  spec: RolloutSpec | null;
  head: Head | null;
  turns: readonly Turn[];
}

export class RolloutStore {
  readonly #table: FactsTable;
  readonly #id: string;
  #askedSql = false;
  #begunHere = false;
  #facts: Facts | null = null;
  #body: Body | null = null;
  /** The rollout with an answer that is not written yet. */
  #unwritten: Rollout | null = null;
  /** As it is written with the next head. */
  #purse: RolloutPurse | null = null;

  constructor(table: FactsTable, id: string) {
    this.#table = table;
    this.#id = id;
  }

  /** Of a rollout that was begun. */
  spec(): RolloutSpec {
    const { spec } = this.#readBody();
    if (spec === null) throw new TypeError(`${this.#id} was never begun`);
    return spec;
  }

  /** To be called for a rollout of which nothing is stored. */
  begin(spec: RolloutSpec): void {
    this.#facts = factsOf(new Map());
    this.#body = { spec, head: null, turns: [] };
    this.#table.write(this.#id, [[FACT.spec, 0, spec]]);
    this.#begunHere = true;
  }

  /** Nobody plays it just now: what may be large is read again when it is asked for. */
  letGo(): void {
    if (this.#unwritten === null) this.#body = null;
  }

  /** Whether what it does next is something that this process, and not one before it, came to. */
  ranHere(): boolean {
    const { head } = this.#readBody();
    return head === null ? this.#begunHere : head.boot === bootId();
  }

  /** The rollout as last saved, or null before its first save. */
  load(): Rollout | null {
    if (this.#unwritten !== null) return this.#unwritten;
    const { head, turns } = this.#readBody();
    if (head === null) return null;
    const { answered, boot: _, writes: __, purse: ___, ...rollout } = head;
    const loaded: Rollout = { ...rollout, turns, last_ids: lastIds(turns) };
    // The answer was written and then the process was killed: the call is over.
    return turns.length > answered ? { ...loaded, phase: "reply", intent: null } : loaded;
  }

  /** What came of a model call. An answer is written with the environment's reply, or by `keepAnswer` before. */
  saveOutcome(rollout: Rollout): void {
    if (rollout.phase === "reply") this.#unwritten = rollout;
    else this.save(rollout);
  }

  /** Writes the turn just answered, if that is still to be done; everything else follows from it. */
  keepAnswer(): void {
    const turns = this.#unwritten?.turns ?? [];
    const last = turns.at(-1);
    if (last === undefined) return;
    this.#table.write(this.#id, [[FACT.turns, last.index, last]]);
    this.#unwritten = null;
    this.#readBody().turns = turns;
  }

  /** Writes the head, and the turns that are new or changed. What the last hook left for its repetition is void. */
  save(rollout: Rollout): void {
    const { turns, last_ids: _, ...rest } = rollout;
    const [facts, body] = [this.#read(), this.#readBody()];
    const changed = turns.filter((turn) => body.turns[turn.index] !== turn);
    const head = { ...rest, answered: turns.length, boot: bootId(), writes: this.writes() + 1, purse: this.purse() };
    this.#table.write(this.#id, [
      ...changed.map((turn) => [FACT.turns, turn.index, turn] as const),
      [FACT.head, 0, head],
    ]);
    this.#unwritten = null;
    body.turns = turns;
    body.head = head;
    if (facts.unrepeatable !== null) this.#table.delete(this.#id, FACT.unrepeatable);
    facts.unrepeatable = null;
    this.#askedSql = false;
  }

  purse(): RolloutPurse {
    this.#purse ??= this.#storedPurse();
    return this.#purse;
  }

  /** Written with the next head. */
  setPurse(purse: RolloutPurse): void {
    this.#purse = purse;
  }

  #storedPurse(): RolloutPurse {
    const { spec, head, turns } = this.#readBody();
    const budget = spec?.budget;
    const purse = head?.purse ?? openPurse(budget ?? { ceiling: 0, base: 0 });
    const behind = head !== null && turns.length > head.answered ? turns.at(-1) : undefined;
    return resumedPurse(purse, behind ?? null, budget);
  }

  /** How many heads were written. */
  writes(): number {
    return this.#readBody().head?.writes ?? 0;
  }

  /** To be called when a hook asks for sql: its outcome must be stored before another hook runs. */
  noteSql(): void {
    this.keepAnswer();
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
    this.#write(FACT.cancel, reason).cancel = reason;
  }

  /** True once the run has acknowledged the final report. */
  acknowledged(): boolean {
    return this.#read().acknowledged;
  }

  acknowledge(): void {
    this.#write(FACT.acknowledged, true).acknowledged = true;
  }

  /** The tool that was begun and must not run twice; null when there is none. */
  unrepeatable(): Unrepeatable | null {
    return this.#read().unrepeatable;
  }

  /** To be called right before the tool is. */
  beginUnrepeatable(tool: string): void {
    this.keepAnswer();
    const begun = { turn: this.#readBody().turns.length, tool };
    this.#write(FACT.unrepeatable, begun).unrepeatable = begun;
  }

  failedTries(): FailedTries {
    return this.#read().tries;
  }

  /** Kept in memory where it cannot be written; on disk because an object may be retired between two tries. */
  noteTries(tries: FailedTries): void {
    const facts = this.#read();
    const same = facts.tries.failed === tries.failed && facts.tries.until === tries.until;
    facts.tries = tries;
    if (!same) this.#write(FACT.tries, tries);
  }

  #write(kind: (typeof FACT)[keyof typeof FACT], value: unknown): Facts {
    this.#table.write(this.#id, [[kind, 0, value]]);
    return this.#read();
  }

  #read(): Facts {
    return this.#facts ?? this.#readAll().facts;
  }

  #readBody(): Body {
    return this.#body ?? this.#readAll().body;
  }

  #readAll(): { readonly facts: Facts; readonly body: Body } {
    const stored = this.#table.read(this.#id);
    // What could not be written is in memory alone.
    this.#facts ??= factsOf(stored);
    this.#body ??= bodyOf(stored);
    return { facts: this.#facts, body: this.#body };
  }
}

/** Only this module writes these rows, so their shapes are its own. */
function firstOf<T>(stored: ReadonlyMap<number, unknown[]>, kind: number): T | null {
  return (stored.get(kind)?.[0] as T | undefined) ?? null;
}

function factsOf(stored: ReadonlyMap<number, unknown[]>): Facts {
  return {
    cancel: firstOf<CancelReason>(stored, FACT.cancel),
    acknowledged: firstOf<boolean>(stored, FACT.acknowledged) === true,
    unrepeatable: firstOf<Unrepeatable>(stored, FACT.unrepeatable),
    tries: firstOf<FailedTries>(stored, FACT.tries) ?? NO_TRIES,
  };
}

function bodyOf(stored: ReadonlyMap<number, unknown[]>): Body {
  return {
    spec: firstOf<RolloutSpec>(stored, FACT.spec),
    head: migratedHead(firstOf<Head>(stored, FACT.head)),
    turns: (stored.get(FACT.turns) ?? []) as Turn[],
  };
}

function migratedHead(head: Head | null): Head | null {
  return head === null ? null : (migrateRollout(head) as Head);
}
