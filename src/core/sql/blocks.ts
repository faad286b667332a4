/**
 * The tables that a statement names, query by query: brackets that begin with `select`, `with` or `values` contain a
 * query of their own, and a union consists of parts.
 */
import { EnvError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import { nameOf } from "./statements.ts";

/** One `select`, or one statement that writes. */
export interface Part {
  /** Its own tokens, without those of subqueries. */
  readonly tokens: string[];
  /** Subqueries that it joins, and those whose value it uses. */
  readonly joined: Query[];
  readonly asked: Query[];
}

export interface Query {
  readonly parts: Part[];
  /** The definitions of every `with` in the statement. */
  readonly definitions: Map<string, Query[]>;
}

export function queryOf(tokens: readonly string[]): Query {
  const root = newQuery(new Map());
  const open = [new Open(root)];
  for (const [at, token] of tokens.entries()) {
    const top = open.at(-1) ?? new Open(root);
    top.inFrom = staysInFrom(token, top.inFrom);
    if (token === "(" && /^(select|with|values)$/i.test(tokens[at + 1] ?? "")) {
      open.push(new Open(top.begin(tokens, at)));
    } else if (token !== ")" || top.brackets > 0) {
      top.read(token);
    } else if (open.length > 1) {
      open.pop();
    }
    if (open.length > LIMITS.sqlDepth) throw new EnvError(`subqueries are nested over ${LIMITS.sqlDepth} deep`);
  }
  return root;
}

/** A query whose end has not been reached. */
class Open {
  brackets = 0;
  inFrom = false;
  readonly #query: Query;
  #part: Part = { tokens: [], joined: [], asked: [] };

  constructor(query: Query) {
    this.#query = query;
    query.parts.push(this.#part);
  }

  read(token: string): void {
    if (token === ";" || (this.brackets === 0 && /^(union|intersect|except)$/i.test(token))) {
      this.#part = { tokens: [], joined: [], asked: [] };
      this.#query.parts.push(this.#part);
      return;
    }
    if (token === "(") this.brackets += 1;
    if (token === ")") this.brackets -= 1;
    this.#part.tokens.push(token);
  }

  /** Begins the query after this bracket. */
  begin(tokens: readonly string[], at: number): Query {
    const { definitions } = this.#query;
    const query = newQuery(definitions);
    const begin = definitionAt(tokens, at);
    const name = nameOf(tokens[begin] ?? "");
    if (begin < at && name !== null) {
      definitions.set(name, [...(definitions.get(name) ?? []), query]);
      this.#part.tokens.length -= Math.min(this.#part.tokens.length, at - begin);
    } else {
      const isJoined = this.inFrom && /^(from|join|,|\()$/i.test(tokens[at - 1] ?? "");
      (isJoined ? this.#part.joined : this.#part.asked).push(query);
    }
    return query;
  }
}

function newQuery(definitions: Query["definitions"]): Query {
  return { parts: [], definitions };
}

function staysInFrom(token: string, inFrom: boolean): boolean {
  if (/^(from|join)$/i.test(token)) return true;
  return (
    inFrom && !/^(select|where|group|order|having|limit|set|returning|window|union|intersect|except|;)$/i.test(token)
  );
}

/** The place of the name if a `with` defines the query that begins here: `name (columns) as not materialized (`. */
function definitionAt(tokens: readonly string[], at: number): number {
  let back = at - 1;
  const before = () => (tokens[back] ?? "").toLowerCase();
  if (before() === "materialized") back -= 1;
  if (before() === "not") back -= 1;
  if (before() !== "as") return at;
  back -= 1;
  if (before() === ")") while (back > 0 && tokens[back] !== "(") back -= 1;
  return before() === "(" ? back - 1 : back;
}

export interface Named {
  readonly name: string;
  readonly at: number;
  readonly isCall: boolean;
}

/**
 * Names that may be names of tables; columns are included. Excluded are the name after `insert into`, whose rows are
 * not read, a name before a dot, and a name after a dot unless the dot follows the schema.
 */
export function namesIn(tokens: readonly string[]): readonly Named[] {
  let inFrom = false;
  return tokens.flatMap((token, at) => {
    inFrom = staysInFrom(token, inFrom);
    const name = nameOf(token);
    const [before = "", next = ""] = [tokens[at - 1]?.toLowerCase(), tokens[at + 1]];
    if (name === null || next === "." || before === "into" || before === "references") return [];
    if (before === "." && !isSchema(tokens[at - 2])) return [];
    if (before === "." && tokens[at - 3]?.toLowerCase() === "into") return [];
    // A quoted text is a name only in a place where a table is expected.
    if (token.startsWith("'") && !inFrom && !/^(from|join|update|in|table|\.)$/.test(before)) return [];
    // `on table (` in an index is a name and not a call.
    return [{ name, at, isCall: next === "(" && before !== "on" }];
  });
}

function isSchema(token = ""): boolean {
  return /^(main|temp)$/.test(nameOf(token) ?? "");
}

export interface Target {
  readonly name: string;
  /** The events whose triggers it may fire. */
  readonly events: RegExp;
  /** The columns that an `update` sets, and the names in their expressions. */
  readonly changed?: ReadonlySet<string | null>;
}

/** The table that a part writes to, or null. */
export function targetOf(tokens: readonly string[]): Target | null {
  const words = tokens.map((token) => token.toLowerCase());
  const at = words.findIndex((word, index) =>
    /^(drop table|into|update(?! set)|delete from)/.test(`${word} ${words[index + 1]}`),
  );
  const [word, next] = words.slice(at, at + 2);
  if (at < 0) return null;
  if (word === "into") {
    const other = words.includes("replace") || words.includes("conflict");
    return targetAt(tokens, at + 1, other ? /^(insert|update|delete)$/i : /^insert$/i);
  }
  if (word === "update") return updatedAt(tokens, words, next === "or" ? at + 3 : at + 1);
  return targetAt(tokens, words[at + 2] === "if" ? at + 4 : at + 2, /^delete$/i);
}

function updatedAt(tokens: readonly string[], words: readonly string[], at: number): Target | null {
  if (words[at - 1] === "replace") return targetAt(tokens, at, /^(update|delete)$/i);
  const target = targetAt(tokens, at, /^update$/i);
  const [set, where] = [words.indexOf("set"), words.indexOf("where")];
  return target && { ...target, changed: new Set(tokens.slice(set, where < set ? tokens.length : where).map(nameOf)) };
}

function targetAt(tokens: readonly string[], at: number, events: RegExp): Target | null {
  const name = nameOf(tokens[tokens[at + 1] === "." ? at + 2 : at] ?? "");
  return name === null ? null : { name, events };
}
