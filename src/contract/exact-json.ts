/**
 * JSON texts whose numbers a double cannot hold. `JSON.parse` rounds 9007199254740993 to 9007199254740992 without a
 * word; these two functions do not. Source: ECMA-262, "JSON.parse source text access".
 */

/** A number as it was written. `JSON.stringify` writes it back with the same digits; it is no `number`. */
export interface RawNumber {
  readonly rawJSON: string;
}

type Context = { readonly source?: string };
interface SourceAccess {
  readonly parse: (
    text: string,
    reviver: (this: unknown, key: string, value: unknown, context: Context) => unknown,
  ) => unknown;
  readonly rawJSON: (text: string) => RawNumber;
  readonly isRawJSON: (value: unknown) => value is RawNumber;
}
const { parse, rawJSON, isRawJSON }: SourceAccess = JSON as typeof JSON & SourceAccess;

/** Sixteen digits in a row, or an exponent: without either, each whole number of a text is one that a double holds. */
const MAY_BE_INEXACT = /\d{16}|\d[eE]/;

/** Whether parsing this text may change one of its numbers. True for some texts whose numbers are all kept. */
export function mayBeInexact(text: string): boolean {
  return MAY_BE_INEXACT.test(text);
}

/** `JSON.parse`, except that numbers which JavaScript would write differently are kept as they were written. */
export function parseExactJson(text: string): unknown {
  return parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined && String(value) !== source ? rawJSON(source) : value,
  );
}

export function isRawNumber(value: unknown): value is RawNumber {
  return isRawJSON(value);
}
