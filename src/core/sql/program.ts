/**
 * The program that SQLite makes of a statement, as `explain` lists it: the statement's own, and after it one for each
 * trigger and each action of a foreign key that it may set off.
 *
 * Invariant. An opcode that is not listed here is not understood, and a program that has one cannot be counted: it is
 * refused.
 */
import { SqlWorkError } from "../../contract/errors.ts";

export interface Op {
  readonly opcode: string;
  readonly p1: number;
  readonly p2: number;
  readonly p3: number;
  readonly p4: string;
  readonly p5: number;
}
export type Program = readonly Op[];

/** A statement whose work has no bound that can be known. */
export class UncountableError extends SqlWorkError {}

/** May go on at p2. */
const JUMPS = words(`
  Checkpoint ElseEq Eq Filter FkIfZero Found Ge Goto Gt IFindKey IdxGE IdxGT IdxLE IdxLT If IfEmpty IfNoHope IfNot IfNotOpen
  IfNotZero IfNullRow IfPos IfSizeBetween IfSmaller IncrVacuum Init IsNull IsType Last Le Lt MustBeInt Ne Next NoConflict NotExists
  NotFound NotNull Once Prev Program Rewind RowSetRead RowSetTest SeekGE SeekGT SeekLE SeekLT SeekRowid SeekScan SequenceTest
  Sort SorterCompare SorterNext SorterSort VFilter VNext Yield DecrJumpZero Jump Gosub InitCoroutine`);

/** Go on behind themselves, or end. */
const OTHERS = words(`
  Abortable Add AddImm Affinity AggFinal AggInverse AggStep AggStep1 AggValue And AutoCommit BeginSubrtn BitAnd BitNot BitOr Blob
  Cast Clear Close ClrSubtype CollSeq Column ColumnsUsed Compare Concat Copy Count CreateBtree CursorHint CursorLock CursorUnlock
  DeferredSeek Delete Destroy Divide DropIndex DropTable DropTrigger EndCoroutine Expire Explain FilterAdd FinishSeek FkCheck
  FkCounter Function GetSubtype Halt HaltIfNull IdxDelete IdxInsert IdxRowid IfNullRow Insert Int64 IntCopy Integer IntegrityCk
  IsTrue JournalMode LoadAnalysis MakeRecord MaxPgcnt MemMax Move Multiply NewRowid Noop Not Null NullRow Offset OffsetLimit
  OpenAutoindex OpenDup OpenEphemeral OpenPseudo OpenRead OpenWrite Or Pagecount Param ParseSchema Permutation PureFunc
  ReadCookie Real RealAffinity ReleaseReg Remainder ReopenIdx ResetCount ResetSorter ResultRow Return RowCell RowData RowSetAdd
  Rowid SCopy Savepoint SeekEnd SeekHit Sequence SetCookie SetSubtype ShiftLeft ShiftRight SoftNull SorterData SorterInsert
  SorterOpen String String8 Subtract TableLock Trace Transaction VColumn VOpen Variable ZeroOrNull`);

export function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}

/** A table with computed columns is read once when it is made, and empty. */
function isKnown(opcode: string, p4: string): boolean {
  return JUMPS.has(opcode) || OTHERS.has(opcode) || (opcode === "SqlExec" && p4.startsWith("SELECT*FROM"));
}

function opOf(row: Readonly<Record<string, unknown>>): Op {
  const opcode = String(row["opcode"]);
  const p4 = String(row["p4"] ?? "");
  if (!isKnown(opcode, p4)) {
    throw new UncountableError(`SQLite's ${opcode} is not offered here: its work cannot be counted`);
  }
  const number = (name: string) => Number(row[name] ?? 0);
  const [p1, p2, p3, p5] = [number("p1"), number("p2"), number("p3"), number("p5")];
  return { opcode, p1, p2, p3, p4, p5 };
}

/** Each begins at address 0. */
export function programsOf(rows: readonly Readonly<Record<string, unknown>>[]): readonly Program[] {
  const programs: Op[][] = [];
  for (const row of rows) {
    if (Number(row["addr"]) === 0) programs.push([]);
    programs.at(-1)?.push(opOf(row));
  }
  return programs;
}

/** A part that is entered at one place and left at another: a subroutine, a coroutine, or what is done only once. */
export interface Part {
  readonly entry: number;
  /** The register that its `Return` or `Yield` goes back by. */
  readonly register?: number;
  /** Where the part is over. */
  readonly until?: number;
}

/** Where the program may go on from here within a part. Calls of other parts come back. */
export function nextOf(program: Program, at: number, part: Part): readonly number[] {
  const op = program[at];
  if (op === undefined) return [];
  switch (op.opcode) {
    case "Halt":
    case "EndCoroutine":
      return [];
    case "Init":
    case "Goto":
    case "Once":
      return [op.p2];
    case "Gosub":
      return [at + 1];
    case "InitCoroutine":
      return [op.p2 === 0 ? at + 1 : op.p2];
    case "Jump":
      return [...new Set([op.p1, op.p2, op.p3])];
    case "Return":
      return returnTargets(program, at, part);
    case "SeekScan":
      return [at + 1, op.p2, program[at + 1]?.p2 ?? at + 1];
    default:
      return JUMPS.has(op.opcode) && op.p2 > 0 ? [at + 1, op.p2] : [at + 1];
  }
}

/**
 * A `Return` of another part: the register holds the address it goes to, or nothing, and then it goes on behind itself.
 */
function returnTargets(program: Program, at: number, part: Part): readonly number[] {
  const { p1, p3 } = program[at] ?? { p1: 0, p3: 1 };
  if (p1 === part.register) return [];
  if (p3 === 1) return [at + 1];
  const set = program.flatMap((op) => (op.opcode === "Integer" && op.p2 === p1 ? [op.p1 + 1] : []));
  if (set.length > 0) return set;
  throw new UncountableError("the statement cannot be counted: write it another way");
}

/** The parts that an op calls. What is done once is not among them: its cursors are set once too. */
export function calledBy(op: Op): Part | null {
  if (op.opcode === "Gosub") return { entry: op.p2, register: op.p1 };
  if (op.opcode === "InitCoroutine") return { entry: op.p3, register: op.p1 };
  return null;
}

/** Every address that a part may reach. */
export function reachedIn(program: Program, part: Part): readonly number[] {
  const reached = new Set<number>();
  const open = [part.entry];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (reached.has(at) || at === part.until || at >= program.length) continue;
    reached.add(at);
    open.push(...nextOf(program, at, part));
  }
  return [...reached].sort((a, b) => a - b);
}

/**
 * Addresses that are not only reached from the one before: what a register holds there is not known from what was
 * written last.
 */
export function entriesOf(program: Program): ReadonlySet<number> {
  const entries = new Set<number>();
  for (const [at, op] of program.entries()) {
    if (JUMPS.has(op.opcode)) for (const to of [op.p1, op.p2, op.p3]) entries.add(to);
    if (op.opcode === "Integer") entries.add(op.p1 + 1);
    if (LEAVES.has(op.opcode)) entries.add(at + 1);
  }
  return entries;
}

/** Behind these, others have run: or nothing comes from here. */
const LEAVES = words("Goto Halt Return EndCoroutine Yield Gosub InitCoroutine Program Jump Init");

/**
 * The loops of a graph: its strongly connected components, by Tarjan's algorithm, without recursion.
 *
 * Invariant. They come in the order of the graph: none can be reached from one that comes later.
 */
export function componentsOf(
  nodes: readonly number[],
  next: (node: number) => readonly number[],
): readonly (readonly number[])[] {
  const search = new Search(next);
  for (const node of nodes) search.from(node);
  return search.found.toReversed();
}

interface Step {
  readonly node: number;
  readonly left: number[];
}

class Search {
  readonly found: number[][] = [];
  readonly #next: (node: number) => readonly number[];
  readonly #order = new Map<number, number>();
  readonly #low = new Map<number, number>();
  readonly #held: number[] = [];
  readonly #isHeld = new Set<number>();

  constructor(next: (node: number) => readonly number[]) {
    this.#next = next;
  }

  from(root: number): void {
    if (this.#order.has(root)) return;
    const path = [this.#enter(root)];
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const to = top.left.pop();
      if (to === undefined) {
        path.pop();
        this.#leave(top.node, path.at(-1));
      } else if (!this.#order.has(to)) {
        path.push(this.#enter(to));
      } else if (this.#isHeld.has(to)) {
        this.#lower(top.node, this.#order.get(to) ?? 0);
      }
    }
  }

  #enter(node: number): Step {
    this.#order.set(node, this.#order.size);
    this.#lower(node, this.#order.size - 1);
    this.#held.push(node);
    this.#isHeld.add(node);
    return { node, left: [...this.#next(node)] };
  }

  #leave(node: number, above: Step | undefined): void {
    const low = this.#low.get(node) ?? 0;
    if (low === this.#order.get(node)) {
      const component = this.#held.splice(this.#held.lastIndexOf(node));
      for (const member of component) this.#isHeld.delete(member);
      this.found.push(component);
    }
    if (above !== undefined) this.#lower(above.node, low);
  }

  #lower(node: number, to: number): void {
    this.#low.set(node, Math.min(this.#low.get(node) ?? to, to));
  }
}

// Loops over those rows of an index that are equal in its first columns: a join by a key. They are as many as the value
// that is met most often, and not the whole table.
//
// Invariant. A cursor counts as such only when it is set nowhere but at the first of those rows, and left right behind
// the last.

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

/** Whether the op compares the same key in the same registers, for every row again. */
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
