import { expect, test } from "vitest";
import { plainDecimals, plainTypography } from "../typography.ts";

test.each([
  ["no-break space", "7\u00a0654\u00a0321", "7654321"],
  ["narrow no-break space", "7\u202f654\u202f321", "7654321"],
  ["thin space", "7\u2009654\u2009321", "7654321"],
  ["figure space", "7\u2007654\u2007321.5", "7654321.5"],
  ["ideographic space", "7\u3000654", "7654"],
  ["separators of LaTeX", "7{,}654\\,321 and 1,\\!250", "7654321 and 1250"],
  ["thin spaces behind the point", "3.141\u2009592\u200965", "3.14159265"],
  ["zero-width space", "76\u200b54", "7654"],
  ["word joiner and byte-order mark", "\ufeff7\u2060654", "7654"],
  ["full-width digits and signs", "－７，６５４．５％", "-7,654.5%"],
  ["full-width brackets and letters", "（ｘ＝１）", "(x=1)"],
  ["minus sign", "\u22127", "-7"],
  ["no-break hyphen", "twenty\u2011one", "twenty-one"],
  ["Arabic digits and signs", "٧٬٦٥٤٫٥", "7,654.5"],
  ["Persian digits", "۷۶", "76"],
  ["Devanagari digits", "७६", "76"],
  ["Swiss marks of thousands", "1'600 and 7’654’321", "1600 and 7654321"],
  ["fraction slash", "1\u20442", "1/2"],
])("%s: %j is %j", (_what, text, plain) => {
  expect(plainTypography(text)).toBe(plain);
});

test.each([
  ["a blank may separate two numbers", "in 2024 500 people", "in 2024 500 people"],
  ["a year is no group of digits", "in 2024\u00a0500 people", "in 2024 500 people"],
  ["two digits are no group", "1\u00a023", "1 23"],
  ["nor are four", "1\u00a02345", "1 2345"],
  ["a fraction behind a whole number", "2\u00a0100/200", "2 100/200"],
  ["feet and inches", "5'10 and 5'100'", "5'10 and 5100'"],
  ["a list", "1,\u00a0234", "1, 234"],
  ["a full-width dollar sign is a dollar that is meant", "＄7", "＄7"],
  ["plain text", "$7{,}5 \\frac{1}{2}$", "$7{,}5 \\frac{1}{2}$"],
])("%s: %j is %j", (_why, text, plain) => {
  expect(plainTypography(text)).toBe(plain);
});

test.each([
  ["points and a comma", "It is 1.600,50.", "It is 1600.50."],
  ["a blank and a comma", "1 600,50", "1600.50"],
  ["a narrow blank and a comma", "1\u202f600,5 €", "1600.5 €"],
  ["Swiss marks and a comma", "1’234’600,50", "1234600.50"],
  ["points alone, two or more", "1.234.567", "1234567"],
  ["groups of India", "10,00,000 and 12,34,567", "1000000 and 1234567"],
  ["cents before a currency", "18,00 € and 7,50 EUR", "18.00 € and 7.50 EUR"],
  ["cents behind a currency", "€18,50 and R$ 7,25", "€18.50 and R$ 7.25"],
  ["one point is a decimal point", "1.600", "1.600"],
  ["a comma alone may separate", "3,14 and (1,25)", "3,14 and (1,25)"],
  ["numbers of versions", "1.2.3 and 10.0.0.1", "1.2.3 and 10.0.0.1"],
  ["a list of numbers", "1,234,567 and 12,34,56", "1,234,567 and 12,34,56"],
  ["a year and a number", "in 2024 500,50", "in 2024 500,50"],
])("numbers as other countries write them: %s", (_what, text, plain) => {
  expect(plainDecimals(text)).toBe(plain);
});

test("hostile texts are read in linear work", () => {
  for (const piece of [
    "1\u00a0",
    "111\u2009",
    ".111\\,",
    "\u200b",
    "\\text",
    "1{,}",
    "９",
    "1.111",
    "1’111",
    "11,",
    "€1,",
  ]) {
    plainDecimals(piece.repeat(100_000));
    expect(plainTypography(piece.repeat(100_000)).length).toBeLessThanOrEqual(piece.length * 100_000);
  }
});
