/**
 * Numbers past 2^53 in a JSON Schema and in the checked value, for a validator that only supports doubles.
 *
 * Method. Each such number is replaced by a stand-in: a whole double from 2^53 on. Stand-ins have the same order as the
 * numbers, equal numbers have the same stand-in, and they compare in the same way with all smaller numbers. So every
 * keyword for numbers gives the same result, except `multipleOf`.
 */
import { decimalOf, isRawNumber, wholeOf } from "../../contract/exact-json.ts";
import { isRecord, type Json } from "../../contract/json.ts";
import type { Work } from "../rubrics/work.ts";

export interface StandIns {
  readonly replaced: readonly Json[];
  /** Replaces the stand-ins in a text by their numbers. */
  readonly name: (text: string) => string;
}

/** Whether a value has a number that no double holds. */
export function holdsRaw(value: unknown): boolean {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== "object" || next === null) continue;
    if (isRawNumber(next)) return true;
    for (const member of Object.values(next)) open.push(member);
  }
  return false;
}

/** Steps per number, for sorting. */
const STEPS = 100;

/** The value has a number that cannot be compared: the fault is the value's, not the schema's. */
export class IncomparableValueError extends TypeError {}

/**
 * Throws TypeError if stand-ins would give a wrong result: for a large number with a fraction, and for `multipleOf`; an
 * `IncomparableValueError` if only the value has such a number.
 */
export function standIns(schema: Json, value: Json, work: Work): StandIns {
  const found: Found = new Map();
  note(schema, found, TypeError);
  const ofSchema = holdsRaw(schema);
  if (asksMultiple(schema)) {
    throw new (ofSchema ? TypeError : IncomparableValueError)("multipleOf is not supported for numbers above 2^53");
  }
  note(value, found, IncomparableValueError);
  work.spend(found.size * STEPS, "comparing numbers above 2^53");
  const sorted = [...found].sort(([, a], [, b]) => compareDigits(a.digits, b.digits));
  const doubles = new Map<string, number>();
  const names = new Map<string, string>();
  for (const [at, [decimal, { source }]] of sorted.entries()) {
    const double = (decimal.startsWith("-") ? -1 : 1) * (2 ** 53 + 2 * at);
    doubles.set(decimal, double);
    names.set(String(double), source);
  }
  return {
    replaced: [replace(schema, doubles), replace(value, doubles)],
    name: (text) => text.replaceAll(/-?\d{16}/g, (number) => names.get(number) ?? number),
  };
}

function sourceOf(value: unknown): string | null {
  if (isRawNumber(value)) return value.rawJSON;
  return typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER ? String(value) : null;
}

function asksMultiple(schema: Json): boolean {
  if (typeof schema !== "object" || schema === null || isRawNumber(schema)) return false;
  return Object.entries(schema).some(([keyword, value]) => {
    const isNumber = typeof value === "number" || isRawNumber(value);
    return keyword === "multipleOf" && isNumber ? value !== 1 : asksMultiple(value);
  });
}

/** Numbers as they were written, and their digits without a sign, by decimal form. */
type Found = Map<string, { readonly source: string; readonly digits: string }>;

function note(value: unknown, found: Found, Fault: new (message: string) => TypeError): void {
  const source = sourceOf(value);
  if (source !== null) {
    const digits = wholeOf(source);
    if (digits === null) throw new Fault(`${source.slice(0, 60)} cannot be compared exactly`);
    found.set(decimalOf(source), { source, digits: digits.replace("-", "") });
  } else if (typeof value === "object" && value !== null) {
    for (const member of Object.values(value)) note(member, found, Fault);
  }
}

function replace(value: Json, doubles: ReadonlyMap<string, number>): Json {
  const source = sourceOf(value);
  if (source !== null) return doubles.get(decimalOf(source)) ?? Number.NaN;
  if (Array.isArray(value)) return value.map((item: Json) => replace(item, doubles));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, replace(member as Json, doubles)]));
}

function compareDigits(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : Number(a > b);
}
