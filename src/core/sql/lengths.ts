/**
 * How long the values in a program's registers may be.
 *
 * Invariants. From above, whatever way the program takes: a register is as long as the longest that any op writes to
 * it. The mean is over all rows of what a value is read from, as often as the loops are counted to go over them; where
 * a row may be picked by its key, again and again, it is the longest of them.
 */
import {
  type Argument,
  callOf,
  gathers,
  type Length,
  LONGEST,
  lengthOf,
  longerOf,
  NUMBER,
  sumOf,
} from "./functions.ts";
import { entriesOf, type Op, type Program, words } from "./program.ts";

export interface Sources {
  /** A row of a table or an index. */
  row(root: number): Length;
  /** The parameters of the statement. */
  readonly params: readonly (string | number | null)[];
  /** What a trigger reads of the row it was set off by. */
  readonly param: Length;
  /** Whether a table-valued function may give parts of parts, as json_tree does. */
  readonly nested: boolean;
  /** How often an op runs, where that is known already. */
  visits(at: number): number | null;
}

/** A record is known by its columns, where the program makes it itself. */
interface Value extends Length {
  readonly parts?: readonly Length[] | undefined;
}

const NOWHERE: ReadonlySet<number> = new Set();
const ROUNDS = 40;
/** A row by its key, whichever and as often as a loop asks. */
const PICKS = words("SeekRowid NotExists NotFound Found NoConflict Last");
/** The columns of json_each from here on are paths, and the whole document: the same in every row. */
const JSON_PATHS = 6;
/** SQLite gives a function no more. */
const MOST_ARGUMENTS = 127;

export class Lengths {
  readonly #program: Program;
  readonly #sources: Sources;
  readonly #registers = new Map<number, Length>();
  /** Whole rows in registers: what is made into another row is never one of them, unless it is nothing else. */
  readonly #rows = new Map<number, Value>();
  readonly #records = new Map<number, Value>();
  readonly #tables = new Set<number>();
  readonly #scanned = new Set<number>();
  /** The addresses that write to a register. */
  readonly #writes = new Map<number, Set<number>>();
  readonly #written = new Map<number, Length>();
  readonly #last = new Map<number, number | null>();
  readonly #entries: ReadonlySet<number>;
  readonly #origin = new Map<number, number>();

  constructor(program: Program, sources: Sources) {
    this.#program = program;
    this.#sources = sources;
    this.#entries = entriesOf(program);
    this.#note();
    for (let round = 0; round < ROUNDS && this.#pass(round); round += 1);
  }

  /** What an op at this address finds in a register. */
  of(register: number, at: number): Length {
    const last = this.#lastWrite(register, at);
    const known = last === null ? undefined : this.#written.get(keyOf(register, last));
    return known ?? this.#anyOf(register) ?? NUMBER;
  }

  #anyOf(register: number): Length | undefined {
    return this.#registers.get(register) ?? this.#rows.get(register);
  }

  /** The address of it, where there is only one way from there. */
  #lastWrite(register: number, at: number): number | null {
    const key = keyOf(register, at);
    const known = this.#last.get(key);
    if (known !== undefined) return known;
    const places = this.#writes.get(register) ?? NOWHERE;
    let back = at;
    while (!this.#entries.has(back) && !places.has(back - 1) && back > 0) back -= 1;
    const last = this.#entries.has(back) || back === 0 ? null : back - 1;
    this.#last.set(key, last);
    return last;
  }

  /** The length of what stands in a register that holds a whole row. */
  row(register: number, at: number): Value {
    return this.#rows.get(register) ?? this.of(register, at);
  }

  /** The length of registers that follow each other, together. */
  sum(first: number, count: number, at: number): Length {
    const all = Array.from({ length: Math.max(0, count) }, (_, index) => this.of(first + index, at));
    return sumOf(all);
  }

  longest(first: number): Length {
    return [...this.#registers]
      .filter(([register]) => register >= first)
      .reduce((most, [, length]) => longerOf(most, length), NUMBER);
  }

  record(cursor: number): Value {
    const record = this.#records.get(this.#origin.get(cursor) ?? cursor) ?? NUMBER;
    return this.#scanned.has(cursor) ? record : { ...record, mean: record.most };
  }

  /** A cursor is not known before the ops that fill it were gone through. */
  #isKnown(cursor: number): boolean {
    return this.#records.has(this.#origin.get(cursor) ?? cursor);
  }

  column(cursor: number, column: number): Length {
    const record = this.record(cursor);
    const part = record.parts?.[column] ?? record;
    return this.#scanned.has(cursor) ? part : lengthOf(part.most);
  }

  /** What the function at this address is asked, and what its result comes to. */
  call({ p2, p4 }: Op, at: number) {
    const [, name = "", count = "-1"] = /^(.*)\((-?\d+)\)$/.exec(p4.toLowerCase()) ?? [];
    return { name, ...callOf(name, this.#arguments(p2, Number(count), at)) };
  }

  /** What a register holds before it is counted down. */
  constant(register: number): number | null {
    const numbers = this.#opsOf([...(this.#writes.get(register) ?? NOWHERE)]).map((op) => this.#numberOf(op));
    if (numbers.length === 0 || numbers.includes(null)) return null;
    return Math.max(...numbers.map(Number));
  }

  #opsOf(places: readonly number[]): readonly Op[] {
    return places.flatMap((place) => this.#program[place] ?? []);
  }

  #numberOf({ opcode, p1, p4 }: Op): number | null {
    if (opcode === "Integer") return p1;
    if (opcode === "Int64") return Number(p4);
    const param = opcode === "Variable" ? this.#sources.params[p1 - 1] : null;
    return typeof param === "number" ? param : null;
  }

  /**
   * Of a function that takes any number, all that follow each other and are written before it: its own are, right
   * before it or, where they are constants, at the end of the program.
   */
  #arguments(first: number, count: number, at: number): readonly Argument[] {
    const args: Argument[] = [];
    for (let register = first; args.length < (count < 0 ? MOST_ARGUMENTS : count); register += 1) {
      if (count < 0 && !this.#isWrittenBefore(register, at)) break;
      args.push({
        ...this.of(register, at),
        text: this.#text(register, at),
        number: this.constant(register),
      });
    }
    return args;
  }

  #isWrittenBefore(register: number, at: number): boolean {
    const places = [...(this.#writes.get(register) ?? NOWHERE)];
    return places.some((place) => place < at || place >= (this.#program[0]?.p2 ?? 0));
  }

  #text(register: number, at: number): string | null {
    const last = this.#lastWrite(register, at);
    const places = last === null ? [...(this.#writes.get(register) ?? NOWHERE)] : [last];
    const [write, ...more] = this.#opsOf(places);
    if (write === undefined || more.length > 0) return null;
    if (write.opcode === "String8" || write.opcode === "String") return write.p4;
    const param = write.opcode === "Variable" ? this.#sources.params[write.p1 - 1] : null;
    return typeof param === "string" ? param : null;
  }

  #note(): void {
    for (const [at, op] of this.#program.entries()) {
      this.#noteCursor(op);
      for (const register of writtenBy(op)) {
        const writes = this.#writes.get(register);
        if (writes === undefined) this.#writes.set(register, new Set([at]));
        else writes.add(at);
      }
    }
    for (const { opcode, p1 } of this.#program) if (PICKS.has(opcode)) this.#scanned.delete(p1);
  }

  #noteCursor({ opcode, p1, p2, p3 }: Op): void {
    if (/^(OpenRead|OpenWrite|ReopenIdx)$/.test(opcode)) this.#tables.add(p1);
    if (/^(Next|Prev|SorterNext|VNext)$/.test(opcode)) this.#scanned.add(p1);
    if (opcode === "DeferredSeek") this.#scanned.add(p3);
    if (opcode === "OpenDup") this.#origin.set(p1, this.#origin.get(p2) ?? p2);
  }

  /** Whether anything became longer. What never stops becoming longer is as long as can be. */
  #pass(round: number): boolean {
    let grew = false;
    for (const [at, op] of this.#program.entries()) {
      const [cursor, record] = this.#recordMadeBy(op, at);
      grew = this.#longer(this.#records, cursor, record, round) || grew;
      grew = this.#longer(this.#rows, ROWS_IN[op.opcode]?.(op) ?? 0, this.#rowMadeBy(op, at), round) || grew;
      for (const register of writtenBy(op)) {
        const length = this.#lengthAt(op, at, register);
        if (length !== null) this.#written.set(keyOf(register, at), length);
        grew = this.#longer(this.#registers, register, length, round) || grew;
      }
    }
    return grew;
  }

  #longer(known: Map<number, Value>, key: number, value: Value | null, round: number): boolean {
    if (value === null) return false;
    const before = known.get(key);
    const after = before === undefined ? value : longerValue(before, value);
    if (before !== undefined && isAsLong(before, after)) return false;
    known.set(key, round > ROUNDS / 2 ? LONGEST : after);
    return true;
  }

  /** What a cursor's rows are made of. */
  #recordMadeBy({ opcode, p1, p2, p3 }: Op, at: number): [number, Value | null] {
    const origin = this.#origin.get(p1) ?? p1;
    switch (opcode) {
      case "OpenRead":
      case "OpenWrite":
      case "ReopenIdx":
        return [p1, this.#sources.row(p2)];
      case "OpenPseudo":
      case "Insert":
      case "IdxInsert":
      case "SorterInsert":
        // A statement does not read what it wrote to a table.
        if (this.#tables.has(p1)) return [p1, null];
        return [origin, this.#rows.get(p2) ?? this.#registers.get(p2) ?? null];
      case "VFilter": {
        const document = this.sum(p3 + 2, this.constant(p3 + 1) ?? 4, at);
        // All values of one call are together no longer than what it was given, and as many as that may hold.
        return [p1, { most: document.most, mean: this.#sources.nested ? document.most : 8 }];
      }
      default:
        return [p1, null];
    }
  }

  /** A row that an op makes, or takes from where it is kept. */
  #rowMadeBy({ opcode, p1, p2 }: Op, at: number): Value | null {
    if (opcode === "RowData" || opcode === "SorterData") {
      return this.#isKnown(p1) ? this.record(p1) : null;
    }
    if (opcode !== "MakeRecord") return null;
    const parts = Array.from({ length: p2 }, (_, index) => this.of(p1 + index, at));
    return { ...sumOf([...parts, lengthOf(8 * p2)]), parts };
  }

  #lengthAt(op: Op, at: number, register: number): Length | null {
    const { opcode, p1, p2, p4 } = op;
    switch (opcode) {
      case "String8":
      case "String":
        return lengthOf(3 * p4.length);
      case "Blob":
        return lengthOf(p1);
      case "Variable":
        return lengthOf(3 * String(this.#sources.params[p1 - 1] ?? "").length + 25);
      case "VColumn":
        return p2 < JSON_PATHS ? this.record(p1) : lengthOf(this.record(p1).most);
      case "Column":
        if (!this.#isKnown(p1)) return null;
        return sumOf([this.column(p1, p2), lengthOf(3 * p4.length)]);
      case "Param":
        return this.#sources.param;
      case "Copy":
      case "SCopy":
      case "Move":
        return this.#lengthOfCopy(p1 + register - p2, at);
      case "Concat":
        return sumOf([this.of(p1, at), this.of(p2, at)]);
      case "AggValue":
        return lengthOf(this.of(p1, at).most);
      case "AggStep":
      case "AggInverse":
        return this.#lengthOfAggregate(op, at);
      case "Function":
      case "PureFunc":
        return this.call(op, at).length;
      default:
        return null;
    }
  }

  #lengthOfCopy(register: number, at: number): Length | null {
    const last = this.#lastWrite(register, at);
    const known = last === null ? undefined : this.#written.get(keyOf(register, last));
    return known ?? this.#registers.get(register) ?? null;
  }

  #lengthOfAggregate({ p2, p3, p4, p5 }: Op, at: number): Length {
    const args = this.sum(p2, p5, at);
    if (!gathers(p4.toLowerCase())) return longerOf(args, NUMBER);
    const steps = this.#sources.visits(at);
    if (steps === null) return LONGEST;
    const each = /^json/i.test(p4) ? 6 : 1;
    const all = steps * (each * args.mean + 8) + each * args.most;
    const final = this.#program.findIndex(({ opcode, p1 }) => opcode === "AggFinal" && p1 === p3);
    const groups = final < 0 ? 1 : Math.max(1, this.#sources.visits(final) ?? 1);
    return lengthOf(all, all / groups);
  }
}

function keyOf(register: number, at: number): number {
  return at * 65_536 + register;
}

/** Where an op puts a whole row. */
const ROWS_IN: Readonly<Record<string, (op: Op) => number>> = {
  MakeRecord: ({ p3 }) => p3,
  RowData: ({ p2 }) => p2,
  SorterData: ({ p2 }) => p2,
};

function longerValue(one: Value, other: Value): Value {
  const longest = longerOf(one, other);
  if (one.parts === undefined || other.parts === undefined) return longest;
  const [long, short] = one.parts.length < other.parts.length ? [other.parts, one.parts] : [one.parts, other.parts];
  return { ...longest, parts: long.map((part, index) => longerOf(part, short[index] ?? part)) };
}

function isAsLong(one: Value, other: Value): boolean {
  if (one.most !== other.most || one.mean !== other.mean) return false;
  if (one.parts === undefined || other.parts === undefined) return one.parts === other.parts;
  return other.parts.every((part, index) => {
    const known = one.parts?.[index];
    return known?.most === part.most && known.mean === part.mean;
  });
}

function writtenBy({ opcode, p1, p2, p3 }: Op): readonly number[] {
  switch (opcode) {
    case "Copy":
      return Array.from({ length: p3 + 1 }, (_, index) => p2 + index);
    case "Move":
      return Array.from({ length: p3 }, (_, index) => p2 + index);
    case "AddImm":
    case "SoftNull":
      return [p1];
    default:
      if (WRITES_P2.has(opcode)) return [p2];
      return WRITES_P3.has(opcode) ? [p3] : [];
  }
}

const WRITES_P2 = words(`
  SCopy IntCopy Integer Int64 Real String8 String Blob Variable Param Rowid IdxRowid NewRowid Sequence Count Not BitNot IsTrue
  Null`);
const WRITES_P3 = words(`
  Column VColumn Concat Function PureFunc AggValue AggStep AggInverse RowSetRead Add Subtract Multiply Divide
  Remainder BitAnd BitOr ShiftLeft ShiftRight And Or`);
