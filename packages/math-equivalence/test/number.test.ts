import { expect, test } from "vitest";
import { readNumber } from "../number.ts";

test.each([
  ["1{,}250", "1250"],
  ["1,\\!250", "1250"],
  ["1\\,250", "1250"],
  ["1\\text{,}250", "1250"],
  ["1,250.00", "1250"],
  ["12,50,000", "1250000"],
  ["\\$24", "24"],
  ["-\\$24", "-24"],
  ["€24", "24"],
  ["USD 24", "24"],
  ["24\\text{ roses}", "24"],
  ["24 roses per week", "24"],
  ["24 \\text{ m/s}", "24"],
  ["24\\text{ cm}^2", "24"],
  ["24^\\circ\\text{C}", "24"],
  ["24 m", "24"],
  ["24\\%", "24"],
  ["24.50", "24.5"],
  [".50", "0.5"],
  ["0024", "24"],
  ["-0.0", "0"],
  ["\\mathbf{24}", "24"],
  ["\\text{Total: }24", "24"],
  ["x = 24", "24"],
  ["8 \\cdot 3 = 24", "24"],
  ["\\frac{49}{2}", "24.5"],
  ["24\\frac12", "24.5"],
  ["-1/8", "-0.125"],
  ["\\frac{7}{3}", "7/3"],
  ["2.4 \\times 10^1", "24"],
  ["2\\text{ million}", "2000000"],
  ["24 roses a day", "24"],
  ["two dozen", "24"],
])("%j is the number %s", (text, number) => {
  expect(readNumber(text)).toBe(number);
});

test.each([
  "",
  "no idea",
  "24 or 25",
  "24, 25",
  "24x",
  "24:30",
  "8 \\cdot 3 = 25",
  "1,25",
  "24/0",
  "24\\text{ roses and }3",
  "2\\text{ hours }30\\text{ minutes}",
  "9^{9999}",
  "2".repeat(1001),
])("%j is not a number, or more than one", (text) => {
  expect(readNumber(text)).toBeNull();
});
