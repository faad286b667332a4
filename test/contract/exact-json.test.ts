import { expect, test } from "vitest";
import {
  decimalOf,
  isRawNumber,
  mayBeInexact,
  parseDigits,
  parseExactJson,
  wholeOf,
} from "../../src/contract/exact-json.ts";

test("numbers that a double would change are written back with their own digits", () => {
  const text = '{"a":9007199254740993,"b":[12345678901234567890123,-9007199254740993],"c":{"d":0.1,"e":1}}';
  expect(JSON.stringify(parseExactJson(text))).toBe(text);
});

test("numbers that a double can hold stay numbers", () => {
  const value = parseExactJson('{"a":9007199254740991,"b":-0.5,"c":"9007199254740993"}');
  expect(value).toEqual({ a: 9007199254740991, b: -0.5, c: "9007199254740993" });
});

test("a text with a whole number past 2^53 may be inexact, however it is written", () => {
  for (const text of ["9007199254740993", '{"a":-9007199254740993}', "9.007199254740993e15", "1E400"]) {
    expect(mayBeInexact(text)).toBe(true);
  }
  expect(mayBeInexact('{"a":900719925474099,"b":"one"}')).toBe(false);
  expect(isRawNumber(parseExactJson("9007199254740993"))).toBe(true);
  expect(isRawNumber(parseExactJson("1"))).toBe(false);
});

test("an exponent of any length is parsed in linear work", () => {
  const nines = "9".repeat(4_000_000);
  for (const exponent of [nines, `-${nines}`, `+${"0".repeat(4_000_000)}5`]) {
    expect(() => parseDigits(`[1e${exponent}]`)).not.toThrow();
  }
  expect(isRawNumber(parseDigits(`1e${nines}`))).toBe(true);
});

test("equal numbers have one decimal form, whatever their exponent", () => {
  expect(decimalOf("10e0005")).toBe(decimalOf("1E+6"));
  expect(decimalOf("0.1e-01")).toBe(decimalOf("1e-2"));
  expect(decimalOf("1e+99999999999999999999999")).toBe("1e99999999999999999999999");
  expect(wholeOf("1e99999999999999999999999")).toBeNull();
  expect(wholeOf("1e-99999999999999999999999")).toBeNull();
});
