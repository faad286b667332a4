/**
 * Loops over those rows of an index that are equal in its first columns: a join by a key. They are as many as the value that is
 * met most often, and not the whole table.
 *
 * Invariant. A cursor counts as such only when it is set nowhere but at the first of those rows, and left right behind the last.
 */
import { type Op, type Program, words } from "./program.ts";

/** How such a loop begins, and the op that ends it. */
const BEGINS: Readonly<Record<string, string>> = { SeekGE: "IdxGT", SeekLE: "IdxLT" };
const OTHER_POSITIONS = words(`
  Rewind Last Sort SeekLT SeekGT SeekRowid NotExists NotFound Found NoConflict SeekEnd`);

/** How many columns are compared, or null for any other loop. */
export function equalityOf(program: Program, cursor: number): number | null {
  let fewest: number | null = null;
  for (const [at, op] of program.entries()) {
    if (op.p1 !== cursor) continue;
    if (OTHER_POSITIONS.has(op.opcode)) return null;
    const end = BEGINS[op.opcode];
    if (end === undefined) continue;
    if (!ends(program[at + 1], op, end)) return null;
    fewest = Math.min(fewest ?? Number(op.p4), Number(op.p4));
  }
  return fewest;
}

/** The same key in the same registers, and asked anew for every row. */
function ends(op: Op | undefined, { p1, p3, p4 }: Op, opcode: string): boolean {
  return op?.opcode === opcode && op.p1 === p1 && op.p3 === p3 && op.p4 === p4 && Number(p4) > 0;
}

/** Which columns of which cursor an index is made of that the statement makes for itself. */
export function keysOf(
  program: Program,
  cursor: number,
  count: number,
): { readonly cursor: number; readonly columns: readonly number[] } | null {
  const opened = program.filter(({ opcode, p1 }) => opcode === "OpenAutoindex" && p1 === cursor);
  const filled = program.findIndex(({ opcode, p1 }) => opcode === "IdxInsert" && p1 === cursor);
  const record = program[filled - 1]?.opcode === "FilterAdd" ? filled - 2 : filled - 1;
  const made = program[record];
  if (opened.length !== 1 || made?.opcode !== "MakeRecord" || !isBinary(opened[0]?.p4, count)) {
    return null;
  }
  const first = record - made.p2;
  const reads = program.slice(first, first + count);
  const [source] = reads;
  const plain = reads.every(
    ({ opcode, p1, p3 }, index) => opcode === "Column" && p1 === source?.p1 && p3 === made.p1 + index,
  );
  if (source === undefined || !plain) return null;
  return { cursor: source.p1, columns: reads.map(({ p2 }) => p2) };
}

/** `k(3,B,B,)`: how the first columns are compared. */
function isBinary(keys: string | undefined, count: number): boolean {
  const collations = /^k\(\d+,(.*)\)$/.exec(keys ?? "")?.[1]?.split(",") ?? [];
  return collations.length >= count && collations.slice(0, count).every((name) => name === "B");
}
