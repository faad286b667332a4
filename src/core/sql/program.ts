/**
 * The program that SQLite makes of a statement, as `explain` lists it: the statement's own, and after it one for each trigger
 * and each action of a foreign key that it may set off.
 *
 * Invariant. An opcode that is not listed here is not understood, and a program that has one cannot be counted: it is refused.
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
      return returned(program, at, part);
    case "SeekScan":
      return [at + 1, op.p2, program[at + 1]?.p2 ?? at + 1];
    default:
      return JUMPS.has(op.opcode) && op.p2 > 0 ? [at + 1, op.p2] : [at + 1];
  }
}

/** Not as it was called: then the address stands in the register, or nothing does and it goes on. */
function returned(program: Program, at: number, part: Part): readonly number[] {
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

/** Addresses that are not only reached from the one before: what a register holds there is not known from what was written last. */
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
