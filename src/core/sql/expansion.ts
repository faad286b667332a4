/**
 * What a statement grows to while SQLite reads it. Views and parts of a `with` are written out wherever they are named,
 * and the columns of a subquery wherever those are; thirty lines that each name the one before twice are a thousand
 * million.
 *
 * Invariants. Counted from above, by tokens, before SQLite sees the statement: asking it for its plan would be too
 * late. A part that names itself counts once: SQLite writes such a part out once, or finds an error.
 */
import { SqlWorkError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import { words } from "./program.ts";
import { nameOf, statementsOf } from "./statements.ts";

export interface Stored {
  readonly type: "view" | "trigger";
  readonly name: string;
  readonly sql: string;
}

/** Part of a statement: its own tokens, and the subqueries in it. */
interface Block {
  readonly tokens: string[];
  readonly inner: Block[];
}

type Definitions = Map<string, Block[]>;

/** Words that SQLite takes for a name nowhere, unless they are quoted. */
const RESERVED = words(`
  add all alter and as autoincrement between case check collate constraint create default delete distinct drop else escape
  except exists foreign from group having in index insert intersect into is isnull join limit not notnull null on or order
  primary references returning select set table then to union unique update using values when where`);

export function requireModest(tokens: readonly string[], stored: readonly Stored[]): void {
  if (stored.length === 0 && !tokens.some((token) => /^select$/i.test(token))) return;
  const definitions: Definitions = new Map();
  const blocks = [blockOf(tokens, definitions)];
  for (const { type, name, sql } of stored) {
    const block = blockOf(
      statementsOf(sql).flatMap((statement) => statement.tokens),
      definitions,
    );
    if (type === "view") define(definitions, name.toLowerCase(), block);
    else blocks.push(block);
  }
  const growth = new Growth(definitions);
  const total = (count: (block: Block) => number) => blocks.reduce((sum, block) => sum + count(block), 0);
  const references = total((block) => growth.references(block));
  if (references > LIMITS.sqlReferences) {
    throw new SqlWorkError(
      `views and parts of a with would be written out ${about(references)} times, and ${LIMITS.sqlReferences} are allowed: name them fewer times, or store what they give in a table`,
    );
  }
  const names = total((block) => growth.names(block));
  if (names <= LIMITS.sqlNames) return;
  throw new SqlWorkError(
    `the statement would be written out to ${about(names)} names, and ${LIMITS.sqlNames} are allowed: nest fewer subqueries, or store what they give in a table`,
  );
}

export function about(count: number): string {
  return count < 10_000 ? String(Math.ceil(count)) : count.toPrecision(2);
}

function define(definitions: Definitions, name: string, block: Block): void {
  definitions.set(name, [...(definitions.get(name) ?? []), block]);
}

/** A subquery in brackets is a block of its own; one that is named by a `with` counts where it is named. */
function blockOf(tokens: readonly string[], definitions: Definitions): Block {
  const root: Block = { tokens: [], inner: [] };
  const open: Block[] = [root];
  for (const [at, token] of tokens.entries()) {
    const block = open.at(-1) ?? root;
    if (token === "(") open.push(openBlock(tokens, at, block, definitions));
    else if (token === ")" && open.length > 1) open.pop();
    else if (isName(token, tokens[at + 1])) block.tokens.push(token);
  }
  return root;
}

/** What stands in a bracket: a block of its own, or more of the one around it. */
function openBlock(tokens: readonly string[], at: number, around: Block, definitions: Definitions): Block {
  if (!/^(select|with|values)$/i.test(tokens[at + 1] ?? "")) return around;
  const block: Block = { tokens: [], inner: [] };
  const name = definedAt(tokens, at);
  if (name === null) around.inner.push(block);
  else define(definitions, name, block);
  return block;
}

/** The name that a `with` gives to what begins here: `name (columns) as not materialized (`. */
function definedAt(tokens: readonly string[], at: number): string | null {
  let back = at - 1;
  const before = () => (tokens[back] ?? "").toLowerCase();
  if (before() === "materialized") back -= 1;
  if (before() === "not") back -= 1;
  if (before() !== "as") return null;
  back -= 1;
  if (before() === ")") while (back > 0 && tokens[back] !== "(") back -= 1;
  if (before() === "(") back -= 1;
  return nameOf(tokens[back] ?? "");
}

/** Neither a word of the language, nor what a name is looked up in, nor a function. */
function isName(token: string, next: string | undefined): boolean {
  if (token === "*") return true;
  const name = nameOf(token);
  return name !== null && next !== "." && next !== "(" && !RESERVED.has(token.toLowerCase());
}

class Growth {
  readonly #definitions: Definitions;
  readonly #known = new Map<string, number>();
  readonly #open = new Set<string>();

  constructor(definitions: Definitions) {
    this.#definitions = definitions;
  }

  /** Times that a definition is written out for this block. */
  references(block: Block): number {
    const own = this.#named(block).reduce((sum, name) => sum + 1 + this.#most("references", name), 0);
    return block.inner.reduce((sum, inner) => sum + this.references(inner), own);
  }

  /** Every name of a subquery may stand for all of it, as often as a name is repeated outside. */
  names(block: Block): number {
    const repeated = new Map<string, number>();
    for (const token of block.tokens) {
      if (token.startsWith("'")) continue;
      const name = nameOf(token) ?? token;
      repeated.set(name, (repeated.get(name) ?? 0) + 1);
    }
    const most = Math.max(1, ...repeated.values());
    const named = this.#named(block).reduce((sum, name) => sum + this.#most("names", name), 0);
    const inner = block.inner.reduce((sum, part) => sum + this.names(part), 0);
    return most * (block.tokens.length + named + inner);
  }

  #named(block: Block): readonly string[] {
    return block.tokens.flatMap((token) => {
      const name = nameOf(token);
      return name !== null && this.#definitions.has(name) ? [name] : [];
    });
  }

  #most(what: "references" | "names", name: string): number {
    const key = `${what} ${name}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#open.has(key)) return this.#within(name);
    this.#open.add(key);
    const counts = (this.#definitions.get(name) ?? []).map((block) => this[what](block));
    const most = Math.max(0, ...counts);
    this.#open.delete(key);
    this.#known.set(key, most);
    return most;
  }

  /** A part that names itself. One that is hidden behind another of its name would not be counted. */
  #within(name: string): number {
    if ((this.#definitions.get(name) ?? []).length < 2) return 0;
    throw new SqlWorkError(`${name} is the name of more than one view or part of a with: rename one`);
  }
}
