/**
 * How often each step of a program runs at most.
 *
 * Invariants. Every way round a loop goes over an op that uses something up: a row of a cursor, a row of a coroutine, a
 * limit. Such an op counts for a loop only when nothing in that loop gives it more; without its edge the loop falls
 * apart into smaller ones, which are counted alike. A loop that has no such op is one that may never end, and is
 * refused: a recursive query without a limit is found this way, and nothing needs to know what one looks like.
 */

import {
  calledBy,
  componentsOf,
  equalityOf,
  keysOf,
  nextOf,
  type Op,
  type Part,
  type Program,
  reachedIn,
  UncountableError,
  words,
} from "./program.ts";

/** What a program's loops go over. */
export interface Extents {
  /** Rows of a table or an index of the database, by its root page. */
  rows(root: number): number;
  /** The most rows that an index has of one value of its first columns. */
  equalRows(root: number, columns: number): number;
  /** The same for columns of a table of which the statement makes an index for itself. */
  equalColumns(root: number, columns: readonly number[]): number;
  /** Rows a table-valued function may give for the call at this address. */
  functionRows(filter: number): number;
  /** The number that a register holds before it is counted down, or null where that is not known. */
  constant(register: number): number | null;
}

/** Addresses looked at for one program: what needs more is refused. */
const MOST_LOOKED_AT = 1_000_000;

const POSITIONS = words(`
  Rewind Last Sort SorterSort SeekLT SeekLE SeekGE SeekGT SeekRowid NotExists NotFound Found NoConflict SeekEnd VFilter
  OpenRead OpenWrite ReopenIdx OpenDup OpenEphemeral OpenAutoindex OpenPseudo SorterOpen VOpen ResetSorter`);
const EMPTIES = words("OpenEphemeral OpenAutoindex SorterOpen ResetSorter");
const FILLS = words("Insert IdxInsert SorterInsert RowSetAdd RowSetTest");

interface Advance {
  readonly at: number;
  /** The edge that leads on when there was something left. */
  readonly to: number;
  readonly most: number;
}

export class Visits {
  readonly #program: Program;
  readonly #extents: Extents;
  readonly #counts: number[];
  /** Root pages, by the cursors they are open in. */
  readonly #roots = new Map<number, number[]>();
  /** Cursors of stores the statement makes for itself, by the store. A cursor may be a second one of such a store. */
  readonly #store = new Map<number, number>();
  readonly #filled = new Map<string, number>();
  /** How often a store is emptied, while one filling of it is counted. */
  readonly #fillings = new Map<string, number>();
  readonly #yields = new Map<number, number>();
  readonly #doneOnce = new Set<number>();
  readonly #reached = new Map<string, readonly number[]>();
  readonly #coroutines = new Map<number, Part>();
  #looked = 0;

  constructor(program: Program, extents: Extents) {
    this.#program = program;
    this.#extents = extents;
    this.#counts = program.map(() => 0);
    for (const op of program) this.#noteCursor(op);
    this.#count({ entry: 0 }, 1);
  }

  of(at: number): number {
    return this.#counts[at] ?? 0;
  }

  rootsOf(cursor: number): readonly number[] {
    return this.#roots.get(cursor) ?? [];
  }

  #noteCursor(op: Op): void {
    const { opcode, p1, p2 } = op;
    const part = opcode === "InitCoroutine" ? calledBy(op) : null;
    if (part !== null) this.#coroutines.set(p1, part);
    if (opcode === "OpenDup") this.#store.set(p1, this.#store.get(p2) ?? p2);
    if (/^(OpenRead|OpenWrite|ReopenIdx)$/.test(opcode)) {
      this.#roots.set(p1, [...(this.#roots.get(p1) ?? []), p2]);
    }
  }

  #count(part: Part, times: number): void {
    this.#countAll(this.#reachedIn(part), (at) => nextOf(this.#program, at, part), part, times);
  }

  #countAll(nodes: readonly number[], next: (at: number) => readonly number[], part: Part, times: number): void {
    this.#look(nodes.length);
    const inside = new Set(nodes);
    const within = (at: number) => next(at).filter((to) => inside.has(to));
    for (const component of componentsOf(nodes, within)) {
      const [first = 0] = component;
      if (component.length === 1 && !within(first).includes(first)) this.#visit(first, times);
      else this.#loop(component, within, part, times);
    }
  }

  #loop(loop: readonly number[], next: (at: number) => readonly number[], part: Part, times: number): void {
    const ops = this.#opsOf(loop, part);
    const advances = loop.flatMap((at) => {
      const advance = this.#advance(at, ops, part) ?? this.#flag(at, loop, next);
      return advance !== null && next(at).includes(advance.to) ? [advance] : [];
    });
    if (advances.length === 0) {
      throw new UncountableError(
        "the statement may never end: give a recursive query a limit inside its `with`, or take json_each",
      );
    }
    const taken = this.#enough(loop, next, advances);
    const inner = without(next, taken);
    const rounds = taken.reduce((sum, { most }) => sum + most, 1) * times;
    const emptied = [...new Set(ops.flatMap((op) => this.#emptiedBy(op)))];
    const before = emptied.map((store) => ({
      store,
      filled: this.#filled.get(store) ?? 0,
      fillings: this.#fillings.get(store) ?? 1,
    }));
    for (const store of emptied) {
      this.#filled.set(store, 0);
      this.#fillings.set(store, rounds);
    }
    this.#countAll(loop, inner, part, rounds);
    for (const { store, filled, fillings } of before) {
      this.#filled.set(store, (this.#filled.get(store) ?? 0) + filled);
      this.#fillings.set(store, fillings);
    }
  }

  /** The least of them, where every way round goes over it: a limit, say. Otherwise all. */
  #enough(
    loop: readonly number[],
    next: (at: number) => readonly number[],
    advances: readonly Advance[],
  ): readonly Advance[] {
    const [least] = advances.toSorted((a, b) => a.most - b.most);
    if (least === undefined || advances.length === 1) return advances;
    const inner = without(next, [least]);
    const left = componentsOf(loop, inner).some(
      ([first = 0, ...more]) => more.length > 0 || inner(first).includes(first),
    );
    return left ? advances : [least];
  }

  /** With those of the parts that are called, which may move a cursor too. */
  #opsOf(loop: readonly number[], part: Part): readonly Op[] {
    const addresses = new Set(loop);
    const entered = new Set<number>();
    for (const at of addresses) {
      const op = this.#program[at];
      const called = op === undefined ? null : this.#callee(op, part);
      if (called === null || entered.has(called.entry)) continue;
      entered.add(called.entry);
      for (const to of this.#reachedIn(called)) addresses.add(to);
    }
    this.#look(addresses.size);
    return [...addresses].flatMap((at) => this.#program[at] ?? []);
  }

  #reachedIn(part: Part): readonly number[] {
    const key = `${part.entry} ${part.register} ${part.until}`;
    const known = this.#reached.get(key);
    if (known !== undefined) return known;
    const reached = reachedIn(this.#program, part);
    this.#look(reached.length);
    this.#reached.set(key, reached);
    return reached;
  }

  #look(addresses: number): void {
    this.#looked += addresses;
    if (this.#looked <= MOST_LOOKED_AT) return;
    throw new UncountableError("the statement is too long to be counted: make it shorter");
  }

  #callee(op: Op, part: Part): Part | null {
    if (op.opcode !== "Yield") return calledBy(op);
    if (op.p1 === part.register) return null;
    return this.#coroutines.get(op.p1) ?? null;
  }

  #advance(at: number, loop: readonly Op[], part: Part): Advance | null {
    const op = this.#program[at];
    if (op === undefined) return null;
    const [on, jump] = [at + 1, op.p2];
    switch (op.opcode) {
      case "Next":
      case "Prev":
      case "SorterNext":
      case "VNext":
        if (jump === on || this.#moves(op.p1, loop)) return null;
        return { at, to: jump, most: this.#rowsOf(op.p1) };
      case "RowSetRead":
        if (fills(`set ${op.p1}`, loop, this.#storeOf)) return null;
        return { at, to: on, most: this.#filledOf(`set ${op.p1}`) };
      case "Yield":
        if (op.p1 === part.register || begins(op.p1, loop)) return null;
        return { at, to: on, most: this.#yields.get(op.p1) ?? 0 };
      default:
        return this.#countdown(op, at, loop);
    }
  }

  /** A limit, where what it is counted down from is known. */
  #countdown({ opcode, p1, p2, p3 }: Op, at: number, loop: readonly Op[]): Advance | null {
    const down = opcode === "DecrJumpZero" || (opcode === "IfPos" && p3 > 0);
    if (!down || loop.some((op) => sets(op, p1))) return null;
    const most = this.#extents.constant(p1);
    if (most === null || most < 1) return null;
    return { at, to: opcode === "IfPos" ? p2 : at + 1, most };
  }

  /**
   * `if r > 0`, where every way back to it sets r: it goes on behind itself once (the row of nulls of an outer join).
   */
  #flag(at: number, loop: readonly number[], next: (at: number) => readonly number[]): Advance | null {
    const op = this.#program[at];
    if (op?.opcode !== "IfPos" || op.p3 !== 0) return null;
    const setters = loop.filter((other) => {
      const setter = this.#program[other];
      return setter !== undefined && sets(setter, op.p1);
    });
    const positive = setters.every((other) => {
      const setter = this.#program[other];
      return setter?.opcode === "Integer" && setter.p1 > 0;
    });
    if (!positive || leads(at + 1, at, new Set([...setters]), next)) return null;
    return { at, to: at + 1, most: 1 };
  }

  #moves(cursor: number, loop: readonly Op[]): boolean {
    const store = this.#storeOf(cursor);
    const moved = loop.some(
      ({ opcode, p1, p3 }) => (POSITIONS.has(opcode) && p1 === cursor) || (opcode === "DeferredSeek" && p3 === cursor),
    );
    return moved || (!this.#roots.has(cursor) && fills(`store ${store}`, loop, this.#storeOf));
  }

  #rowsOf(cursor: number): number {
    this.#look(this.#program.length);
    const roots = this.#roots.get(cursor);
    const columns = equalityOf(this.#program, cursor);
    if (roots !== undefined) {
      const rows = roots.map((root) =>
        columns === null ? this.#extents.rows(root) : this.#extents.equalRows(root, columns),
      );
      return Math.max(...rows);
    }
    const filters = this.#program.flatMap(({ opcode, p1 }, at) =>
      opcode === "VFilter" && p1 === cursor ? [this.#extents.functionRows(at)] : [],
    );
    if (filters.length > 0) return Math.max(...filters);
    const filled = this.#filledOf(`store ${this.#storeOf(cursor)}`);
    return columns === null ? filled : Math.min(filled, this.#equalFilled(cursor, columns));
  }

  #equalFilled(cursor: number, columns: number): number {
    const keys = keysOf(this.#program, cursor, columns);
    const roots = keys === null ? [] : this.rootsOf(keys.cursor);
    if (keys === null || roots.length === 0) return Number.POSITIVE_INFINITY;
    return Math.max(...roots.map((root) => this.#extents.equalColumns(root, keys.columns)));
  }

  readonly #storeOf = (cursor: number): number => this.#store.get(cursor) ?? cursor;

  #filledOf(store: string): number {
    return Math.ceil((this.#filled.get(store) ?? 0) / (this.#fillings.get(store) ?? 1));
  }

  #emptiedBy({ opcode, p1, p2, p3 }: Op): string[] {
    if (EMPTIES.has(opcode)) return [`store ${this.#storeOf(p1)}`];
    if (opcode !== "Null") return [];
    const registers = Array.from({ length: Math.max(1, p3 - p2 + 1) }, (_, index) => p2 + index);
    return registers.map((register) => `set ${register}`);
  }

  #visit(at: number, times: number): void {
    const op = this.#program[at];
    if (op === undefined) return;
    this.#counts[at] = this.of(at) + times;
    if (FILLS.has(op.opcode)) {
      const store = filledBy(op, this.#storeOf);
      this.#filled.set(store, (this.#filled.get(store) ?? 0) + times);
    }
    if (op.opcode === "Once" && !this.#doneOnce.has(at)) {
      this.#doneOnce.add(at);
      this.#count({ entry: at + 1, until: op.p2 }, 1);
    }
    const called = calledBy(op);
    if (called === null || this.#isBegunLater(op)) return;
    const before = this.#countYields(called);
    this.#count(called, times);
    const yielded = Math.ceil((this.#countYields(called) - before) / times);
    if (op.opcode === "InitCoroutine") this.#yields.set(op.p1, yielded);
  }

  /** A coroutine that is only written down here: it begins where it is asked for its rows. */
  #isBegunLater({ opcode, p1, p2 }: Op): boolean {
    if (opcode !== "InitCoroutine" || p2 === 0) return false;
    return this.#program.some((op) => op.opcode === "InitCoroutine" && op.p1 === p1 && op.p2 === 0);
  }

  #countYields(part: Part): number {
    const { register } = part;
    return this.#reachedIn(part).reduce((sum, at) => {
      const op = this.#program[at];
      return op?.opcode === "Yield" && op.p1 === register ? sum + this.of(at) : sum;
    }, 0);
  }
}

function filledBy({ opcode, p1 }: Op, storeOf: (cursor: number) => number): string {
  return opcode.startsWith("RowSet") ? `set ${p1}` : `store ${storeOf(p1)}`;
}

function fills(store: string, loop: readonly Op[], storeOf: (cursor: number) => number): boolean {
  return loop.some((op) => FILLS.has(op.opcode) && filledBy(op, storeOf) === store);
}

function begins(register: number, loop: readonly Op[]): boolean {
  return loop.some(({ opcode, p1 }) => opcode === "InitCoroutine" && p1 === register);
}

function without(
  next: (at: number) => readonly number[],
  advances: readonly Advance[],
): (at: number) => readonly number[] {
  const cut = new Map(advances.map(({ at, to }) => [at, to]));
  return (at) => (cut.has(at) ? next(at).filter((to) => to !== cut.get(at)) : next(at));
}

/** Whether there is a way that avoids some addresses. */
function leads(
  from: number,
  to: number,
  avoided: ReadonlySet<number>,
  next: (at: number) => readonly number[],
): boolean {
  const seen = new Set<number>();
  const open = [from];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (at === to) return true;
    if (seen.has(at) || avoided.has(at)) continue;
    seen.add(at);
    open.push(...next(at));
  }
  return false;
}

/** Whether an op gives a counter a new number. */
function sets({ opcode, p1, p2, p3 }: Op, register: number): boolean {
  switch (opcode) {
    case "Integer":
    case "Int64":
    case "Variable":
    case "SCopy":
    case "MemMax":
      return p2 === register;
    case "AddImm":
      return p1 === register;
    case "Copy":
    case "Move":
      return register >= p2 && register <= p2 + p3;
    default:
      return p3 === register && !/^(Next|Prev|VNext|IfPos|DecrJumpZero|Program)$/.test(opcode);
  }
}
