/**
 * Finds the formulas in a line of prose. Dollar signs delimit formulas and precede amounts of money; the adjacent
 * characters tell them apart.
 */
import { isSentence } from "./prose.ts";

/** Brackets that delimit a formula. */
const BRACKETS = /\\[()[\]]/g;
/** A dollar sign that is not escaped; two of them delimit a displayed formula. */
const DOLLARS = /(?<!\\)\$\$?/g;

interface Formula {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The formula that closes last. Null if there is none, or if an amount of money follows it. */
export function lastFormula(line: string): string | null {
  const { formulas, amount } = formulasOf(line);
  const last = formulas.at(-1);
  return last === undefined || last.text === "" || amount > last.end ? null : last.text;
}

/** The formulas of a line in order, and the position of the last dollar sign of an amount. */
function formulasOf(line: string): { formulas: Formula[]; amount: number } {
  const { formulas, amount } = betweenDollars(line);
  const all = [...formulas, ...betweenBrackets(line)].sort((a, b) => a.end - b.end);
  const apart: Formula[] = [];
  let from = Number.POSITIVE_INFINITY;
  // From the end: if two overlap, the one that closes later counts.
  for (const formula of all.toReversed()) {
    if (formula.end > from) continue;
    apart.push(formula);
    from = formula.start;
  }
  return { formulas: apart.reverse(), amount };
}

/** The first of the characters that replace formulas, from the private use area of Unicode. */
const FIRST_MASK = 0xe100;
const MOST_MASKS = 0xf8ff - FIRST_MASK;
const MASKS = /[\ue100-\uf8ff]/g;

interface Masked {
  readonly masked: string;
  readonly formulas: readonly string[];
}

/** A line in which one character replaces each formula; if there are too many formulas, only the last ones. */
export function maskFormulas(line: string): Masked {
  const all = formulasOf(line).formulas.slice(-MOST_MASKS);
  let masked = "";
  let from = 0;
  for (const [at, { start, end }] of all.entries()) {
    masked += line.slice(from, start) + String.fromCharCode(FIRST_MASK + at);
    from = end;
  }
  return { masked: masked + line.slice(from), formulas: all.map(({ start, end }) => line.slice(start, end)) };
}

export function unmask(masked: string, formulas: readonly string[]): string {
  return masked.replace(MASKS, (mask) => formulas[mask.charCodeAt(0) - FIRST_MASK] ?? mask);
}

function betweenBrackets(line: string): Formula[] {
  const formulas: Formula[] = [];
  const open = new Map<string, number>();
  for (const { 0: mark, index } of line.matchAll(BRACKETS)) {
    if (mark === "\\(" || mark === "\\[") {
      open.set(mark, index);
      continue;
    }
    const opening = mark === "\\)" ? "\\(" : "\\[";
    const start = open.get(opening);
    if (start === undefined) continue;
    open.delete(opening);
    formulas.push({ start, end: index + mark.length, text: line.slice(start + opening.length, index).trim() });
  }
  return formulas;
}

function betweenDollars(line: string): { formulas: Formula[]; amount: number } {
  const formulas: Formula[] = [];
  let amount = -1;
  let open: { start: number; end: number } | undefined;
  for (const { 0: sign, index } of line.matchAll(DOLLARS)) {
    const end = index + sign.length;
    if (open !== undefined && isFormula(line, open, index, sign)) {
      formulas.push({ start: open.start, end, text: line.slice(open.end, index).trim() });
      open = undefined;
      continue;
    }
    if (open !== undefined && beginsAmount(line, open.end)) amount = open.start;
    open = { start: index, end };
  }
  if (open !== undefined && beginsAmount(line, open.end)) amount = open.start;
  return { formulas, amount };
}

function beginsAmount(line: string, at: number): boolean {
  return /^\s?[\d.]/.test(line.slice(at, at + 2));
}

/** Whether the sign at `index` closes the formula that the sign before it opened. */
function isFormula(line: string, open: { start: number; end: number }, index: number, sign: string): boolean {
  const inside = line.slice(open.end, index);
  const isDisplay = sign.length > 1;
  if (open.end - open.start !== sign.length || inside.trim() === "") return false;
  if (isDisplay) return true;
  // `US$5`, and `$7` that closes nothing.
  const isOfCountry = /[A-Z]/.test(line[open.start - 1] ?? "") && /\d/.test(inside[0] ?? "");
  if (isOfCountry || /\d/.test(line[index + 1] ?? "")) return false;
  const [startsSpaced, endsSpaced] = [/^\s/.test(inside), /\s$/.test(inside)];
  if (endsSpaced && startsSpaced && beginsAmount(line, index + 1) && beginsAmount(line, open.end)) return false;
  // `$5 and $x$`: only a number alone may end in a blank.
  if (endsSpaced && /^[\d.]/.test(inside) && !/^[\d.,]+\s+$/.test(inside)) return false;
  return inside.includes("\\") || !isSentence(inside, 2);
}
