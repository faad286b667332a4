/**
 * What one rollout keeps in its own SQLite.
 *
 * One table, `facts`, of JSON text in chunks: kind 0 the spec, 1 the head (the rollout without its turns), 2 a cancel
 * request, 3 the acknowledgement, 4 the turn whose tools must not run twice, 5 the turns, an item each. The table is
 * made by `begin`: an object that was never begun holds nothing. This object is its only writer, so what is on disk is
 * read once, and a turn answered since the head was written needs no second write of the head.
 */
import type { CancelReason } from "../core/errors.ts";
import type { Rollout } from "../core/rollout.ts";
import { lastIds } from "../core/tokens.ts";
import type { Turn } from "../core/trajectory.ts";
import { createChunks, readChunks, writeChunks } from "./chunks.ts";
import type { RolloutSpec } from "./wire.ts";

const KIND = { spec: 0, head: 1, cancel: 2, acknowledged: 3, unrepeatable: 4, turns: 5 } as const;

/** Ids are in the turns, and the turns have rows of their own. */
type Head = Omit<Rollout, "turns" | "last_ids"> & { readonly answered: number };

interface Facts {
  spec: RolloutSpec | null;
  head: Head | null;
  turns: readonly Turn[];
  cancel: CancelReason | null;
  acknowledged: boolean;
  unrepeatable: number | null;
}

export class RolloutStore {
  readonly #sql: SqlStorage;
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
  }

  /** Forgets what was read of a storage that was deleted. */
  forget(): void {
    this.#facts = null;
  }

  /** The rollout as last saved, or null before its first save. */
  load(): Rollout | null {
    const { head, turns } = this.#read();
    if (head === null) return null;
    const { answered, ...rollout } = head;
    const loaded: Rollout = { ...rollout, turns, last_ids: lastIds(turns) };
    // The answer was written and then the process was killed: the call is over.
    return turns.length > answered ? { ...loaded, phase: "reply", intent: null } : loaded;
  }

  /** Writes the turn just answered; everything else follows from it. */
  saveAnswer(rollout: Rollout): void {
    const { turns } = rollout;
    const last = turns.at(-1);
    if (last !== undefined) this.#writeTurn(last);
    this.#read().turns = turns;
  }

  /** Writes the head, and the turns that are new or changed. */
  save(rollout: Rollout): void {
    const { turns, last_ids: _, ...rest } = rollout;
    const facts = this.#read();
    for (const turn of turns) {
      if (facts.turns[turn.index] !== turn) this.#writeTurn(turn);
    }
    facts.turns = turns;
    const head = { ...rest, answered: turns.length };
    this.#write(KIND.head, head).head = head;
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

  /** The turn whose reply was begun and runs tools that must not run twice; null when there is none. */
  unrepeatableTurn(): number | null {
    return this.#read().unrepeatable;
  }

  beginUnrepeatable(turn: number): void {
    this.#write(KIND.unrepeatable, turn).unrepeatable = turn;
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
    head: first<Head>(KIND.head),
    turns: (stored.get(KIND.turns) ?? []) as Turn[],
    cancel: first<CancelReason>(KIND.cancel),
    acknowledged: first<boolean>(KIND.acknowledged) === true,
    unrepeatable: first<number>(KIND.unrepeatable),
  };
}
