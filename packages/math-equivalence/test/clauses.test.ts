/** Clauses next to the answer: their values are not taken for it. */
import { expect, test } from "vitest";
import { extractMarkedAnswer, extractMathAnswer, extractToldNumber } from "../extract.ts";
import { readNumber } from "../number.ts";

test.each([
  ["The answer is $x=3$, not $x=4$.", "x=3"],
  ["The probability is $\\frac38$ and not $\\frac12$.", "\\frac38"],
  ["It is \\(a\\), rather than \\(b\\).", "a"],
  ["Thus $x=2$ (reject $x=-3$).", "x=2"],
  ["Therefore $x=4$, rejecting $x=-1$.", "x=4"],
  ["We conclude $x = 7$; discard $x = -7$.", "x = 7"],
  ["Final answer: $x=3$ (not $x=4$)", "x=3"],
  ["$x=1$ doesn't work, so $x=2$.", "x=2"],
])("a formula that is denied or rejected is not the answer: %j gives %j", (reply, answer) => {
  expect(extractMathAnswer(reply)).toBe(answer);
});

test.each([
  ["So the answer is $2$, since $n = 5$.", "2"],
  ["It is \\( \\sqrt2 \\) since \\( (\\sqrt2)^2 = 2 \\).", "\\sqrt2"],
  ["The minimum is $2\\sqrt3$, attained at $x=\\sqrt3$.", "2\\sqrt3"],
  ["The value of $k$ is $12$, and we can verify that $12 - 7 = 5$.", "12"],
  ["Let $y=2$. Then $x = 5$. Check: $5+2=7$.", "x = 5"],
  ["The answer is $10$, whereas the answer key says $11$.", "10"],
  ["Hence $f(x) = 5$ for all $x > 2$.", "f(x) = 5"],
  ["Since $x=3$, the answer is 12.", "12"],
  ["Rejecting $x=-1$, we get $x=4$.", "x=4"],
  ["The function is increasing for $x>2$.", "x>2"],
  ["The solution of $x^2>4$ with $x>0$ is $x>2$.", "x>2"],
  ["We find $a = 4$ and discard the negative root $a = -4$.", "a = 4"],
  ["This gives $k = 6$, while the extraneous root $k = -2$ is rejected.", "k = 6"],
  ["Hence the answer is $4$, for if $n = 5$ we would get a contradiction.", "4"],
  ["The result is $4$, which is smaller than $5$.", "4"],
  ["We can write $f(x)$ as $x+1$.", "x+1"],
  ["The answer is $\\frac12$, or $0.5$.", "0.5"],
  ["So it is \\fbox{5}", "5"],
  ["**Answer: 5** ✅", "5"],
])("a formula next to the answer is not the answer: %j gives %j", (reply, answer) => {
  expect(extractMathAnswer(reply)).toMatch(answer);
  expect(extractMathAnswer(reply)).toHaveLength(answer.length);
});

test.each([
  "$5$ is wrong.",
  "We can't have $x = 5$.",
  "Is it $5$?",
  "Could it be $5$?",
  "It's either $5$ or $6$.",
  "It isn't $5$.",
  "The answer cannot be $5$.",
  "The answer key says $5$.",
  "Nobody knows whether it equals $5$.",
  "I would say $4$ or perhaps $5$.",
])("%j gives no formula", (reply) => {
  expect(extractMathAnswer(reply)).toBeNull();
});

function numberOf(reply: string): string | null {
  const marked = extractMarkedAnswer(reply);
  return marked === null ? extractToldNumber(reply) : readNumber(marked);
}

test.each([
  "**Answer: 18** ✅",
  "#### 18 ✅",
  "Answer: 18 🎉",
  "✔ 18",
  "The answer is 18, not 20.",
  "Answer: 18 (not 20)",
  "Answer: 18 (instead of 20)",
  "Kylar needs to pay $18 for 16 glasses.",
  "She has to save $18 for 3 weeks.",
  "It costs $18, a saving of $2.",
  "So it is 18.\n\nConfidence: 95%",
  "So it is 18.\n\n(Word count: 42)",
  "So it is 18.\n\n*Step 1 used 16, Step 2 used 9.*",
  "So it is 18.\n\nIf you have 2 more questions, feel free to ask",
  "She makes $18, which is 2 more than last week's $16.",
  "She is 18, 5 years older than her brother, who is 13.",
  "The answer is 18, although the answer key says 20.",
  "I get 18, contrary to the expected 20.",
  "I get 18. The answer key says 20.",
  "The answer is 18, but the textbook says 20.",
  "Compared to last week's 20, she made 18.",
  "She made 18 compared to last week's 20.",
  "It is $18, 2 dollars cheaper than the $20 before.",
  "Mark has 18 flowers in his garden: 10 yellow and 8 purple.",
  "Ken's box weighed 18 pounds, 4 times what it weighed before the last step.",
  "Final answer: Tina earns $18 ✅\n\n(That is for 5 days of 10 hours.)",
  "The total comes to 18 clips — not 96, as one might first think.",
  "So they discard 18 apples a day.",
  "Each day 18 bottles are discarded.",
  "So 18 students cannot swim.",
  "They reject 18 of the 20 bottles.",
  "He wrote a check for $18.",
  "He went from 12 to 18.",
])("%j gives the number 18", (reply) => {
  expect(numberOf(reply)).toBe("18");
});

test.each([
  "It is between 18 and 20.",
  "It is from 18 to 20.",
  "It takes from 18 to 20 days.",
  "It is at least 20.",
  "at most 20",
  "up to 20",
  "She earns over 20.",
  "Answer: over 20",
  "Answer: at least 20",
  "It is twice 20.",
  "It is half of 20.",
  "It is 20 times 3.",
  "There are 20+3 eggs.",
  "Answer: 20+3 eggs",
  "She has 20 squared.",
  "In 3 days she earns more than 18.",
  "\\boxed{20\\text{ squared}}",
  "\\boxed{2\\text{ thirds}}",
])("%j gives no number", (reply) => {
  expect(numberOf(reply)).toBeNull();
});

test.each([
  ["The answer is minus 20.", "-20"],
  ["It is negative 20.", "-20"],
  ["minus 20", "-20"],
  ["It takes 2 and a half hours.", "2.5"],
  ["It takes 2½ hours.", "2.5"],
  ["It takes 2 1/2 hours.", "2.5"],
  ["It is ½.", "0.5"],
  ["It takes 3 and three quarters hours.", "3.75"],
  ["\\boxed{20\\text{k}}", "20000"],
  ["\\boxed{1.5 \\text{ million dollars}}", "1500000"],
  ["It is $20M.", "20000000"],
  ["It is £20m.", "20000000"],
  ["It is 20m.", "20"],
  ["It is 20 bn.", "20000000000"],
  ["The profit is $20K.", "20000"],
  ["So it costs \\$1.6k.", "1600"],
  ["So it costs $1.2345k.", "1234.5"],
])("signs and sizes count: %j gives %s", (reply, number) => {
  expect(numberOf(reply)).toBe(number);
});

test.each([
  ", which is 5 ",
  "the book says 5 ",
  ", a saving of 5 ",
  ", 5 more than ",
  "$5$ ",
  "\\(a\\)",
  "✅",
  "½",
  "1 1/2 ",
])("a reply that consists of %j is read in linear work", (unit) => {
  const reply = unit.repeat(200_000 / unit.length);
  expect(() => [extractMathAnswer(reply), extractToldNumber(reply)]).not.toThrow();
});
