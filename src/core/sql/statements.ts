/**
 * The text of SQL, as far as it is known before SQLite reads it: its tokens, and where one statement ends.
 *
 * Invariants. What is taken for a statement holds at most one for SQLite too: a `;` ends it wherever it is not part of
 * a quoted text, of a comment, or of a trigger's body. Where the two would read a text differently, SQLite finds a
 * syntax error.
 */
import { EnvError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import { exceedsUtf8 } from "../size.ts";

/**
 * Quoted texts and names, comments, spaces, names, numbers, parameters, operators; anything else a character at a time.
 * What is not closed goes on to the end: SQLite refuses it.
 */
const TOKENS =
  /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|[ \t\n\v\f\r\uFEFF]+|[A-Za-z_\u0080-\u{10FFFF}][\w$\u0080-\u{10FFFF}]*|\d[\w.]*|[?:@$#][\w$]*|\|\||->>?|[\s\S]/gu;

export interface Statement {
  readonly text: string;
  /** Without spaces and comments. */
  readonly tokens: readonly string[];
}

/** For an environment that takes one statement at a time. */
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

/** As SQLite has it: `end` counts only after a `;`, for `case … end` is no end of a body. */
function endsBody(tokens: readonly string[]): boolean {
  return tokens.at(-1)?.toLowerCase() === "end" && tokens.at(-2) === ";";
}

/**
 * A name as SQLite compares it, or null for what is none. A text in single quotes is one only where a table is named.
 */
export function nameOf(token: string): string | null {
  if (/^[A-Za-z_\u0080-\u{10FFFF}]/u.test(token)) return token.toLowerCase();
  const [open = ""] = token;
  if (token.length < 2 || !"\"'`[".includes(open)) return null;
  const inner = token.slice(1, -1);
  return (open === "[" ? inner : inner.replaceAll(open + open, open)).toLowerCase();
}

/** Statements about the connection, which is not the environment's. A call is a transaction by itself. */
const NOT_OFFERED =
  /^(attach|detach|pragma|vacuum|begin|commit|end|rollback|savepoint|release|create temp|create temporary)$/i;

/** A word as SQLite reads it may stand in quotes only where a name does. */
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

/** `x as (…)`, where no `select` has a part of that form. */
function computes(tokens: readonly string[]): boolean {
  const isSelect = tokens.some((token) => /^(select|values)$/i.test(token));
  return !isSelect && tokens.some((token, at) => /^as$/i.test(token) && tokens[at + 1] === "(");
}

/** SQLite then checks the whole table, in a statement of its own that nobody sees. */
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
