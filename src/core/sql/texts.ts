/**
 * How long the texts may become that a part of a statement makes, and what it costs to handle them. From above: as if
 * all its functions were called on what the others give, and every text were put together with all others.
 */
import { LIMITS } from "../../contract/limits.ts";

/** Bytes of a row: at most, and on the average. */
export interface Text {
  readonly most: number;
  readonly mean: number;
}

export const LONGEST: Text = { most: LIMITS.sqlValueBytes, mean: LIMITS.sqlValueBytes };
/** They give the parts of a text as rows. */
export const JSON_ROWS = /^jsonb?_(each|tree)$/;

const OPERATORS = /^(\|\||->>?|like|glob|collate)$/i;
const NO_CALL =
  /^(in|values|as|and|or|not|exists|on|using|when|then|else|filter|over|key|unique|check|from|join|where|by|having|set)$/;
const GATHERS = /^(group_concat|string_agg|jsonb?_group_\w+)$/;
/** They put all their arguments into one text. */
const JOINS = /^(concat|concat_ws|char|printf|format|jsonb?_(?!each|tree)\w+)$/;
/** They make a text longer: an escaped character of JSON has six. */
const LENGTHENS = /^(hex|quote|jsonb?_(array|object|set|insert|replace|patch|quote|group_\w+))$/;
/** They may give any length. */
const MAKES = /^(zeroblob|randomblob|strftime|printf|format|replace|jsonb?_pretty)$/;
/** They look for one text everywhere in another, or, `trim`, for each character of it. */
const SEEKS = /^(instr|replace|[lr]?trim|like|glob|jsonb?_patch)$/;
const CHEAP = /^(count|sum|total|avg|min|max|abs|round|length|coalesce|ifnull|iif|nullif|row_number|rank|dense_rank)$/;
const DATES = /^(date|time|datetime|julianday|unixepoch|strftime|timediff)$/;

/** A call, and a modifier of a date; one that goes by the time zone is some 2 µs. */
const CALL = 10;
const MODIFIER = 40;
const ZONE = 200;
/** One character of a pattern of `like`, or of what `trim` takes away, as characters of what `instr` looks for. */
const PATTERN = 16;

/** What the functions and operators of a part do to texts. */
export interface Handling {
  /** Calls, and their steps whatever they handle. */
  calls: number;
  steps: number;
  /** How much longer a text may become. */
  factor: number;
  /** Bytes that are in the statement, or made by it. */
  literal: number;
  /** Texts that are looked for in others: their lengths, or null for texts of rows. */
  readonly sought: (number | null)[];
  isAny: boolean;
  gathers: boolean;
}

/** `parameter`: the length of one, by its token. */
export function handlingOf(tokens: readonly string[], parameter: (token: string) => number): Handling {
  const found: Handling = { calls: 0, steps: 0, factor: 1, literal: 0, sought: [], isAny: false, gathers: false };
  let joined = 1 + tokens.filter((token) => token === "||").length;
  const commas = commasIn(tokens);
  for (const [at, token] of tokens.entries()) {
    found.calls += Number(OPERATORS.test(token));
    if (/^(like|glob)$/i.test(token)) found.sought.push(PATTERN * (textOf(tokens[at + 1]) ?? LIMITS.sqlPatternBytes));
    // What json_each takes apart is handled by nobody else.
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

/** The tokens between two brackets. What is nested deeper than SQLite allows is nothing. */
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
  // Those of JSON look for each of their paths in the whole text.
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

/** Modifiers of a date that may be `localtime` or `utc`: what is no plain text may be either. */
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

/** Bytes that a call adds, whatever it is given; null for any length. */
function madeBy(name: string, args: readonly string[]): number | null {
  const [first = ""] = args;
  if (name.endsWith("blob")) return args.length === 1 && /^\d+$/.test(first) ? Number(first) : null;
  if (name === "replace") return hasTwoTexts(args) ? 0 : null;
  if (name.endsWith("pretty") || !/^'[^*]*'$/s.test(first)) return null;
  // Widths and precisions; the digits of a large number, or of a date, for each field.
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

/** What a part may make of texts that are so long. */
export function madeOf({ most, mean }: Text, { isAny, factor, literal }: Handling): Text {
  const longest = LIMITS.sqlValueBytes;
  if (isAny || !Number.isFinite(factor)) return LONGEST;
  return { most: Math.min(longest, (most + literal) * factor), mean: Math.min(longest, (mean + literal) * factor) };
}

/** For each row. */
export function stepsOf({ calls, steps, sought }: Handling, { most, mean }: Text): number {
  const looked = sought.reduce<number>((sum, length) => sum + 1 + (length ?? most), 0);
  return steps + calls * (CALL + mean / 8) + (looked * mean) / 32;
}
