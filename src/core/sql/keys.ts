/**
 * Tables that give at most one row for each combination of the other tables: those selected by their integer primary
 * key, in `join … on a.x = b.y` or in `where id = 5`. This bounds the rows of the result; the visited rows depend on
 * the query plan.
 */
import { nameOf } from "./statements.ts";

const ENDS = /^(join|left|inner|where|group|having|order|limit|window|returning|union|\)|;|)$/i;
const NO_ALIAS = /^(on|using|join|left|inner|where|group|order|limit|set|,|\)|;|)$/i;

interface Source {
  readonly table: string;
  readonly at: number;
}

/** The column that is the integer primary key in a `create table`; there is at most one. */
export function keyOf(tokens: readonly string[]): string | null {
  for (const [at, token] of tokens.entries()) {
    if (!/^integer$/i.test(token) || !/^[(,]$/.test(tokens[at - 2] ?? "")) continue;
    const rest = tokens.slice(at);
    const end = rest.findIndex((other) => other === "," || other === "(");
    const constraints = rest.slice(0, end < 0 ? rest.length : end).join(" ");
    if (/ primary key\b(?! desc)/i.test(constraints)) return nameOf(tokens[at - 1] ?? "");
  }
  return null;
}

/** The places where such tables are named. `key`: the key column of a table. */
export function pickedIn(tokens: readonly string[], key: (table: string) => string | null): ReadonlySet<number> {
  const picked = new Set<number>();
  if (tokens.some((token) => /^(full|right|or)$/i.test(token))) return picked;
  const sources = new Map<string, Source>();
  const pick = (source: Source | undefined, column: string | null) => {
    const isPicked = source !== undefined && column !== null && key(source.table) === column;
    if (isPicked) picked.add(source.at);
    return isPicked;
  };
  for (const [at, token] of tokens.entries()) {
    const [[alias, only] = ["", undefined]] = sources;
    if (/^where$/i.test(token) && sources.size === 1) pick(only, columnAt(tokens, at + 1, alias));
    const joined = sourceAt(tokens, at);
    if (joined === null) continue;
    const other = equalityAt(tokens, joined.end, joined.alias);
    const source = sources.get(other?.source ?? "");
    sources.set(joined.alias, joined);
    if (other === null || source === undefined || pick(joined, other.own)) continue;
    if (!/^(left|outer)$/i.test(tokens[at - 1] ?? "")) pick(source, other.column);
  }
  return picked;
}

/** `from table`, `join table alias` or `update table as alias`. */
function sourceAt(tokens: readonly string[], from: number): (Source & { alias: string; end: number }) | null {
  const at = from + 1;
  const table = /^(from|join|update)$/i.test(tokens[from] ?? "") ? nameOf(tokens[at] ?? "") : null;
  if (table === null || tokens[at + 1] === ".") return null;
  const next = /^as$/i.test(tokens[at + 1] ?? "") ? at + 2 : at + 1;
  const alias = NO_ALIAS.test(tokens[next] ?? "") ? null : nameOf(tokens[next] ?? "");
  return alias === null ? { table, at, alias: table, end: next } : { table, at, alias, end: next + 1 };
}

/** The column of `id = 5` or `alias.id = 5`, if no other condition can select more rows. */
function columnAt(tokens: readonly string[], at: number, alias: string): string | null {
  const isQualified = tokens[at + 1] === ".";
  const [column = "", equals, value = "", end = ""] = tokens.slice(isQualified ? at + 2 : at).slice(0, 4);
  if (isQualified && nameOf(tokens[at] ?? "") !== alias) return null;
  const isOne = equals === "=" && /^(\d+|\?\d*|'.*')$/s.test(value) && /^(and|returning|)$/i.test(end);
  return isOne ? nameOf(column) : null;
}

/** `on a.x = b.y`, and nothing more: `own` is the column of the joined table. */
function equalityAt(tokens: readonly string[], at: number, alias: string) {
  const [on, first = "", dot, one = "", equals, second = "", dot2, two = "", end = ""] = tokens.slice(at, at + 9);
  if (!/^on$/i.test(on ?? "") || dot !== "." || equals !== "=" || dot2 !== "." || !ENDS.test(end)) return null;
  const [left, right] = [nameOf(first), nameOf(second)];
  if (left === right || left === null || right === null) return null;
  if (left === alias) return { own: nameOf(one), source: right, column: nameOf(two) };
  return right === alias ? { own: nameOf(two), source: left, column: nameOf(one) } : null;
}
