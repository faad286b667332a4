/**
 * The filter language for a run's rollouts, used by pages, URLs, the API and the command line. docs/filter.md.
 *
 *     reward<0.5 stop:max_turns_reached error:provider|timeout -truncated:true "division by zero"
 *
 * Terms are separated by spaces and all of them must hold; `-` or `not` before a term negates it; `a|b` are
 * alternatives. A name that is not a field is the name of a score. Pure, and bounded by `LIMITS.filterCharacters`,
 * `filterTerms` and `filterValues`.
 */
import { MARKS } from "./agreement.ts";
import { LIMITS } from "./limits.ts";
import { OUTCOMES } from "./run.ts";

/** Fields with a number, or null if a rollout has none. `duration` is in milliseconds. */
export const NUMBER_FIELDS = [
  "reward",
  "turns",
  "calls",
  "tokens",
  "duration",
  "group",
  "slot",
  "attempt",
  "example",
  "step",
] as const;
export type NumberField = (typeof NUMBER_FIELDS)[number];
/** Fields with a word, or null. A field of `PREFIX_FIELDS` matches every value that begins with the word. */
export const WORD_FIELDS = ["outcome", "status", "error", "stop", "task", "member", "id"] as const;
export type WordField = (typeof WORD_FIELDS)[number];
export const PREFIX_FIELDS: readonly WordField[] = ["task", "id"];
export const FLAG_FIELDS = ["truncated", "judged", "superseded", "cancelling"] as const;
export type FlagField = (typeof FLAG_FIELDS)[number];
/** Fields of the reviews of a rollout. They hold if at least one of its reviews has the value. */
export const REVIEW_FIELDS = ["reviewed", "mark", "reviewer"] as const;
export type ReviewField = (typeof REVIEW_FIELDS)[number];
/** Other names of fields. */
export const FIELD_ALIASES: Readonly<Record<string, NumberField | WordField>> = {
  latency: "duration",
  reason: "error",
};
/** The status of a dispatched rollout. Rollouts that were not dispatched are in no list. */
export const LISTED_STATUSES = ["running", "scoring", "done"] as const;
const WORDS: { readonly [Field in WordField | ReviewField]?: readonly string[] } = {
  outcome: OUTCOMES,
  status: LISTED_STATUSES,
  mark: MARKS,
};

export type Comparison = "=" | "<" | "<=" | ">" | ">=";
/** A comparison with numbers: several numbers, or null, only with `=`. */
interface Compared {
  readonly op: Comparison;
  readonly values: readonly (number | null)[];
}
export type FilterTerm = { readonly negated: boolean } & (
  | ({ readonly kind: "number"; readonly field: NumberField } & Compared)
  | ({ readonly kind: "score"; readonly name: string } & Compared)
  | { readonly kind: "word"; readonly field: WordField; readonly values: readonly (string | null)[] }
  | { readonly kind: "flag"; readonly field: FlagField; readonly value: boolean }
  | ({ readonly kind: "review" } & ReviewCompared)
  | { readonly kind: "text"; readonly text: string }
);
type ReviewCompared =
  | { readonly field: "reviewed"; readonly values: readonly [boolean] }
  | { readonly field: "mark" | "reviewer"; readonly values: readonly (string | null)[] };

/** An error in a filter text: `at` counts UTF-16 units from 0; `length` is 0 if the error is at the end of the text. */
export interface FilterError {
  readonly at: number;
  readonly length: number;
  /** One sentence with the position. */
  readonly message: string;
}
export type ParsedFilter =
  | { readonly ok: true; readonly terms: readonly FilterTerm[] }
  | { readonly ok: false; readonly error: FilterError };

/** Where `"text"` is searched, and how, in words for users. */
export const TEXT_SEARCHES =
  "the errors of a rollout, the key and text of its task, and the start of its first prompt; case does not matter";

const BARE_NAME = /[\p{L}_][\p{L}\p{N}_./-]*/uy;
const OPERATOR = /<=|>=|!=|[:=<>]/y;
const BARE_VALUE = /[^\s|"]+/y;
const QUOTED = /"((?:[^"\\]|\\["\\])*)"/y;
const SPACE = /\s+/y;
const NOT = /-|not\s+/y;
const PLAIN_NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i;
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/;
const MS_OF = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

/** The empty text is the filter that matches every rollout. */
export function parseFilter(text: string): ParsedFilter {
  const reader = new Reader(text);
  try {
    return { ok: true, terms: reader.terms() };
  } catch (thrown) {
    if (thrown instanceof NoFilter) return { ok: false, error: thrown.error };
    throw thrown;
  }
}

class NoFilter extends Error {
  readonly error: FilterError;

  constructor(error: FilterError) {
    super(error.message);
    this.error = error;
  }
}

type Word = { readonly text: string; readonly quoted: boolean; readonly at: number; readonly length: number };

class Reader {
  readonly #text: string;
  #at = 0;
  #values = 0;

  constructor(text: string) {
    this.#text = text;
  }

  terms(): FilterTerm[] {
    const most = LIMITS.filterCharacters;
    if (this.#text.length > most) {
      throw new NoFilter({ at: most, length: this.#text.length - most, message: `has more than ${most} characters` });
    }
    const terms: FilterTerm[] = [];
    for (this.#take(SPACE); this.#at < this.#text.length; ) {
      const at = this.#at;
      if (terms.length === LIMITS.filterTerms) throw this.#wrong(at, `at most ${LIMITS.filterTerms} terms`);
      terms.push(this.#term());
      if (this.#at < this.#text.length && this.#take(SPACE) === null) throw this.#wrong(this.#at, "a space or the end");
    }
    return terms;
  }

  #term(): FilterTerm {
    const negated = this.#take(NOT) !== null;
    const start = this.#at;
    const name = this.#word(BARE_NAME);
    if (name === null) throw this.#wrong(start, 'a field as in reward<0.5, or a quoted text as in "timeout"');
    const op = this.#take(OPERATOR)?.[0] ?? null;
    if (op === null) {
      if (!name.quoted) throw this.#wrong(this.#at, `one of : = != < <= > >=, or ${quote(name.text)} in quotes`);
      if (name.text === "") throw this.#wrong(start, "a text of at least one character");
      return { kind: "text", negated, text: name.text };
    }
    const turned = op === "!=" ? !negated : negated;
    const compared = op === ":" || op === "!=" ? "=" : (op as Comparison);
    return { negated: turned, ...this.#compared(name, compared) };
  }

  #compared(name: Word, op: Comparison) {
    const field = name.quoted ? null : (FIELD_ALIASES[name.text] ?? name.text);
    const flag = FLAG_FIELDS.find((one) => one === field);
    if (flag !== undefined) return { kind: "flag", field: flag, value: this.#flag(flag, op) } as const;
    const word = WORD_FIELDS.find((one) => one === field);
    if (word !== undefined) return { kind: "word", field: word, values: this.#wordsOf(word, op) } as const;
    const review = REVIEW_FIELDS.find((one) => one === field);
    if (review !== undefined) return { kind: "review", ...this.#review(review, op) } as const;
    const number = NUMBER_FIELDS.find((one) => one === field);
    if (number !== undefined) return { kind: "number", field: number, op, values: this.#numbers(number, op) } as const;
    if (name.text === "") throw this.#wrong(name.at, "the name of a score");
    return { kind: "score", name: name.text, op, values: this.#numbers(null, op) } as const;
  }

  #review(field: ReviewField, op: Comparison): ReviewCompared {
    if (field === "reviewed") return { field, values: [this.#flag(field, op)] };
    return { field, values: this.#wordsOf(field, op) };
  }

  #flag(field: FlagField | "reviewed", op: Comparison): boolean {
    const value = this.#value();
    if (op !== "=" || (value.text !== "true" && value.text !== "false")) {
      throw this.#wrong(value.at, `${field}:true or ${field}:false`, value.length);
    }
    return value.text === "true";
  }

  #wordsOf(field: WordField | ReviewField, op: Comparison): (string | null)[] {
    if (op !== "=") throw this.#wrong(this.#at - op.length, `${field}: followed by a word`, op.length);
    return this.#alternatives().map((value) => {
      if (!value.quoted && value.text === "null") return null;
      const allowed = WORDS[field];
      if (allowed?.includes(value.text) === false) throw this.#wrong(value.at, oneOf(allowed), value.length);
      if (value.text === "") throw this.#wrong(value.at, "a word", value.length);
      return value.text;
    });
  }

  #numbers(field: NumberField | null, op: Comparison): (number | null)[] {
    const values = op === "=" ? this.#alternatives() : [this.#value()];
    return values.map((value) => {
      if (op === "=" && !value.quoted && value.text === "null") return null;
      const number = value.quoted ? null : numberOf(field, value.text);
      if (number !== null) return number;
      const what = field === "duration" ? "a duration such as 2s, 500ms, 5m or 1h" : "a number";
      const orNull = op === "=" ? ", or null" : "";
      const fields = field === null ? " (an unknown field is taken as the name of a score)" : "";
      throw this.#wrong(value.at, `${what}${orNull}${fields}`, value.length);
    });
  }

  #alternatives(): Word[] {
    const values = [this.#value()];
    while (this.#text[this.#at] === "|") {
      this.#at += 1;
      values.push(this.#value());
    }
    return values;
  }

  #value(): Word {
    const at = this.#at;
    this.#values += 1;
    if (this.#values > LIMITS.filterValues) throw this.#wrong(at, `at most ${LIMITS.filterValues} values`);
    const value = this.#word(BARE_VALUE);
    if (value === null) throw this.#wrong(at, "a value");
    return value;
  }

  /** A quoted word, or one that `bare` matches. */
  #word(bare: RegExp): Word | null {
    const at = this.#at;
    const quoted = this.#take(QUOTED);
    if (quoted !== null) {
      const text = (quoted[1] ?? "").replaceAll(/\\(["\\])/g, "$1");
      return { text, quoted: true, at, length: quoted[0].length };
    }
    if (this.#text[at] === '"')
      throw this.#wrong(at, 'a closing " (inside, write \\" and \\\\)', this.#text.length - at);
    const found = this.#take(bare);
    return found === null ? null : { text: found[0], quoted: false, at, length: found[0].length };
  }

  #take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found !== null) this.#at += found[0].length;
    return found;
  }

  #wrong(at: number, expected: string, length = Math.min(1, this.#text.length - at)): NoFilter {
    const found = length === 0 ? "the end" : quote(this.#text.slice(at, at + Math.min(length, 40)));
    return new NoFilter({ at, length, message: `at character ${at + 1}, ${found}: expected ${expected}` });
  }
}

function numberOf(field: NumberField | null, text: string): number | null {
  if (field === "duration") {
    const [, digits, unit = "s"] = DURATION.exec(text) ?? [];
    if (digits === undefined) return null;
    // Rounded to a microsecond, so that the value is as it was written: 0.29s is 290 ms, not 290.00000000000006.
    return Math.round(Number(digits) * MS_OF[unit as keyof typeof MS_OF] * 1000) / 1000;
  }
  const number = PLAIN_NUMBER.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(number) ? number + 0 : null;
}

function oneOf(words: readonly string[]): string {
  return `one of ${words.join(", ")}`;
}

/** The filter in its canonical form: the same for all ways to write it. */
export function printFilter(terms: readonly FilterTerm[]): string {
  return terms.map(printTerm).join(" ");
}

function printTerm(term: FilterTerm): string {
  return (term.negated ? "-" : "") + printPlain(term);
}

function printPlain(term: FilterTerm): string {
  if (term.kind === "text") return quote(term.text);
  if (term.kind === "flag") return `${term.field}:${term.value}`;
  if (term.kind === "word" || term.kind === "review") {
    return `${term.field}:${term.values.map(printWord).join("|")}`;
  }
  const name = term.kind === "score" ? printName(term.name) : term.field;
  const print = term.kind === "number" && term.field === "duration" ? printDuration : printNumber;
  const op = term.op === "=" && term.values.includes(null) ? ":" : term.op;
  return `${name}${op}${term.values.map((value) => (value === null ? "null" : print(value))).join("|")}`;
}

function printNumber(value: number): string {
  return String(value);
}

function printDuration(ms: number): string {
  return ms % 1000 === 0 ? `${decimal(ms / 1000)}s` : `${decimal(ms)}ms`;
}

/** A number without an exponent, because durations have none. */
function decimal(value: number): string {
  return value < 1e21 ? String(value) : BigInt(value).toString();
}

function printWord(value: string | boolean | null): string {
  if (value === null || typeof value === "boolean") return String(value);
  return value !== "null" && matches(BARE_VALUE, value) ? value : quote(value);
}

/** The name of a score as filters and sorts write it: in quotes if it would be read as something else. */
export function printName(name: string): string {
  return matches(BARE_NAME, name) && !isReserved(name) ? name : quote(name);
}

function isReserved(name: string): boolean {
  const fields: readonly string[] = [
    ...NUMBER_FIELDS,
    ...WORD_FIELDS,
    ...FLAG_FIELDS,
    ...REVIEW_FIELDS,
    ...ROLLOUT_SORTS,
    "not",
  ];
  return fields.includes(name) || name in FIELD_ALIASES;
}

function matches(pattern: RegExp, text: string): boolean {
  pattern.lastIndex = 0;
  return pattern.exec(text)?.[0] === text;
}

function quote(text: string): string {
  return `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}

/** The fields that a list of rollouts is sorted by, besides scores by name. The first is the order of dispatch. */
export const ROLLOUT_SORTS = [
  "dispatched",
  "started",
  "ended",
  "reward",
  "turns",
  "calls",
  "tokens",
  "duration",
  "group",
] as const;
export type RolloutSort = (typeof ROLLOUT_SORTS)[number];
/** A measure of a rollout: a field, or a score by its name. */
export type Measure<Field extends string> =
  | { readonly kind: "field"; readonly field: Field }
  | { readonly kind: "score"; readonly name: string };
export type Sorting = { readonly by: Measure<RolloutSort>; readonly descending: boolean };

/** Parses `reward`, `-reward`, `-correct_answer`, `"turns"` (a score of that name). Null if it is none of these. */
export function parseSort(text: string): Sorting | null {
  const descending = text.startsWith("-");
  const by = parseMeasure(descending ? text.slice(1) : text, ROLLOUT_SORTS);
  return by === null ? null : { by, descending };
}

export function printSort({ by, descending }: Sorting): string {
  return (descending ? "-" : "") + (by.kind === "field" ? by.field : printName(by.name));
}

/** One of the fields, else the name of a score; null if the text is not a name. */
export function parseMeasure<Field extends string>(text: string, fields: readonly Field[]): Measure<Field> | null {
  if (text.length > LIMITS.nameCharacters * 2 + 2) return null;
  const known = fields.find((one) => one === (FIELD_ALIASES[text] ?? text));
  if (known !== undefined) return { kind: "field", field: known };
  if (matches(BARE_NAME, text)) return isReserved(text) ? null : { kind: "score", name: text };
  QUOTED.lastIndex = 0;
  const quoted = QUOTED.exec(text);
  const name = quoted?.[0] === text ? (quoted[1] ?? "").replaceAll(/\\(["\\])/g, "$1") : "";
  return name === "" ? null : { kind: "score", name };
}
