import fc from "fast-check";
import { expect, test } from "vitest";
import { mathEqual } from "../equivalence.ts";

const coefficient = fc.integer({ min: -9, max: 9 });
const factors = fc.array(fc.tuple(coefficient, coefficient), { minLength: 1, maxLength: 5 });

/** Coefficients of the product of all (a x + b), the constant first. */
function expand(list: readonly (readonly [number, number])[]): number[] {
  return list.reduce<number[]>(
    (product, [a, b]) => {
      const next = new Array<number>(product.length + 1).fill(0);
      for (const [at, value] of product.entries()) {
        next[at] = (next[at] ?? 0) + value * b;
        next[at + 1] = (next[at + 1] ?? 0) + value * a;
      }
      return next;
    },
    [1],
  );
}

function polynomial(coefficients: readonly number[]): string {
  return coefficients.map((value, at) => `(${value})x^{${at}}`).join("+");
}

test("a product of linear factors equals its expansion, and no expansion that is off by one", () => {
  fc.assert(
    fc.property(factors, fc.nat(), (list, at) => {
      const product = list.map(([a, b]) => `(${a}x+${b})`).join("");
      const right = expand(list);
      const wrong = right.with(at % right.length, (right[at % right.length] ?? 0) + 1);
      expect(mathEqual(product, polynomial(right))).toBe(true);
      expect(mathEqual(product, polynomial(wrong))).toBe(false);
    }),
    { numRuns: 25, seed: 7 },
  );
});

test("fractions are equal if their cross products are", () => {
  const part = fc.bigInt({ min: 1n, max: 10n ** 40n });
  fc.assert(
    fc.property(part, part, part, (over, under, times) => {
      const scaled = `\\frac{${over * times}}{${under * times}}`;
      expect(mathEqual(scaled, `${over}/${under}`)).toBe(true);
      expect(mathEqual(scaled, `${over + 1n}/${under}`)).toBe(false);
    }),
    { numRuns: 25, seed: 7 },
  );
});

test("any text gets a result", () => {
  const pieces = fc.constantFrom(
    ..."x y f g AB 1 23 .5 1,234 ( ) [ ] { } \\{ \\} + - * / ^ _ ! | , : = < \\le \\ne \\approx \\in \\frac \\sqrt \\sin \\ln".split(
      " ",
    ),
    ..."\\pi e i z \\pm \\cup \\setminus \\infty % \\text{ \\text{cm} \\text{word} or and \\mathbb{R} \\bar ' \\over".split(
      " ",
    ),
    ..."\\begin{cases} \\end{cases} & \\\\ \\$ ^\\circ \\angle million AM \\not \\int \\dots km/h per (B) |x|".split(
      " ",
    ),
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 14 }), (list) => {
      const text = list.join(" ");
      expect(mathEqual(text, "x+1")).toBeTypeOf("boolean");
    }),
    { numRuns: 200, seed: 7 },
  );
});
