/**
 * Estimates how long the texts made by a part of a statement may become, and the cost of handling them. The estimate is
 * an upper bound: as if all functions were applied to each other's results, and all texts were joined.
 */
import { LIMITS } from "../../contract/limits.ts";

/** Bytes of a row: maximal, and mean. */
export interface Text {
  readonly most: number;
  readonly mean: number;
}

export const LONGEST: Text = { most: LIMITS.sqlValueBytes, mean: LIMITS.sqlValueBytes };
/** Functions that return the parts of a text as rows. */
export const JSON_ROWS = /^jsonb?_(each|tree)$/;

const OPERATORS = /^(\|\||->>?|like|glob|collate)$/i;
const NO_CALL =
  /^(in|values|as|and|or|not|exists|on|using|when|then|else|filter|over|key|unique|check|from|join|where|by|having|set)$/;
const GATHERS = /^(group_concat|string_agg|jsonb?_group_\w+)$/;
/** Functions that join all their arguments into one text. */
const JOINS = /^(concat|concat_ws|char|printf|format|jsonb?_(?!each|tree)\w+)$/;
/** Functions that make a text longer: an escaped character of JSON has six. */
const LENGTHENS = /^(hex|quote|jsonb?_(array|object|set|insert|replace|patch|quote|group_\w+))$/;
/** Functions whose result may have any length. */
const MAKES = /^(zeroblob|randomblob|strftime|printf|format|replace|jsonb?_pretty)$/;
/** Functions that search one text in another, or, in case of `trim`, each character of it. */
const SEEKS = /^(instr|replace|[lr]?trim|like|glob|jsonb?_patch)$/;
const CHEAP = /^(count|sum|total|avg|min|max|abs|round|length|coalesce|ifnull|iif|nullif|row_number|rank|dense_rank)$/;
const DATES = /^(date|time|datetime|julianday|unixepoch|strftime|timediff)$/;

/** Steps of a call, and of a modifier of a date. A modifier that uses the time zone takes about 2 µs. */
const CALL = 10;
const MODIFIER = 40;
const ZONE = 200;
/**
 * A character of a pattern of `like`, or of the characters of `trim`, counts as so many characters of a text for
 * `instr`.
 */
const PATTERN = 16;

/** The effects of a part's functions and operators on texts. */
export interface Handling {
  /** Number of calls, and their fixed steps. */
  calls: number;
  steps: number;
  /** By which factor a text may become longer. */
  factor: number;
  /** Bytes of texts in the statement, or made by it. */
  literal: number;
  /** Texts that are searched in others: their lengths, or null for texts of rows. */
  readonly sought: (number | null)[];
  isAny: boolean;
  gathers: boolean;
}

/** `parameter`: returns the length of a parameter, by its token. */
export function handlingOf(tokens: readonly string[], parameter: (token: string) => number): Handling {
  const found: Handling = { calls: 0, steps: 0, factor: 1, literal: 0, sought: [], isAny: false, gathers: false };
  let joined = 1 + tokens.filter((token) => token === "||").length;
  const commas = commasIn(tokens);
  for (const [at, token] of tokens.entries()) {
    found.calls += Number(OPERATORS.test(token));
    if (/^(like|glob)$/i.test(token)) found.sought.push(PATTERN * (textOf(tokens[at + 1]) ?? LIMITS.sqlPatternBytes));
    // The text that json_each takes apart is not used elsewhere.
    if (!JSON_ROWS.test(String(tokens[at - 2]).toLowerCase())) found.literal += textOf(token) ?? parameter(token);
    const name = tokens[at + 1] === "(" ? functionOf(token) : null;
    if (name === null) continue;
    if (JOINS.test(name)) joined += commas;
    addCall(found, name, argumentsAt(tokens, at + 2));
  }
  found.factor *= joined;
  return found;
}

function functionOf(token: string): string | null {
  const name = token.toLowerCase().replace(/^["`[](.*).$/s, "$1");
  return /^\w+$/.test(name) && !NO_CALL.test(name) ? name : null;
}

/** The tokens between two brackets. Empty if they are nested deeper than SQLite allows. */
function argumentsAt(tokens: readonly string[], begin: number): readonly string[] {
  let depth = 0;
  for (let at = begin; at < tokens.length && depth <= LIMITS.sqlDepth; at += 1) {
    if (tokens[at] === ")" && depth === 0) return tokens.slice(begin, at);
    depth += Number(tokens[at] === "(") - Number(tokens[at] === ")");
  }
  return [];
}

function addCall(found: Handling, name: string, args: readonly string[]): void {
  const commas = commasIn(args);
  // JSON functions search each of their paths in the whole text.
  found.calls += CHEAP.test(name) ? 0.2 : 1 + (name.startsWith("json") ? commas : 0);
  if (DATES.test(name)) found.steps += MODIFIER * (1 + commas) + ZONE * zonesIn(name, args);
  found.gathers ||= GATHERS.test(name);
  if (LENGTHENS.test(name)) found.factor *= 6;
  if (SEEKS.test(name)) found.sought.push(soughtBy(name, args));
  if (!MAKES.test(name)) return;
  const made = madeBy(name, args);
  found.literal += made ?? 0;
  found.isAny ||= made === null;
  if (name === "replace")
    found.factor *= Math.max(1, (textOf(args.at(-1)) ?? 0) / Math.max(1, textOf(args.at(-3)) ?? 1));
}

/** Modifiers of a date that may be `localtime` or `utc`; an expression may be either. */
function zonesIn(name: string, args: readonly string[]): number {
  const values = /^(strftime|timediff)$/.test(name) ? 2 : 1;
  let depth = 0;
  const begins = args.flatMap((token, at) => {
    depth += Number(token === "(") - Number(token === ")");
    return token === "," && depth === 0 ? [at + 1] : [];
  });
  const isPlain = (at: number) => /^'(?!localtime'|utc')/i.test(args[at] ?? "") && (args[at + 1] ?? ",") === ",";
  return begins.slice(values - 1).filter((at) => !isPlain(at)).length;
}

function soughtBy(name: string, args: readonly string[]): number | null {
  if (name === "replace") return hasTwoTexts(args) ? textOf(args.at(-3)) : null;
  if (/^(like|glob)$/.test(name)) return PATTERN * LIMITS.sqlPatternBytes;
  const last = args.at(-2) === "," ? textOf(args.at(-1)) : null;
  if (!name.endsWith("trim")) return last;
  return commasIn(args) === 0 ? 1 : PATTERN * (last ?? LIMITS.sqlValueBytes);
}

/** Bytes that a call adds, whatever its arguments; null for any length. */
function madeBy(name: string, args: readonly string[]): number | null {
  const [first = ""] = args;
  if (name.endsWith("blob")) return args.length === 1 && /^\d+$/.test(first) ? Number(first) : null;
  if (name === "replace") return hasTwoTexts(args) ? 0 : null;
  if (name.endsWith("pretty") || !/^'[^*]*'$/s.test(first)) return null;
  // Widths and precisions; for each field also the digits of a large number, or of a date.
  const widths = first.match(/\d+/g) ?? [];
  return widths.reduce((sum, width) => sum + Number(width), (name === "strftime" ? 20 : 350) * first.split("%").length);
}

function hasTwoTexts(args: readonly string[]): boolean {
  const [before, sought, between, by] = args.slice(-4);
  return before === "," && textOf(sought) !== null && between === "," && textOf(by) !== null;
}

function commasIn(tokens: readonly string[]): number {
  return tokens.filter((token) => token === ",").length;
}

function textOf(token = ""): number | null {
  return token.startsWith("'") ? Math.max(0, token.length - 2) : null;
}

/** The texts that a part may make from texts of this length. */
export function madeOf({ most, mean }: Text, { isAny, factor, literal }: Handling): Text {
  const longest = LIMITS.sqlValueBytes;
  if (isAny || !Number.isFinite(factor)) return LONGEST;
  return { most: Math.min(longest, (most + literal) * factor), mean: Math.min(longest, (mean + literal) * factor) };
}

/** Steps per row. */
export function stepsOf({ calls, steps, sought }: Handling, { most, mean }: Text): number {
  const looked = sought.reduce<number>((sum, length) => sum + 1 + (length ?? most), 0);
  return steps + calls * (CALL + mean / 8) + (looked * mean) / 32;
}
