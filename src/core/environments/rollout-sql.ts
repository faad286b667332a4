/**
 * `can.sql`: a SQLite database for one rollout, the same on the platform and in an author's test.
 *
 * Invariants. The database has no data of the platform, so a query can only affect its own rollout. A call is
 * identified by its effect and its number in that effect, and is applied exactly once: its changes and its journal
 * entry are written together, and a call that is repeated after a restart returns the first result, including an error.
 * Of a call, all statements are applied or none. Results are JSON within the limits. A statement does not run if its
 * estimated work exceeds what is left for its call, or for all calls of its effect: the estimate is in the journal,
 * too, so that a restart does not reset it.
 */
import { EnvError, SqlWorkError } from "../../contract/errors.ts";
import { findNonJson, type Json } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { exceedsUtf8 } from "../size.ts";
import type { SqlDatabase, SqlValue } from "../sql/database.ts";
import { requireOffered, requireShort, type Statement, statementsOf } from "../sql/statements.ts";
import { about, workOf } from "../sql/work.ts";
import type { Awaitable } from "./contract.ts";

export type { SqlValue };
export type SqlRow = Readonly<Record<string, Json>>;

/** Identifies a call of the rollout: the current effect, and the number of calls that it made before. */
export interface SqlPlace {
  readonly effect: string;
  readonly call: number;
}
/** `work`: refused because of its estimated work. */
export type SqlOutcome = { readonly rows: readonly SqlRow[] } | { readonly error: string; readonly work?: true };
export interface SqlEntry extends SqlPlace {
  readonly query: string;
  readonly params: readonly SqlValue[];
  readonly outcome: SqlOutcome;
  /** Counted work of this call and of those before it in its effect. */
  readonly steps?: number;
}

/** The results of calls since the rollout was last stored: only those calls can be repeated. */
export interface SqlJournal {
  find(place: SqlPlace): SqlEntry | null;
  add(entry: SqlEntry): void;
}

/** Runs the calls of one rollout. Throws EnvError if the call is wrong, and other errors for other failures. */
export interface SqlRunner {
  exec(place: SqlPlace, query: string, params: readonly SqlValue[]): Awaitable<readonly SqlRow[]>;
}

/** For a process that does not outlive its rollouts. */
export const NO_JOURNAL: SqlJournal = { find: () => null, add: () => undefined };

export class RolloutSql implements SqlRunner {
  readonly #database: SqlDatabase;
  readonly #journal: SqlJournal;
  /** The previous call: used if there is no journal. */
  #last: SqlPlace & { readonly steps: number } = { effect: "", call: 0, steps: 0 };
  #taken = 0;

  constructor(database: SqlDatabase, journal: SqlJournal) {
    this.#database = database;
    this.#journal = journal;
  }

  /** Steps of all calls so far, without replayed ones. */
  get stepsTaken(): number {
    return this.#taken;
  }

  /** Throws EnvError for a refused query, an exceeded limit, or an error of SQLite. */
  exec(place: SqlPlace, query: string, params: readonly SqlValue[]): readonly SqlRow[] {
    const known = this.#journal.find(place);
    if (known !== null) return rowsOf(replay(known, query, params));
    if (place.call >= LIMITS.sqlCallsPerHook) {
      throw new EnvError(`one hook made more than ${LIMITS.sqlCallsPerHook} sql calls`);
    }
    return rowsOf(this.#apply({ ...place, query, params }));
  }

  #apply(call: SqlCall): SqlOutcome {
    const before = this.#stepsBefore(call);
    const meter = new Meter(before);
    try {
      return this.#attempt(call, meter);
    } finally {
      this.#last = { effect: call.effect, call: call.call, steps: meter.steps };
      this.#taken += meter.steps - before;
    }
  }

  #attempt(call: SqlCall, meter: Meter): SqlOutcome {
    try {
      return this.#database.atomically(() => {
        const outcome = { rows: this.#run(call, meter) };
        this.#journal.add({ ...call, outcome, steps: meter.steps });
        return outcome;
      });
    } catch (thrown) {
      // An error is stored like any other result: a repeated call might otherwise find a database in which it succeeds.
      const work = thrown instanceof SqlWorkError ? { work: true as const } : {};
      const outcome = { error: messageOf(thrown), ...work };
      this.#journal.add({ ...call, outcome, steps: meter.steps });
      return outcome;
    }
  }

  #stepsBefore({ effect, call }: SqlPlace): number {
    if (call === 0) return 0;
    const known = this.#journal.find({ effect, call: call - 1 });
    return known?.steps ?? (this.#last.effect === effect ? this.#last.steps : 0);
  }

  #run({ query, params }: SqlCall, meter: Meter): readonly SqlRow[] {
    requireShort(query, params);
    const statements = statementsOf(query);
    for (const statement of statements) requireOffered(statement);
    const last = statements.at(-1);
    // Only spaces and comments: SQLite reports the error.
    if (last === undefined) return this.#read(query, params);
    for (const statement of statements.slice(0, -1)) this.#finish(statement, meter);
    meter.take(workOf(this.#database, last, params));
    return this.#read(last.text, params);
  }

  /** Runs a statement and ignores its rows. */
  #finish(statement: Statement, meter: Meter): void {
    meter.take(workOf(this.#database, statement, []));
    const rows = this.#database.rows(statement.text, [])[Symbol.iterator]();
    while (rows.next().done !== true);
    this.#requireSize();
  }

  #read(text: string, params: readonly SqlValue[]): readonly SqlRow[] {
    const rows: SqlRow[] = [];
    for (const row of this.#database.rows(text, params)) {
      if (rows.length === LIMITS.sqlRows) {
        throw new EnvError(`the query returns over ${LIMITS.sqlRows} rows: add a limit`);
      }
      rows.push(jsonRow(row));
    }
    if (exceedsUtf8(JSON.stringify(rows), LIMITS.sqlResultBytes)) {
      throw new EnvError(`the rows are over ${LIMITS.sqlResultBytes} bytes as JSON`);
    }
    this.#requireSize();
    return rows;
  }

  #requireSize(): void {
    if (this.#database.sizeBytes() > LIMITS.sqlDatabaseBytes) {
      throw new EnvError(`the database would be over ${LIMITS.sqlDatabaseBytes} bytes`);
    }
  }
}

type SqlCall = Omit<SqlEntry, "outcome" | "steps">;

/** Counts the work of one call, in addition to that of the calls before it. */
class Meter {
  readonly #before: number;
  steps: number;

  constructor(before: number) {
    this.#before = before;
    this.steps = before;
  }

  take(steps: number): void {
    const call = this.steps - this.#before + steps;
    if (call > LIMITS.sqlStepsPerCall) throw tooMuch("one call", call, LIMITS.sqlStepsPerCall);
    const hook = this.steps + steps;
    if (hook > LIMITS.sqlStepsPerHook) {
      throw tooMuch("the sql calls of one hook", hook, LIMITS.sqlStepsPerHook);
    }
    this.steps = hook;
  }
}

function tooMuch(what: string, steps: number, most: number): SqlWorkError {
  return new SqlWorkError(
    `too much work: ${what} would take about ${about(steps)} steps, and the limit is ${about(most)}: read fewer rows, join fewer tables, store intermediate results in a table, or use shorter texts`,
  );
}

/** Hooks are deterministic given the state; if one is not, a stored result cannot be right, and this throws. */
function replay(known: SqlEntry, query: string, params: readonly SqlValue[]): SqlOutcome {
  const same = known.query === query && JSON.stringify(known.params) === JSON.stringify(params);
  if (same) return known.outcome;
  throw new EnvError(
    `sql call ${known.call} differs after a restart: a hook must repeat the same calls, ` +
      "with can.random and can.now as its only chance and clock",
  );
}

function rowsOf(outcome: SqlOutcome): readonly SqlRow[] {
  if ("error" in outcome) throw errorOf(outcome);
  return outcome.rows;
}

export function errorOf({ error, work }: Extract<SqlOutcome, { error: string }>): EnvError {
  return work === true ? new SqlWorkError(error) : new EnvError(error);
}

function jsonRow(row: Readonly<Record<string, unknown>>): SqlRow {
  const bad = findNonJson({ ...row }, "");
  if (bad === null) return { ...row } as SqlRow;
  const advice = /^an instance/.test(bad.found) ? "a blob: select hex(…) of it" : bad.found;
  throw new EnvError(`column ${bad.path.slice(1)} is ${advice}`);
}

/** SQLite's message, without the code that one runtime appends. */
function messageOf(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return message.replace(/: SQLITE_\w+$/, "");
}
