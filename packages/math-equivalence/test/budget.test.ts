import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { MATH_LIMITS, NoVerdictError, OverBudgetError } from "../budget.ts";
import { mathEqual } from "../equivalence.ts";

const SURDS = "\\sqrt2+\\sqrt3+\\sqrt5+\\sqrt7+\\sqrt{11}+\\sqrt{13}";
const nested = (times: number, open: string, close: string) => `${open.repeat(times)}x${close.repeat(times)}`;

describe("with every clock stopped", () => {
  beforeEach(() => {
    vi.spyOn(Date, "now").mockReturnValue(0);
    vi.spyOn(performance, "now").mockReturnValue(0);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  test.each([
    ["a tower of powers", "9^{9^{9^9}}", "5"],
    ["a tower without braces", "9^9^9^9", "1"],
    ["a power of a huge power", "(9^{9999})^{9999}", "1"],
    ["a huge factorial", "99999!", "1"],
    ["a factorial of a factorial", "(50!)!", "1"],
    ["a huge binomial coefficient", "\\binom{100000}{50000}", "1"],
    ["a number of 40,000 digits", "1".repeat(40_000), "2"],
    ["a decimal with a huge exponent", "1e99999999999", "1"],
    ["a giant expansion", "(x+1)^{5000}", "(1+x)^{5000}"],
    ["an expansion of many variables", "(x+y+z+w)^{30}", "(w+x+y+z)^{30}"],
    ["an expansion with a huge exponent", `(x+1)^{${"9".repeat(1900)}}`, "x"],
    ["powers of sums of roots", `(${SURDS})^{20}`, `(\\sqrt{13}+${SURDS}-\\sqrt{13})^{20}`],
    ["brackets nested 20,000 deep", nested(20_000, "(", ")"), "x"],
    ["fractions nested 200 deep", nested(200, "\\frac{1}{1+", "}"), "x"],
    ["roots nested 200 deep", nested(200, "\\sqrt{", "}"), "x"],
    ["12,000 signs", nested(12_000, "-", ""), "x"],
    ["24,000 factors", "x ".repeat(24_000), "x"],
    ["25,000 entries", "1,".repeat(24_999), "1"],
  ])("%s is given up", (_what, answer, target) => {
    expect(() => mathEqual(answer, target)).toThrow(OverBudgetError);
  });

  test.each([
    ["brackets nested 200 deep", nested(200, "(", ")"), "x", true],
    ["a quotient of numbers of 1,900 digits", `\\frac{${"7".repeat(1900)}}{${"3".repeat(1900)}}`, "7/3", true],
    ["the root of a number of 1,900 digits", `\\sqrt{${"7".repeat(1900)}}`, "x", false],
    ["a huge exponent of a variable", `x^{${"9".repeat(1900)}}`, "x", false],
    ["a power that is told from the target by its value", "(x+1)^{600}", "x", false],
    ["240 terms", `1${"+1".repeat(239)}`, "240", true],
    ["30,000 braces", "}".repeat(30_000), "1", false],
    ["8,000 texts in texts", "\\text{".repeat(8000), "1", false],
    ["49,000 digits and dots", "1.".repeat(24_500), "1", false],
  ])("%s is decided", (_what, answer, target, equal) => {
    expect(mathEqual(answer, target)).toBe(equal);
  });
});

test("an answer of more than 50,000 characters is wrong, even if it is the target", () => {
  const long = "1".repeat(MATH_LIMITS.characters + 1);
  expect(mathEqual(long, long)).toBe(false);
  expect(mathEqual(long, long, { maxCharacters: 100_000 })).toBe(true);
});

test("a target of more than 50,000 characters is never read: it equals its own text, apart from spacing", () => {
  for (const long of ["-".repeat(1_000_000), "1,".repeat(500_000), "\\{".repeat(500_000)]) {
    const spend = vi.fn();
    expect(mathEqual("1", long, { spend })).toBe(false);
    expect(spend).not.toHaveBeenCalled();
  }
  const padded = `1${" ".repeat(MATH_LIMITS.characters)}+x`;
  expect(mathEqual("1 +x", padded)).toBe(true);
  expect(mathEqual("x + 1", padded)).toBe(false);
});

test("a budget that is used up is not a score, and has its own error class", () => {
  expect(() => mathEqual("9^{9999}", "x")).toThrow(NoVerdictError);
  expect(() => mathEqual("9^{9999}", "x")).toThrow("a number of more than 2000 digits");
});
