import { expect, test } from "vitest";
import { PlainNumber, wholeNumber } from "../../src/contract/primitives.ts";

test.each([
  ["0", 0],
  ["7", 7],
  ["1000", 1000],
])("%s is a whole number", (text, number) => {
  expect(wholeNumber(0, 1000).parse(text)).toBe(number);
});

test.each(["0x10", "1e2", " 10", "10 ", "+5", "-0", "-1", "1.0", "007", "", "1001", "1,000", "٣", "9".repeat(400)])(
  "%j is not one, or out of bounds",
  (text) => {
    expect(wholeNumber(0, 1000).safeParse(text).success).toBe(false);
  },
);

test("the error for a number out of bounds has the bounds", () => {
  const said = (text: string, most?: number) => wholeNumber(1, most).safeParse(text).error?.issues[0]?.message;
  expect(said("101", 100)).toBe("must be a whole number from 1 to 100, in digits");
  expect(said("0")).toBe("must be a whole number of at least 1, in digits");
});

test("a number is written as in JSON", () => {
  const read = ["0.5", "-1", "1e-7", "2E+3"].map((text) => PlainNumber.parse(text));
  expect(read).toEqual([0.5, -1, 1e-7, 2000]);
  for (const text of [".5", "0x10", "+1", " 1", "1.", "Infinity", "NaN", "1e999", ""]) {
    expect(PlainNumber.safeParse(text).success, text).toBe(false);
  }
});
