/** Numbers with units, and times of the day. */
import type { Reading } from "./cursor.ts";
import { parseWhole } from "./parse-expression.ts";
import { rational } from "./rational.ts";
import type { Answer, Expression } from "./syntax.ts";
import { FUNCTIONS } from "./syntax.ts";
import { type Token, textOf } from "./token.ts";
import { readUnit, sameBases, startsUnit, type Unit } from "./units.ts";

type Quantity = Answer & { readonly kind: "quantity" };
interface Part {
  readonly value: readonly Token[];
  readonly unit: Unit;
}

/** `5 cm`, `\$5`, `30^\circ`, `1 h 20 min`; undefined without a unit. Throws `MathSyntaxError`. */
export function readQuantity(tokens: readonly Token[], reading: Reading): Quantity | undefined {
  const parts = partsOf(withCurrencyLast(tokens));
  const [first] = parts ?? [];
  if (parts === undefined || first === undefined) return undefined;
  if (parts.length === 1) {
    return { kind: "quantity", expression: parseWhole(first.value, reading), unit: first.unit, sums: false };
  }
  return sumOf(
    parts.map(({ value, unit }) => ({ kind: "quantity", expression: parseWhole(value, reading), unit, sums: false })),
    reading,
  );
}

/** The sum of quantities that measure the same, each in a smaller unit; undefined for any others. */
export function sumOf(quantities: readonly Answer[], reading: Reading): Quantity | undefined {
  const parts = quantities.filter((item) => item.kind === "quantity");
  const [first] = parts;
  if (first === undefined || parts.length < 2 || parts.length !== quantities.length) return undefined;
  const isSum = parts.every((part, at) => {
    const before = parts[at - 1];
    if (before === undefined) return true;
    const [over, under] = before.unit.factor;
    return sameBases(before.unit, part.unit) && over * part.unit.factor[1] > part.unit.factor[0] * under;
  });
  if (!isSum) return undefined;
  const terms = parts.map(({ expression, unit }) => inBases(expression, unit, reading));
  const unit: Unit = { factor: [1n, 1n], bases: first.unit.bases };
  return { kind: "quantity", expression: { kind: "sum", parts: terms }, unit, sums: true };
}

/** The quantity as a number of its base units. */
export function inBases(expression: Expression, { factor }: Unit, { budget }: Reading): Expression {
  const scale: Expression = { kind: "number", value: rational(budget, factor[0], factor[1]) };
  return { kind: "product", parts: [expression, scale] };
}

/** Alternating values and units; undefined if the tokens are anything else. */
function partsOf(tokens: readonly Token[]): Part[] | undefined {
  const parts: Part[] = [];
  let at = 0;
  while (at < tokens.length) {
    const start = tokens[at]?.text === "+" && parts.length > 0 ? at + 1 : at;
    let end = start;
    while (end < tokens.length && !startsUnit(tokens, end)) end += 1;
    const read = end > start ? readUnit(tokens, end) : undefined;
    const value = tokens.slice(start, end);
    if (read === undefined || !canBeMeasured(value, tokens[end], parts.length > 0)) return undefined;
    parts.push({ value, unit: read.unit });
    at = read.end;
  }
  return parts;
}

/**
 * A degree sign after a function belongs to its argument; a second unit must follow a number, and a word cannot be
 * measured.
 */
function canBeMeasured(value: readonly Token[], unit: Token | undefined, isSecond: boolean): boolean {
  if (isSecond && !value.every(({ kind, text }) => kind === "number" || /^(?:frac|\{|\}|\/)$/.test(text))) return false;
  if (value.some(({ kind }) => kind === "word")) return false;
  const isDegree = unit?.text === "^";
  return !isDegree || value.every(({ kind, text }) => kind !== "name" || !FUNCTIONS.some((name) => name === text));
}

const CURRENCY = /^[＄£€¥₹]$/;

/** `\$5` as `5 \$`, `-\$5` as `-5 \$`. */
function withCurrencyLast(tokens: readonly Token[]): readonly Token[] {
  const at = tokens[0]?.text === "-" ? 1 : 0;
  const sign = tokens[at];
  if (sign === undefined || !CURRENCY.test(sign.text)) return tokens;
  const value = [...tokens.slice(0, at), ...tokens.slice(at + 1)];
  const end = value.findIndex((_, place) => place > 0 && startsPer(value, place));
  return end === -1 ? [...value, sign] : [...value.slice(0, end), sign, ...value.slice(end)];
}

/** `/\text{hour}`, `\text{per hour}` */
function startsPer(tokens: readonly Token[], at: number): boolean {
  const text = tokens[at]?.text.toLowerCase();
  return (text === "/" || text === "per") && startsUnit(tokens, at + 1);
}

/** Used if the text does not name the half of the day. */
const HOURS: Token = { kind: "mark", text: "o'clock" };

/** `4:30 PM`, `4 pm`: minutes, and the half of the day; `10:05`, which is not a ratio; undefined for anything else. */
export function readClock(tokens: readonly Token[], reading: Reading): Answer | undefined {
  if (/^\d\d? : 0\d$/.test(textOf(tokens))) return readClock([...tokens, HOURS], reading);
  const half = tokens.at(-1)?.text.toLowerCase();
  const [hour, colon, minute] = tokens.slice(0, -1);
  const isHour = hour?.kind === "number" && /^\d\d?$/.test(hour.text);
  if ((half !== "am" && half !== "pm" && half !== HOURS.text) || !isHour) return undefined;
  if (tokens.length !== 2 && (tokens.length !== 4 || colon?.text !== ":" || !/^\d\d$/.test(minute?.text ?? ""))) {
    return undefined;
  }
  const minutes = BigInt(hour.text) * 60n + BigInt(tokens.length === 4 ? (minute?.text ?? "0") : "0");
  const value: Expression = { kind: "number", value: rational(reading.budget, minutes) };
  return { kind: "phrase", parts: [{ kind: "expression", expression: value }, half] };
}
