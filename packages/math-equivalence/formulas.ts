/**
 * Where the formulas of a line of prose stand. Dollar signs delimit formulas and stand before amounts of money; what
 * tells them apart is what they are next to.
 */
import { isSentence } from "./prose.ts";

/** How formulas are set apart beside dollar signs, as opening and closing. */
const BRACKETS = [
  ["\\(", "\\)"],
  ["\\[", "\\]"],
] as const;
/** A dollar sign that is not escaped; two of them open or close a formula on a line of its own. */
const DOLLARS = /(?<!\\)\$\$?/g;

/** The formula that closes last. Null when there is none, and when an amount of money follows it. */
export function lastFormula(line: string): string | null {
  let { last, amount } = betweenDollars(line);
  for (const [open, close] of BRACKETS) {
    const end = line.lastIndexOf(close);
    const start = end <= 0 ? -1 : line.lastIndexOf(open, end - open.length);
    if (start === -1 || end + close.length <= last.end) continue;
    last = { end: end + close.length, text: line.slice(start + open.length, end).trim() };
  }
  return last.text === "" || amount > last.end ? null : last.text;
}

/** The last formula between dollar signs, and where the last dollar sign stands that begins an amount. */
function betweenDollars(line: string): { last: { end: number; text: string }; amount: number } {
  let last = { end: -1, text: "" };
  let amount = -1;
  let open: { start: number; end: number } | undefined;
  for (const { 0: sign, index } of line.matchAll(DOLLARS)) {
    const end = index + sign.length;
    if (open !== undefined && isFormula(line, open, index, sign)) {
      last = { end, text: line.slice(open.end, index).trim() };
      open = undefined;
      continue;
    }
    if (open !== undefined && beginsAmount(line, open.end)) amount = open.start;
    open = { start: index, end };
  }
  if (open !== undefined && beginsAmount(line, open.end)) amount = open.start;
  return { last, amount };
}

function beginsAmount(line: string, at: number): boolean {
  return /^\s?[\d.]/.test(line.slice(at, at + 2));
}

/** Whether the sign at `index` closes the formula that one before it opened. */
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
  // `$5 and $x$`: only what is a number alone may end in a blank.
  if (endsSpaced && /^[\d.]/.test(inside) && !/^[\d.,]+\s+$/.test(inside)) return false;
  return inside.includes("\\") || !isSentence(inside, 2);
}
