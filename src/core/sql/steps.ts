/**
 * What each op of a program costs, in steps of some ten nanoseconds, as often as it runs.
 *
 * Invariant. From above, by what was measured: an op with the values it handles, which are read, copied or compared a few bytes
 * a step, and looked up in a tree of a database of the largest size.
 */
import { gathers, type Length, NUMBER } from "./functions.ts";
import type { Lengths } from "./lengths.ts";
import { type Op, words } from "./program.ts";

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

export function stepsOf(op: Op, at: number, times: number, lengths: Lengths, stores: Stores): number {
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
