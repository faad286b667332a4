/**
 * The tables that a statement names, block by block: what stands in brackets after `select`, `with` or `values` is a
 * query of its own, and each part of a union a part of it.
 */
import { EnvError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import { nameOf } from "./statements.ts";

/** One `select`, or one statement that writes. */
export interface Part {
  /** Its own, without those of subqueries. */
  readonly tokens: string[];
  /** Subqueries that it joins, and those whose value it asks for. */
  readonly joined: Query[];
  readonly asked: Query[];
}

export interface Query {
  readonly parts: Part[];
  /** By a `with` anywhere in the statement. */
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

/** A query whose end was not met yet. */
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

  /** The query that begins with this bracket. */
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

/** Where a `with` names what begins here: `name (columns) as not materialized (`. */
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
 * Names that may be those of tables; columns are among them. Not the one of `insert into`, whose rows are not read,
 * nor what stands before a dot, or after one that is not the schema's.
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
    // A text is a name only where a table is asked for.
    if (token.startsWith("'") && !inFrom && !/^(from|join|update|in|table|\.)$/.test(before)) return [];
    // An index names its table so.
    return [{ name, at, isCall: next === "(" && before !== "on" }];
  });
}

function isSchema(token = ""): boolean {
  return /^(main|temp)$/.test(nameOf(token) ?? "");
}

export interface Target {
  readonly name: string;
  /** Triggers of which events it may set off. */
  readonly events: RegExp;
  /** The columns that an `update` sets, and what it names to compute them. */
  readonly changed?: ReadonlySet<string | null>;
}

/** The table that a part writes to. */
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
