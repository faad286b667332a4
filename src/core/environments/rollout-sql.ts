/**
 * `can.sql`: a SQLite database of the rollout's own, the same in the platform and in an author's test.
 *
 * Invariants. Nothing of the platform's is in that database: whatever a query does to it, it does to its own rollout. A
 * call is known by the effect it belongs to and its number there, and is applied exactly once: its effect and its journal
 * entry are written together, and whoever asks again after a restart gets what the first asking gave, an error included.
 * All statements of a call happen or none does. Whatever is returned is JSON within the limits.
 */
import { EnvError } from "../errors.ts";
import { findNonJson, type Json } from "../json.ts";
import { LIMITS } from "../limits.ts";
import { exceedsUtf8 } from "../utf8.ts";
import type { Awaitable } from "./contract.ts";

export type SqlValue = string | number | null;
export type SqlRow = Readonly<Record<string, Json>>;

/** A database as both runtimes can offer it. Errors are thrown as SQLite words them. */
export interface SqlDatabase {
  /** Runs every statement of the query, with the parameters in the last, whose rows these are. Not reading on is allowed. */
  rows(query: string, params: readonly SqlValue[]): Iterable<Readonly<Record<string, unknown>>>;
  /** Undoes what was written when `run` throws. */
  atomically<T>(run: () => T): T;
  sizeBytes(): number;
}

/** Which call of the rollout: what the environment was doing, and how many calls that made before. */
export interface SqlPlace {
  readonly effect: string;
  readonly call: number;
}
export type SqlOutcome = { readonly rows: readonly SqlRow[] } | { readonly error: string };
export interface SqlEntry extends SqlPlace {
  readonly query: string;
  readonly params: readonly SqlValue[];
  readonly outcome: SqlOutcome;
}

/** What calls came to, since the rollout was last stored: only those can be asked again. */
export interface SqlJournal {
  find(place: SqlPlace): SqlEntry | null;
  add(entry: SqlEntry): void;
}

/** Who runs the calls of one rollout. Throws EnvError for what was wrong with a call, anything else for what was not. */
export interface SqlRunner {
  exec(place: SqlPlace, query: string, params: readonly SqlValue[]): Awaitable<readonly SqlRow[]>;
}

/** For a process whose rollouts do not outlive it. */
export const NO_JOURNAL: SqlJournal = { find: () => null, add: () => undefined };

export class RolloutSql implements SqlRunner {
  readonly #database: SqlDatabase;
  readonly #journal: SqlJournal;

  constructor(database: SqlDatabase, journal: SqlJournal) {
    this.#database = database;
    this.#journal = journal;
  }

  /** Throws EnvError for a refused query, a limit, or what SQLite says. */
  exec(place: SqlPlace, query: string, params: readonly SqlValue[]): readonly SqlRow[] {
    const known = this.#journal.find(place);
    if (known !== null) return rowsOf(replayed(known, query, params));
    if (place.call >= LIMITS.sqlCallsPerHook) {
      throw new EnvError(`one hook made more than ${LIMITS.sqlCallsPerHook} sql calls`);
    }
    requireAllowed(query, params);
    return rowsOf(this.#applied({ ...place, query, params }));
  }

  #applied(call: Omit<SqlEntry, "outcome">): SqlOutcome {
    try {
      return this.#database.atomically(() => {
        const outcome = { rows: this.#run(call) };
        this.#journal.add({ ...call, outcome });
        return outcome;
      });
    } catch (thrown) {
      // An error is an answer like any other: another asking may find a database in which it would not happen.
      const outcome = { error: messageOf(thrown) };
      this.#journal.add({ ...call, outcome });
      return outcome;
    }
  }

  #run({ query, params }: Omit<SqlEntry, "outcome">): readonly SqlRow[] {
    const rows: SqlRow[] = [];
    for (const row of this.#database.rows(query, params)) {
      if (rows.length === LIMITS.sqlRows) {
        throw new EnvError(`the query gives over ${LIMITS.sqlRows} rows: add a limit to it`);
      }
      rows.push(jsonRow(row));
    }
    if (exceedsUtf8(JSON.stringify(rows), LIMITS.sqlResultBytes)) {
      throw new EnvError(`the rows are over ${LIMITS.sqlResultBytes} bytes as JSON`);
    }
    if (this.#database.sizeBytes() > LIMITS.sqlDatabaseBytes) {
      throw new EnvError(`the database would be over ${LIMITS.sqlDatabaseBytes} bytes`);
    }
    return rows;
  }
}

/** Hooks are deterministic given the state; where one is not, no stored result can be the right one. */
function replayed(known: SqlEntry, query: string, params: readonly SqlValue[]): SqlOutcome {
  const same = known.query === query && JSON.stringify(known.params) === JSON.stringify(params);
  if (same) return known.outcome;
  throw new EnvError(
    `sql call ${known.call} asked something else after a restart: a hook must do the same again, ` +
      "with can.random and can.now as its only chance and clock",
  );
}

function rowsOf(outcome: SqlOutcome): readonly SqlRow[] {
  if ("error" in outcome) throw new EnvError(outcome.error);
  return outcome.rows;
}

function jsonRow(row: Readonly<Record<string, unknown>>): SqlRow {
  const bad = findNonJson({ ...row }, "");
  if (bad === null) return { ...row } as SqlRow;
  const advice = /^an instance/.test(bad.found) ? "a blob: select hex(…) of it" : bad.found;
  throw new EnvError(`column ${bad.path.slice(1)} is ${advice}`);
}

/** SQLite's own words; the code that one runtime adds says nothing more. */
function messageOf(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return message.replace(/: SQLITE_\w+$/, "");
}

/** Quoted texts and names, comments, words, and what ends a statement. */
const TOKENS =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|[\p{L}_$][\p{L}\p{N}_$]*|;/gu;
/** What may stand before a statement. */
const EXPLAINS = /^(explain|query|plan)$/i;
/** Statements about the connection, which is not the environment's. A call is a transaction by itself. */
const NOT_OFFERED = /^(attach|detach|pragma|vacuum|begin|commit|rollback|savepoint|release)$/i;

function requireAllowed(query: string, params: readonly SqlValue[]): void {
  if (exceedsUtf8(query, LIMITS.sqlQueryBytes)) {
    throw new EnvError(`the query is over ${LIMITS.sqlQueryBytes} bytes: pass data as parameters`);
  }
  if (exceedsUtf8(JSON.stringify(params), LIMITS.sqlParameterBytes)) {
    throw new EnvError(`the parameters are over ${LIMITS.sqlParameterBytes} bytes as JSON`);
  }
  let begins = true;
  for (const [token] of query.matchAll(TOKENS)) {
    if (/^(--|\/\*)/.test(token)) continue;
    if (begins && NOT_OFFERED.test(token)) throw new EnvError(`${token} is not offered here`);
    begins = token === ";" || (begins && EXPLAINS.test(token));
  }
}
