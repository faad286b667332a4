/**
 * What each op of a program costs, in steps of some ten nanoseconds, as often as it runs.
 *
 * Invariant. From above, by what was measured: an op with the values it handles, which are read, copied or compared a few bytes
 * a step, and looked up in a tree of a database of the largest size.
 */
import { gathers, type Length } from "./functions.ts";
import type { Lengths } from "./lengths.ts";
import { type Op, words } from "./program.ts";

/** A look into a tree, or a change of it. */
const LOOKUPS = words(`
  SeekLT SeekLE SeekGE SeekGT SeekRowid NotExists NotFound Found NoConflict Rewind Last Insert IdxInsert Delete IdxDelete NewRowid
  DeferredSeek OpenRead OpenWrite ReopenIdx Clear Destroy CreateBtree RowSetTest`);
const COMPARES = words("Eq Ne Lt Le Gt Ge ElseEq");
const LOOKUP = 20;
/** An in-memory store of its own. */
const OPENS = words("OpenEphemeral OpenAutoindex SorterOpen");
const OPEN = 200;

export function stepsOf(op: Op, at: number, times: number, lengths: Lengths): number {
  const { opcode, p1, p2, p3, p4 } = op;
  const all = (fixed: number, length: Length, share: number) =>
    times * fixed + (times * length.mean + length.most) / share;
  switch (opcode) {
    case "Column":
      return all(2, lengths.column(p1, p2), 32);
    case "VColumn":
      return all(10, lengths.of(p3), 4);
    case "VFilter":
      return all(100, lengths.sum(p3 + 2, lengths.constant(p3 + 1) ?? 4), 2);
    case "VNext":
      return times * 20;
    case "MakeRecord":
      return all(4, lengths.row(p3), 16);
    case "RowData":
    case "SorterData":
      return all(4, lengths.record(p1), 16);
    case "Insert":
    case "IdxInsert":
      return all(LOOKUP, lengths.row(p2), 2);
    case "SorterInsert":
      return all(2 * LOOKUP, lengths.row(p2), 1);
    case "Concat":
      return all(6, lengths.of(p3), 16);
    case "ResultRow":
      return all(20, lengths.sum(p1, p2), 16);
    case "Function":
    case "PureFunc": {
      const call = lengths.call(op, at);
      return times * (10 + call.looks / 4) + call.length.most / 16;
    }
    case "AggStep":
    case "AggInverse":
      return all(6, lengths.sum(p2, op.p5), gathers(p4.toLowerCase()) ? 2 : 16);
    case "AggFinal":
      return all(6, lengths.of(p1), 16);
    case "AggValue":
      return all(6, lengths.of(p3), 4);
    case "Compare":
      return all(4, lengths.sum(p1, p3), 4);
    case "Copy":
    case "Cast":
    case "Affinity":
      return all(2, lengths.of(p1), 8);
    default:
      return otherSteps(op, times, lengths, p4);
  }
}

function otherSteps({ opcode, p1, p3 }: Op, times: number, lengths: Lengths, p4: string): number {
  if (COMPARES.has(opcode)) {
    // A comparison ends with the shorter of the two.
    const most = Math.min(lengths.of(p1).most, lengths.of(p3).most);
    return times * (1 + most / 16);
  }
  if (LOOKUPS.has(opcode)) {
    const keys = /^\d+$/.test(p4) ? lengths.sum(p3, Number(p4)) : null;
    return times * (LOOKUP + (keys?.mean ?? 0)) + (keys?.most ?? 0);
  }
  return times * (OPENS.has(opcode) ? OPEN : 1);
}
