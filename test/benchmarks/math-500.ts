/** The environment `math` on rows of MATH-500 against `math-verify`. */
import { loadEnvironment } from "../../environments/math/environment.ts";
import { type Answer, type Benchmark, type Draw, generate, scoresOf } from "./benchmark.ts";

function about(gold: string, reply: string): Omit<Answer, "kind"> {
  return { row: { question: "What is it?", answer: gold }, reply };
}

const boxed = (answer: string) => `Therefore the answer is $\\boxed{${answer}}$.`;
const numbers = (draw: Draw) => [draw.whole(2, 30), draw.whole(2, 9), draw.whole(11, 19)] as const;

/** A gold answer and one that is written otherwise: equal, or not. */
type Pair = (a: number, b: number, c: number) => readonly [gold: string, answer: string];
const pair = (make: Pair) => (draw: Draw) => {
  const [gold, answer] = make(...numbers(draw));
  return about(gold, boxed(answer));
};
const text = (make: (a: number, b: number, c: number) => readonly [gold: string, reply: string]) => (draw: Draw) =>
  about(...make(...numbers(draw)));

const KINDS = {
  "whole number": pair((a) => [`${a}`, `${a}`]),
  "whole number, wrong": pair((a) => [`${a}`, `${a + 1}`]),
  negative: pair((a) => [`-${a}`, `-${a}`]),
  "sign lost": pair((a) => [`-${a}`, `${a}`]),
  thousands: pair((a, b) => [`${a},${b}00`, `${a}${b}00`]),
  "thousands of LaTeX": pair((a, b) => [`${a}{,}${b}00`, `${a},\\!${b}00`]),
  "fraction as a decimal": pair((a) => [`\\frac{${a}}{4}`, `${a / 4}`]),
  "fraction not reduced": pair((a, b, c) => [`\\frac{${a}}{${c}}`, `\\frac{${a * b}}{${c * b}}`]),
  "fraction, dfrac": pair((a, _, c) => [`\\frac{${a}}{${c}}`, `\\dfrac{${a}}{${c}}`]),
  "fraction with a slash": pair((a, _, c) => [`\\frac{${a}}{${c}}`, `${a}/${c}`]),
  "fraction turned over": pair((a, b) => [`\\frac{${a}}{${a + b}}`, `\\frac{${a + b}}{${a}}`]),
  "negative fraction": pair((a, _, c) => [`-\\frac{${a}}{${c}}`, `\\frac{-${a}}{${c}}`]),
  root: pair((_, b) => [`${b}\\sqrt{2}`, `\\sqrt{${b * b * 2}}`]),
  "root, wrong": pair((_, b) => [`${b}\\sqrt{2}`, `${b}\\sqrt{3}`]),
  "root without braces": pair((_, b) => [`${b}\\sqrt{3}`, `${b}\\sqrt3`]),
  "sum in another order": pair((a, b) => [`x^2+${a}x+${b}`, `${b}+${a}x+x^2`]),
  "product expanded": pair((a, b) => [`(x+${a})(x-${b})`, `x^2+${a - b}x-${a * b}`]),
  "polynomial, wrong": pair((a, b) => [`x^2+${a}x+${b}`, `x^2+${a}x-${b}`]),
  "equation with its variable": pair((a) => [`${a}`, `x = ${a}`]),
  interval: pair((a, b) => [`(${a},${a + b})`, `\\left(${a}, ${a + b}\\right)`]),
  "interval of another kind": pair((a, b) => [`(${a},${a + b}]`, `[${a},${a + b})`]),
  tuple: pair((a, b, c) => [`(${a},${b},${c})`, `(${a}, ${b}, ${c})`]),
  "tuple in another order": pair((a, b) => [`(${a + 20},${b})`, `(${b},${a + 20})`]),
  "list in another order": pair((a, b) => [`${a + 20},${b}`, `${b}, ${a + 20}`]),
  set: pair((a, b) => [`\\{${a + 20},${b}\\}`, `\\{${b},${a + 20}\\}`]),
  "plus or minus": pair((_, b) => [`\\pm ${b}`, `-${b}, ${b}`]),
  degrees: pair((a) => [`${a}^\\circ`, `${a}`]),
  percent: pair((a) => [`${a}\\%`, `${a}\\%`]),
  money: pair((a) => [`\\$${a}.50`, `${a}.50`]),
  unit: pair((a) => [`${a}\\text{ cm}`, `${a}`]),
  text: pair(() => ["\\text{Evelyn}", "\\text{Evelyn}"]),
  "text without its command": pair(() => ["\\text{even}", "even"]),
  "text, wrong": pair(() => ["\\text{Evelyn}", "\\text{Debra}"]),
  "letter of a choice": pair(() => ["\\text{(C)}", "C"]),
  base: pair((a, b) => [`${a}_{${b + 2}}`, `${a}_${b + 2}`]),
  "multiple of pi": pair((a) => [`${a}\\pi`, `${a} \\pi`]),
  "pi as a decimal": pair((a) => [`${a}\\pi`, `${(a * Math.PI).toFixed(2)}`]),
  "complex number": pair((a, b) => [`${a}+${b}i`, `${b}i + ${a}`]),
  "complex number, wrong": pair((a, b) => [`${a}+${b}i`, `${a}-${b}i`]),
  power: pair((_, b) => [`2^{${b}}`, `${2 ** b}`]),
  "mixed number": pair((a, _, c) => [`${a}\\frac{1}{${c}}`, `\\frac{${a * c + 1}}{${c}}`]),
  matrix: pair((a, b) => [
    `\\begin{pmatrix} ${a} \\\\ ${b} \\end{pmatrix}`,
    `\\begin{pmatrix}${a}\\\\${b}\\end{pmatrix}`,
  ]),
  "infinite interval": pair((a) => [`(-\\infty,${a})`, `(-\\infty, ${a})`]),
  union: pair((a, b) => [`(-\\infty,${b})\\cup(${a + 20},\\infty)`, `(-\\infty, ${b}) \\cup (${a + 20}, \\infty)`]),
  "two boxes, the last right": text((a) => [`${a}`, `First \\boxed{${a + 1}}, no: \\boxed{${a}}`]),
  "two boxes, the last wrong": text((a) => [`${a}`, `First \\boxed{${a}}, no: \\boxed{${a + 1}}`]),
  "no box, in dollars": text((a, _, c) => [`\\frac{${a}}{${c}}`, `So the answer is $\\frac{${a}}{${c}}$.`]),
  "no box, final answer": text((a) => [`${a}`, `The final answer is ${a}.`]),
  "no box, wrong": text((a) => [`${a}`, `The final answer is ${a + 1}.`]),
  refusal: text((a) => [`${a}`, "I do not know."]),
  empty: text((a) => [`${a}`, ""]),
  "thought with another box": text((a) => [`${a}`, `<think>\\boxed{${a + 1}}</think> It is \\boxed{${a}}.`]),
  display: text((a, _, c) => [`\\frac{${a}}{${c}}`, `\\[\\boxed{\\frac{${a}}{${c}}}\\]`]),
};

const environment = await loadEnvironment();

export const MATH_500: Benchmark = {
  name: "math-500",
  answers: generate(212, 500, KINDS),
  score: async (answer) => ({ correct_answer: (await scoresOf(environment, answer)).reward === 1 }),
  deviations: {
    "correct_answer: two boxes, the last right":
      "only the last box is the answer; the reference wants all boxes of a reply",
  },
};
