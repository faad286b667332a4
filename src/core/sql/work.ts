/**
 * Estimates the cost of a SQL statement before it runs: inside an isolate, a statement that computes forever and
 * returns no row cannot be stopped.
 *
 * Invariants. The estimate is in steps of about ten nanoseconds, and mostly an upper bound: for every combination of
 * rows of the tables that a `select` names, the cost of its tokens, its subqueries and its texts. It ignores what an
 * index saves. Names count wherever they may be names of tables. Views and parts of a `with` count where they are
 * named; triggers and children of foreign keys where their table is written. The same statement on the same database
 * has the same cost. Nothing is written.
 */
import { SqlWorkError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import { namesIn, type Part, type Query, queryOf, type Target, targetOf } from "./blocks.ts";
import { Catalog, type Entry } from "./catalog.ts";
import type { SqlDatabase, SqlValue } from "./database.ts";
import { pickedIn } from "./keys.ts";
import { nameOf, type Statement } from "./statements.ts";
import { type Handling, handlingOf, JSON_ROWS, LONGEST, madeOf, stepsOf, type Text } from "./texts.ts";

/** To read a token, as often as it is expanded, and to plan a join. */
const READ = 100;
const PLAN = 1000;
/**
 * For each combination: to visit it; to group it; to find it among all; to sort it; to write a row, with as much again
 * for each index.
 */
const VISIT = 1;
const GROUP = 70;
const DISTINCT = 120;
const SORT = 200;
const WRITE = 400;
const CHILD = 4;
/** Bytes of a row that make no difference to its cost. */
const SHORT = 100;
const MOST_TRIGGERS = 200;
const NO_TEXT: Text = { most: 0, mean: 0 };

interface Cost {
  /** Combinations that are visited, and the maximal number of results. */
  readonly visits: number;
  readonly rows: number;
  /** Per combination, when it becomes part of another query. */
  readonly weight: number;
  readonly steps: number;
  /** Tokens and tables after expansion. */
  readonly size: number;
  readonly tables: number;
  readonly text: Text;
}

/** A statement, or the body of a trigger with the statement that fired it. */
interface Scope {
  readonly given: Text;
  /** Rows added while it runs, by table. */
  readonly added: ReadonlyMap<string, number>;
  readonly running: readonly string[];
  readonly known: Map<Query, Cost>;
  readonly views: Map<string, Query>;
  /** Parts of a `with` that are being counted: a part that names itself is recursive. */
  readonly open: Map<Query, Text>;
}

export function workOf(database: SqlDatabase, { tokens }: Statement, params: readonly SqlValue[]): number {
  const catalog = new Catalog(database);
  // These are only parsed, and run nothing.
  const isOnlyRead = /^(explain|(create|drop) (trigger|view))/i.test(tokens.slice(0, 2).join(" "));
  const steps = isOnlyRead ? READ * tokens.length : new Estimate(catalog, params).steps(numbered(tokens));
  return Number.isNaN(steps) ? Number.POSITIVE_INFINITY : catalog.steps + steps;
}

/** Each `?` with its number. */
function numbered(tokens: readonly string[]): readonly string[] {
  let last = 0;
  return tokens.map((token) => {
    if (!/^[?:@$]/.test(token)) return token;
    last = /^\?\d/.test(token) ? Math.max(last, Number(token.slice(1))) : last + 1;
    return token === "?" ? `?${last}` : token;
  });
}

class Estimate {
  readonly #catalog: Catalog;
  readonly #params: readonly SqlValue[];
  /** Tables that triggers add rows to, and tables that they read: added rows are not counted when they are read. */
  readonly #addedTo = new Set<string>();
  readonly #readIn = new Set<string>();
  #triggers = 0;
  #planned = 0;

  constructor(catalog: Catalog, params: readonly SqlValue[]) {
    this.#catalog = catalog;
    this.#params = params;
  }

  steps(tokens: readonly string[]): number {
    const { steps, size } = this.#query(queryOf(tokens), scopeOf(NO_TEXT, new Map(), []));
    for (const name of this.#addedTo) {
      if (this.#readIn.has(name))
        throw new SqlWorkError(`triggers add rows to ${name}, which they read: their cost cannot be estimated`);
    }
    return steps + READ * size + this.#planned;
  }

  #query(query: Query, scope: Scope): Cost {
    const known = scope.known.get(query);
    if (known !== undefined) return known;
    if (scope.open.size > LIMITS.sqlDepth) throw new SqlWorkError("views and with clauses are nested too deeply");
    let sum: Cost = { visits: 0, rows: 0, weight: 0, steps: 0, size: 0, tables: 0, text: NO_TEXT };
    for (const part of query.parts) {
      scope.open.set(query, sum.text);
      const cost = this.#part(part, query, scope);
      sum = {
        visits: sum.visits + cost.visits,
        rows: sum.rows + cost.rows,
        weight: Math.max(sum.weight, cost.weight),
        steps: sum.steps + cost.steps + (query.parts.length > 1 ? cost.rows * GROUP : 0),
        size: sum.size + cost.size,
        tables: Math.max(sum.tables, cost.tables),
        text: longerOf(sum.text, cost.text),
      };
    }
    scope.open.delete(query);
    scope.known.set(query, sum);
    return sum;
  }

  #part(part: Part, query: Query, scope: Scope): Cost {
    const { tokens } = part;
    const handling = handlingOf(tokens, (token) => String(this.#param(token) ?? "").length);
    const target = targetOf(tokens);
    const asked = part.asked.map((inner) => this.#query(inner, scope));
    const sources = new Sources(scope.given);
    for (const inner of part.joined) sources.add(this.#query(inner, scope));
    for (const { text } of asked) sources.handle({ most: text.most, mean: text.most });
    const picked = pickedIn(tokens, (table) => (query.definitions.has(table) ? null : this.#catalog.key(table)));
    const names = namesIn(tokens);
    for (const { name, at, isCall } of names) {
      sources.isPicked = picked.has(at);
      if (!isCall) this.#name(name, query, handling, scope, sources);
    }
    sources.isPicked = false;
    const isWhole = tokens.some((token) => /^(json|root|path|fullkey)$/.test(nameOf(token) ?? ""));
    for (const { name, at } of names) if (JSON_ROWS.test(name)) this.#json(tokens, at, isWhole, handling, sources);
    const tuples = tuplesIn(tokens);
    const [visits, rows] = [sources.visits * tuples, sources.rows * tuples];
    const made = gathered(madeOf(sources.text, handling), handling, rows, tokens);
    const { tables } = sources;
    const own = Math.max(0, tokens.filter((token, at) => isWork(token, tokens[at + 1])).length / 2 - tables);
    const long = Math.max(0, sources.text.mean - SHORT * tables) / 32;
    const each = asked.reduce((sum, { steps }) => sum + steps, VISIT + own * (1 + long));
    const repeats = repeatsIn(tokens);
    const weight = each + stepsOf(handling, made) + repeats * sources.weight;
    const size = asked.reduce((sum, inner) => sum + inner.size, tokens.length + repeats * sources.size);
    this.#planned += PLAN * tables ** 3 + (tables ** 2 * tokens.length * READ) / 5;
    const written = target === null ? 0 : this.#writes(target, rows, made, scope);
    const steps =
      sources.steps + visits * weight + rows * (sortsIn(tokens, sources.text) + framesIn(tokens) * rows) + written;
    return { visits, rows, weight, steps, size, tables, text: made };
  }

  /** Adds everything that a name may stand for. */
  #name(name: string, query: Query, handling: Handling, scope: Scope, sources: Sources): void {
    const parts = query.definitions.get(name) ?? [];
    for (const part of parts) {
      const before = scope.open.get(part);
      if (before === undefined) sources.add(this.#query(part, scope));
      else if (parts.length > 1)
        throw new SqlWorkError(`${name} is the name of more than one view or with clause: rename one`);
      else sources.addRows(this.#limitOf(part), changes(handling) ? LONGEST : before);
    }
    const view = this.#catalog.view(name);
    if (view !== undefined) this.#view(view, scope, sources);
    const size = this.#catalog.size(name);
    if (size === null) return;
    const rows = size.rows + (scope.added.get(name) ?? 0);
    if (scope.running.length > 0) this.#readIn.add(name);
    const added = scope.added.has(name) ? scope.given : NO_TEXT;
    sources.addRows(rows, longerOf({ most: size.most, mean: size.bytes / Math.max(1, size.rows) }, added));
  }

  #view(view: Entry, scope: Scope, sources: Sources): void {
    const [{ name }, tokens] = [view, this.#catalog.tokens(view)];
    const query = scope.views.get(name) ?? queryOf(tokens.slice(tokens.findIndex((token) => /^as$/i.test(token)) + 1));
    scope.views.set(name, query);
    // A view that names itself is an error of SQLite.
    if (!scope.open.has(query)) sources.add(this.#query(query, scope));
  }

  /** Maximal rows of a recursive part: its limit and offset, which must be numbers. */
  #limitOf({ parts }: Query): number {
    const tokens = parts.at(-1)?.tokens ?? [];
    const at = tokens.findLastIndex((token) => /^limit$/i.test(token));
    const [limit = "", between = "", offset = "", ...more] = at < 0 ? [] : tokens.slice(at + 1);
    const numbers = (between === "" ? [limit] : [limit, offset]).map((token) => this.#number(token));
    const isPlain = /^(|,|offset)$/i.test(between) && more.length === 0 && !numbers.includes(null);
    if (isPlain) return numbers.reduce<number>((sum, number) => sum + Number(number), 0);
    throw new SqlWorkError(
      "the statement may never end: add a limit (a number or a parameter) inside the recursive `with`, or use json_each",
    );
  }

  #number(token: string): number | null {
    const value = /^\d+$/.test(token) ? Number(token) : this.#param(token);
    return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
  }

  #param(token: string): SqlValue {
    return /^\?\d+$/.test(token) ? (this.#params[Number(token.slice(1)) - 1] ?? null) : null;
  }

  /** Every row of json_each takes at least two characters. The text of a parameter is divided among the rows. */
  #json(tokens: readonly string[], at: number, isWhole: boolean, handling: Handling, sources: Sources): void {
    const [bracket, first = "", end = ""] = tokens.slice(at + 1, at + 4);
    const param = bracket === "(" && /^[,)]$/.test(end) ? this.#param(first) : null;
    const given = String(param ?? "").length;
    const text = param === null ? madeOf(sources.text, handling) : { most: given, mean: given };
    const nested = isWhole || /tree$/i.test(nameOf(tokens[at] ?? "") ?? "");
    sources.addRows(text.mean / 2 + 1, nested ? text : { most: text.most, mean: 8 });
  }

  /** The triggers, checks, indexes and foreign keys of a table, for so many written rows. */
  #writes(target: Target, rows: number, made: Text, scope: Scope): number {
    const { name, events } = target;
    const catalog = this.#catalog;
    if (scope.running.length > 0 && events.test("insert")) this.#addedTo.add(name);
    const defined = [...catalog.of(name, "table"), ...catalog.of(name, "index")];
    const each = defined.map((entry) => {
      const tokens = catalog.tokens(entry);
      const handling = handlingOf(tokens, () => 0);
      const keys = tokens.filter((token) => /^(index|unique|primary)$/i.test(token)).length;
      return WRITE * (1 + keys) + tokens.length / 4 + made.mean + stepsOf(handling, madeOf(made, handling));
    });
    const own = each.reduce((sum, steps) => sum + steps, 0);
    const added = new Map(events.test("insert") ? [...scope.added, [name, rows]] : scope.added);
    const fired = catalog.of(name, "trigger").reduce((sum, trigger) => {
      const tokens = catalog.tokens(trigger);
      const on = tokens.findIndex((token) => /^on$/i.test(token));
      const isSetOff = tokens.slice(0, on).some((token) => events.test(token));
      if (!isSetOff || scope.running.includes(trigger.name)) return sum;
      return sum + this.#trigger(tokens.slice(on + 2), scopeOf(made, added, [...scope.running, trigger.name]));
    }, 0);
    return (
      rows * (own + fired) + (events.test("delete") || events.test("update") ? this.#keys(target, rows, scope) : 0)
    );
  }

  #trigger(tokens: readonly string[], scope: Scope): number {
    this.#triggers += 1;
    if (this.#triggers > MOST_TRIGGERS)
      throw new SqlWorkError("the statement fires too many triggers to estimate its cost");
    const query = queryOf(tokens);
    // A trigger may make the same text longer each time.
    const grows = changes(handlingOf(tokens, () => 0)) && tokens.some((token) => /^(select|update)$/i.test(token));
    const { steps, size } = this.#query(query, grows ? { ...scope, given: LONGEST } : scope);
    this.#planned += READ * size;
    return steps;
  }

  /** For each row, all rows of the children are searched; each of them may be changed or deleted once. */
  #keys({ name, changed }: Target, rows: number, scope: Scope): number {
    const key = this.#catalog.key(name);
    return this.#catalog.children(name).reduce((sum, child) => {
      const tokens = this.#catalog.tokens(child);
      const named = tokens.slice(tokens.findIndex((token) => /^references$/i.test(token))).map(nameOf);
      const keys = [key, ...named];
      if (key !== null && changed !== undefined && !keys.some((column) => changed.has(column))) return sum;
      const children = this.#catalog.size(child.name)?.rows ?? 0;
      const acts = tokens.some((token, at) => /^on$/i.test(token) && /^(cascade|set)$/i.test(tokens[at + 2] ?? ""));
      const looked = sum + rows * (1 + children) * CHILD;
      if (!acts || scope.running.includes(child.name)) return looked;
      const inner = { ...scope, running: [...scope.running, child.name] };
      return looked + this.#writes({ name: child.name, events: /^(update|delete)$/i }, children, NO_TEXT, inner);
    }, 0);
  }
}

function scopeOf(given: Text, added: ReadonlyMap<string, number>, running: readonly string[]): Scope {
  return { given, added, running, known: new Map(), views: new Map(), open: new Map() };
}

/** The sources that a part joins: every combination of their rows counts. */
class Sources {
  visits = 1;
  rows = 1;
  /** Whether an added source has at most one row for each combination of the others. */
  isPicked = false;
  weight = 0;
  steps = 0;
  size = 0;
  tables = 0;
  text: Text;

  constructor(given: Text) {
    this.text = given;
  }

  add({ visits, rows, weight, steps, size, tables, text }: Cost): void {
    this.addRows(rows, text, visits);
    this.weight += weight;
    this.steps += steps;
    this.size += size;
    this.tables += tables - 1;
  }

  addRows(rows: number, text: Text, visits = rows): void {
    this.visits *= visits + 1;
    if (!this.isPicked) this.rows *= rows + 1;
    this.tables += 1;
    this.handle(text);
  }

  handle({ most, mean }: Text): void {
    const longest = LONGEST.most;
    this.text = { most: Math.min(longest, this.text.most + most), mean: Math.min(longest, this.text.mean + mean) };
  }
}

function longerOf(one: Text, other: Text): Text {
  return { most: Math.max(one.most, other.most), mean: Math.max(one.mean, other.mean) };
}

/** The text that an aggregate makes of many rows; a window function makes one for each row. */
function gathered(made: Text, { gathers }: Handling, rows: number, tokens: readonly string[]): Text {
  if (!gathers) return made;
  const most = Math.min(LONGEST.most, rows * made.mean + made.most);
  return { most, mean: tokens.some((token) => /^over$/i.test(token)) ? most : made.mean };
}

/** The number of tuples in `values (1), (2)`. */
function tuplesIn(tokens: readonly string[]): number {
  if (!tokens.some((token) => /^values$/i.test(token))) return 1;
  return 1 + tokens.filter((token, at) => token === "," && tokens[at - 1] === ")" && tokens[at + 1] === "(").length;
}

/** Sorts per remaining row. */
function sortsIn(tokens: readonly string[], { mean }: Text): number {
  const count = (words: RegExp) => tokens.filter((token) => words.test(token)).length;
  const [sorts, groups] = [count(/^(order|over|index|alter|reindex|analyze|create)$/i), count(/^(group|distinct)$/i)];
  return sorts * (SORT + mean / 4) + groups * (DISTINCT + mean / 3);
}

/** Windows that scan their rows again for each row. */
function framesIn(tokens: readonly string[]): number {
  return tokens.filter((token) => /^(range|groups|exclude)$/i.test(token)).length * GROUP;
}

const WORDS =
  /^(and|or|not|null|is|as|in|on|when|then|else|case|end|from|select|where|join|left|inner|outer|like|between|by|desc|asc)$/;

/** Names, values and operators: roughly the tokens for which a program has an op. */
function isWork(token: string, next: string | undefined): boolean {
  return !/^[.,();]$/.test(token) && next !== "." && !WORDS.test(token.toLowerCase());
}

/** How often one column of a subquery may be named: its expression is expanded as often. */
function repeatsIn(tokens: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const [at, token] of tokens.entries()) {
    const name = token === "*" ? token : nameOf(token);
    if (name === null || token.startsWith("'") || WORDS.test(name) || tokens[at + 1] === ".") continue;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return Math.max(1, ...counts.values());
}

export function about(count: number): string {
  return count < 10_000 ? String(Math.ceil(count)) : count.toPrecision(2);
}

function changes({ factor, isAny, gathers }: Handling): boolean {
  return factor > 1 || isAny || gathers;
}
