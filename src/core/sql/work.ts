/**
 * What a statement of SQL would cost, before it runs: one that computes without end and gives no row cannot be stopped
 * from inside an isolate.
 *
 * Invariants. The estimate is of steps, from above: every op of SQLite's own program for the statement, as often as it
 * may run (visits.ts), with the bytes it may look at (lengths.ts), those of triggers and foreign keys included. The
 * same statement on the same database costs the same. What cannot be counted is refused. Nothing is written.
 */
import { EnvError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { SqlDatabase, SqlValue } from "./database.ts";
import { requireModest, type Stored } from "./expansion.ts";
import { gathers, type Length, NUMBER } from "./functions.ts";
import { Lengths } from "./lengths.ts";
import { type Op, type Program, programsOf, UncountableError, words } from "./program.ts";
import { CountedSizes, roughSizes, type Sizes } from "./sizes.ts";
import type { Statement } from "./statements.ts";
import { Visits } from "./visits.ts";

/** Below this nothing is counted: what the size of the database says is enough. */
const LITTLE = 200_000;
/**
 * To read and to analyse one op of a program, for SQLite to read a view or a trigger, and to find the order of a join.
 */
const STEPS_PER_OP = 1000;
const STEPS_PER_CHARACTER = 5;
const STEPS_PER_PLAN = 1000;
/** Less than what SQLite holds of a database in memory. */
const HELD_BYTES = 1_500_000;
/** Programs looked at for one statement: its own, and those of triggers, each as often as it may be set off. */
const MOST_PROGRAMS = 200;
const GROWTH_ROUNDS = 5;

export function workOf(database: SqlDatabase, statement: Statement, params: readonly SqlValue[]): number {
  const stored = storedIn(database);
  requireModest(statement.tokens, stored);
  const characters = stored.reduce((sum, { sql }) => sum + sql.length, 0);
  // The statement asks for its plan itself, and no more.
  if (/^explain$/i.test(statement.tokens[0] ?? "")) return LITTLE;
  const programs = programsIn(database, statement, params);
  const ops = programs.reduce((sum, program) => sum + program.length, 0);
  const reading = STEPS_PER_OP * ops + STEPS_PER_CHARACTER * characters + STEPS_PER_PLAN * tablesIn(programs) ** 3;
  const nested = [statement.text, ...stored.map(({ sql }) => sql)].some((sql) => /jsonb?_tree/i.test(sql));
  const large = database.sizeBytes() > HELD_BYTES;
  const given = { programs, params, nested, large };
  const rough = new Estimate(given, roughSizes(database)).steps();
  if (rough <= LITTLE) return reading + rough;
  const sizes = new CountedSizes(database);
  const steps = new Estimate(given, sizes).steps();
  return reading + sizes.steps + steps;
}

/** What is written out in statements that name it. */
function storedIn(database: SqlDatabase): readonly Stored[] {
  const query = "select type, name, sql from sqlite_schema where type in ('view', 'trigger')";
  return [...database.rows(query, [])].map(({ type, name, sql }) => ({
    type: type === "view" ? "view" : "trigger",
    name: String(name),
    sql: String(sql),
  }));
}

function tablesIn(programs: readonly Program[]): number {
  const opened = programs.map((program) => program.filter(({ opcode }) => /^(OpenRead|VOpen)$/.test(opcode)).length);
  return Math.max(0, ...opened);
}

function programsIn(database: SqlDatabase, { text }: Statement, params: readonly SqlValue[]): readonly Program[] {
  const rows: Readonly<Record<string, unknown>>[] = [];
  for (const row of database.rows(`explain ${text}`, params)) {
    if (rows.length >= LIMITS.sqlOps) throw new EnvError("the statement is too long: split it");
    rows.push(row);
  }
  return programsOf(rows);
}

interface Given {
  readonly programs: readonly Program[];
  readonly params: readonly SqlValue[];
  readonly nested: boolean;
  readonly large: boolean;
}

interface Cost {
  readonly steps: number;
  /** Rows written, by root page. */
  readonly written: ReadonlyMap<number, number>;
}

class Estimate {
  readonly #given: Given;
  readonly #sizes: Sizes;
  /** Where programs are set off, as `program:address`. */
  readonly #places: readonly string[];
  /** Rows that the statement itself adds, which its triggers may see. */
  #growth: ReadonlyMap<number, number> = new Map();
  #looked = 0;

  constructor(given: Given, sizes: Sizes) {
    this.#given = given;
    this.#sizes = sizes;
    this.#places = given.programs.flatMap((program, of) =>
      program.flatMap(({ opcode }, at) => (opcode === "Program" ? [`${of}:${at}`] : [])),
    );
  }

  steps(): number {
    for (let round = 0; round < GROWTH_ROUNDS; round += 1) {
      const cost = this.#cost(0, [], NUMBER);
      const settled = [...cost.written].every(([root, rows]) => this.#growth.get(root) === rows);
      if (settled || this.#given.programs.length === 1) return cost.steps;
      this.#growth = cost.written;
    }
    throw new UncountableError(
      "the triggers of this statement add rows that they read again: their work cannot be counted",
    );
  }

  /** The cost of one program, and of those it sets off that are not running already. */
  #cost(index: number, running: readonly number[], param: Length): Cost {
    const program = this.#given.programs[index] ?? [];
    this.#looked += 1;
    if (this.#looked > MOST_PROGRAMS) {
      throw new UncountableError("the statement sets off too many triggers to be counted");
    }
    const first = this.#lengths(program, index, param, () => null);
    const visits = new Visits(program, {
      rows: (root) => this.#sizes.rows(root) + this.#growthOf(root, index),
      equalRows: (root, columns) => this.#sizes.equalRows(root, columns) + this.#growthOf(root, index),
      equalColumns: (root, columns) => this.#sizes.equalColumns(root, columns) + this.#growthOf(root, index),
      functionRows: (at) => this.#functionRows(program, at, first),
      constant: (register) => first.constant(register),
    });
    const lengths = this.#lengths(program, index, param, (at) => visits.of(at));
    const stores = {
      isTable: (cursor: number) => visits.rootsOf(cursor).length > 0,
      large: this.#given.large,
    };
    const written = new Map<number, number>();
    let steps = 0;
    for (const [at, op] of program.entries()) {
      const times = visits.of(at);
      if (times === 0) continue;
      steps += stepsOf(op, at, times, lengths, stores);
      if (op.opcode === "Insert" || op.opcode === "IdxInsert") {
        for (const root of visits.rootsOf(op.p1)) add(written, root, times);
      }
      if (op.opcode === "Program") {
        steps += this.#setOff(op, { index, at, running, times }, lengths.longest(op.p1), written);
      }
    }
    return { steps, written };
  }

  #setOff(
    { p5 }: Op,
    from: { index: number; at: number; running: readonly number[]; times: number },
    param: Length,
    written: Map<number, number>,
  ): number {
    const running = [...from.running, from.index];
    let most = 0;
    for (const index of this.#candidates(from.index, from.at)) {
      if (running.includes(index)) {
        // A trigger does not set itself off again; an action of a foreign key does.
        if (p5 !== 0) continue;
        throw new UncountableError(
          "a foreign key's action that sets itself off again cannot be counted: delete or update such rows one by one",
        );
      }
      const cost = this.#cost(index, running, param);
      most = Math.max(most, cost.steps * from.times);
      for (const [root, rows] of cost.written) add(written, root, rows * from.times);
    }
    return most;
  }

  /** The listing does not say which program is meant, where one is set off at more than one place: then any may be. */
  #candidates(index: number, at: number): readonly number[] {
    const count = this.#given.programs.length - 1;
    if (this.#places.length === count) return [1 + this.#places.indexOf(`${index}:${at}`)];
    return Array.from({ length: count }, (_, other) => other + 1);
  }

  /** A trigger may see what its own statement wrote. */
  #growthOf(root: number, index: number): number {
    return index === 0 ? 0 : (this.#growth.get(root) ?? 0);
  }

  #lengths(program: Program, index: number, param: Length, visits: (at: number) => number | null): Lengths {
    const { params, nested } = this.#given;
    // What a trigger reads may have been written by this very statement.
    const row = (root: number) => (index > 0 && this.#growth.has(root) ? LONGEST_ROW : this.#sizes.row(root));
    return new Lengths(program, { row, params, nested, param, visits });
  }

  /** Every row of json_each takes two characters at least; the other functions list columns, indexes and the like. */
  #functionRows(program: Program, at: number, lengths: Lengths): number {
    const { p3 } = program[at] ?? { p3: 0 };
    const given = lengths.sum(p3 + 2, lengths.constant(p3 + 1) ?? 4, at);
    return OTHER_ROWS + given.most / 2;
  }
}

const LONGEST_ROW: Length = { most: LIMITS.sqlValueBytes, mean: LIMITS.sqlValueBytes };
const OTHER_ROWS = 200;

function add(counts: Map<number, number>, key: number, more: number): void {
  counts.set(key, (counts.get(key) ?? 0) + more);
}

// What each op of a program costs, in steps of some ten nanoseconds, as often as it runs.
//
// Invariant. From above, by what was measured: an op with the values it handles, which are read, copied or compared a
// few bytes a step, and looked up in a tree of a database of the largest size.

/** A look into a tree. */
const LOOKUPS = words(`
  SeekLT SeekLE SeekGE SeekGT SeekRowid NotExists NotFound Found NoConflict Rewind Last NewRowid DeferredSeek OpenRead OpenWrite
  ReopenIdx Clear Destroy CreateBtree RowSetTest`);
const WRITES = words("Insert IdxInsert Delete IdxDelete");
const COMPARES = words("Eq Ne Lt Le Gt Ge ElseEq");
/** An in-memory store of its own. */
const OPENS = words("OpenEphemeral OpenAutoindex SorterOpen");

/** In a store of the statement's own; in a table, which may be larger than the memory it is held in. */
const LOOKUP = { own: 50, table: 30, large: 400 };
const WRITE = { ownRow: 40, ownKey: 200, row: 400, key: 1000 };
const SORT = 400;
const OPEN = 200;

/** What is known of the cursors of a program. */
export interface Stores {
  isTable(cursor: number): boolean;
  /** Whether the database is larger than what SQLite holds of it in memory. */
  readonly large: boolean;
}

function stepsOf(op: Op, at: number, times: number, lengths: Lengths, stores: Stores): number {
  const { opcode, p1, p2, p3, p4 } = op;
  const all = (fixed: number, length: Length, share: number) =>
    times * fixed + (times * length.mean + length.most) / share;
  switch (opcode) {
    case "Column":
      return all(2, lengths.column(p1, p2), 32);
    case "VColumn":
      return all(10, lengths.of(p3, at), 4);
    case "VFilter":
      return all(100, lengths.sum(p3 + 2, lengths.constant(p3 + 1) ?? 4, at), 2);
    case "VNext":
      return times * 20;
    case "MakeRecord":
      return all(4, lengths.row(p3, at), 16);
    case "RowData":
    case "SorterData":
      return all(4, lengths.record(p1), 16);
    case "SorterInsert":
      return 2 * all(SORT / 2, lengths.row(p2, at), 1);
    case "Concat":
      return all(6, lengths.of(p3, at), 16);
    case "ResultRow":
      return all(20, lengths.sum(p1, p2, at), 16);
    case "Function":
    case "PureFunc": {
      const call = lengths.call(op, at);
      return times * (10 + call.looks / 4) + call.length.most / 16;
    }
    case "AggStep":
    case "AggInverse":
      return all(6, lengths.sum(p2, op.p5, at), gathers(p4.toLowerCase()) ? 2 : 16);
    case "AggFinal":
      return all(6, lengths.of(p1, at), 16);
    case "AggValue":
      return all(6, lengths.of(p3, at), 4);
    case "Compare":
      return all(4, lengths.sum(p1, p3, at), 4);
    case "Copy":
    case "Cast":
    case "Affinity":
      return all(2, lengths.of(p1, at), 8);
    default:
      return storeSteps(op, at, times, lengths, stores);
  }
}

function storeSteps(op: Op, at: number, times: number, lengths: Lengths, stores: Stores): number {
  const { opcode, p1, p3 } = op;
  if (WRITES.has(opcode)) return writeSteps(op, at, times, lengths, stores);
  if (LOOKUPS.has(opcode)) return lookupSteps(op, at, times, lengths, stores);
  if (COMPARES.has(opcode)) {
    // A comparison ends with the shorter of the two.
    const most = Math.min(lengths.of(p1, at).most, lengths.of(p3, at).most);
    return times * (1 + most / 16);
  }
  return times * (OPENS.has(opcode) ? OPEN : 1);
}

function writeSteps({ opcode, p1, p2 }: Op, at: number, times: number, lengths: Lengths, stores: Stores): number {
  const row = opcode.endsWith("Insert") ? lengths.row(p2, at) : NUMBER;
  const [rows, keys] = stores.isTable(p1) ? [WRITE.row, WRITE.key] : [WRITE.ownRow, WRITE.ownKey];
  return times * ((opcode === "Insert" ? rows : keys) + row.mean) + row.most;
}

function lookupSteps({ p1, p3, p4 }: Op, at: number, times: number, lengths: Lengths, stores: Stores): number {
  const key = /^\d+$/.test(p4) ? lengths.sum(p3, Number(p4), at) : { most: 0, mean: 0 };
  const inTable = stores.large ? LOOKUP.large : LOOKUP.table;
  return times * ((stores.isTable(p1) ? inTable : LOOKUP.own) + key.mean) + key.most;
}
