/**
 * Splits the text of SQL into tokens and statements, before SQLite parses it.
 *
 * Invariants. A statement found here has at most one statement for SQLite, too: a `;` ends it unless it is part of a
 * quoted text, a comment, or a trigger's body. If the two would split a text differently, SQLite reports a syntax
 * error.
 */
import { EnvError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import { exceedsUtf8 } from "../size.ts";

/**
 * Quoted texts and names, comments, spaces, names, numbers, parameters, operators; anything else one character at a
 * time. An unclosed token goes to the end of the text: SQLite refuses it.
 */
const TOKENS =
  /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|[ \t\n\v\f\r\uFEFF]+|[A-Za-z_\u0080-\u{10FFFF}][\w$\u0080-\u{10FFFF}]*|\d[\w.]*|[?:@$#][\w$]*|\|\||->>?|[\s\S]/gu;

export interface Statement {
  readonly text: string;
  /** Without spaces and comments. */
  readonly tokens: readonly string[];
}

/** For an environment that runs one statement at a time. */
export function sqlStatements(query: string): readonly string[] {
  return statementsOf(query).map(({ text }) => text.trim());
}

export function statementsOf(query: string): readonly Statement[] {
  const found: Statement[] = [];
  let text = "";
  let tokens: string[] = [];
  for (const [token] of query.matchAll(TOKENS)) {
    text += token;
    if (/^([ \t\n\v\f\r\uFEFF]|--|\/\*)/.test(token)) continue;
    if (token === ";" && (!createsTrigger(tokens) || endsBody(tokens))) {
      if (tokens.length > 0) found.push({ text: text.slice(0, -1), tokens });
      [text, tokens] = ["", []];
    } else {
      tokens.push(token);
    }
  }
  if (tokens.length > 0) found.push({ text, tokens });
  return found;
}

function createsTrigger(tokens: readonly string[]): boolean {
  return /^create (temp |temporary )?trigger /i.test(`${tokens.slice(0, 3).join(" ")} `);
}

/** As in SQLite: `end` only counts after a `;`, because `case … end` does not end a body. */
function endsBody(tokens: readonly string[]): boolean {
  return tokens.at(-1)?.toLowerCase() === "end" && tokens.at(-2) === ";";
}

/**
 * A name in the form in which SQLite compares it, or null if the token is not a name. A text in single quotes is a name
 * only where a table is expected.
 */
export function nameOf(token: string): string | null {
  if (/^[A-Za-z_\u0080-\u{10FFFF}]/u.test(token)) return token.toLowerCase();
  const [open = ""] = token;
  if (token.length < 2 || !"\"'`[".includes(open)) return null;
  const inner = token.slice(1, -1);
  return (open === "[" ? inner : inner.replaceAll(open + open, open)).toLowerCase();
}

/** Statements about the connection, which does not belong to the environment. A call is a transaction by itself. */
const NOT_OFFERED =
  /^(attach|detach|pragma|vacuum|begin|commit|end|rollback|savepoint|release|create temp|create temporary)$/i;

/** Throws for statements that are not offered. A keyword in quotes is a name for SQLite, so it is not checked. */
export function requireOffered({ tokens }: Statement): void {
  const asks = /^explain$/i.test(tokens[0] ?? "");
  const plan = asks && /^query$/i.test(tokens[1] ?? "");
  const [first = "", second = "", third = ""] = tokens.slice(plan ? 3 : Number(asks));
  for (const words of [first, `${first} ${second}`]) {
    if (NOT_OFFERED.test(words)) throw new EnvError(`${words} is not supported here`);
  }
  if (/^create virtual table$/i.test(`${first} ${second} ${third}`)) {
    throw new EnvError(
      "virtual tables are not supported here: their cost cannot be estimated (json_each and json_tree are supported)",
    );
  }
  if (/^create table$/i.test(`${first} ${second}`) && computes(tokens)) {
    throw new EnvError("computed columns are not supported here: their cost cannot be estimated");
  }
  if (/^alter table$/i.test(`${first} ${second}`) && adds(tokens)) {
    throw new EnvError("a column with a check, or a generated one, cannot be added here: create the table with it");
  }
}

/** Whether it has `x as (…)`, a form that no part of a `select` has. */
function computes(tokens: readonly string[]): boolean {
  const isSelect = tokens.some((token) => /^(select|values)$/i.test(token));
  return !isSelect && tokens.some((token, at) => /^as$/i.test(token) && tokens[at + 1] === "(");
}

/** Whether it adds a check or a computed column: SQLite then checks the whole table in a hidden statement. */
function adds(tokens: readonly string[]): boolean {
  return tokens.some((token) => /^(check|as)$/i.test(token));
}

export function requireShort(query: string, params: readonly unknown[]): void {
  if (query.includes("\0")) throw new EnvError("the query contains a NUL character");
  if (exceedsUtf8(query, LIMITS.sqlQueryBytes)) {
    throw new EnvError(`the query is over ${LIMITS.sqlQueryBytes} bytes: pass data as parameters`);
  }
  if (exceedsUtf8(JSON.stringify(params), LIMITS.sqlParameterBytes)) {
    throw new EnvError(`the parameters are over ${LIMITS.sqlParameterBytes} bytes as JSON`);
  }
}
