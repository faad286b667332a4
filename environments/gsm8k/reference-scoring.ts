/**
 * The two scores that the published tables of GSM8K use, as the lm-evaluation-harness computes them (task `gsm8k`,
 * version 3): the filter `strict-match` or `flexible-extract`, then `exact_match`.
 */

/** What the filters give for a reply in which they find nothing. */
const NOTHING = "[invalid]";

/** The first number after `#### `. */
export function strictMatch(reply: string): string {
  return normalized(/#### (-?[0-9.,]+)/.exec(reply)?.[1] ?? NOTHING);
}

/** The last number: any run of two or more digits, commas, points and dollars, or a digit alone. */
export function flexibleExtract(reply: string): string {
  let last = NOTHING;
  for (const [number] of reply.matchAll(/-?[$0-9.,]{2,}|-?[0-9]+/g)) last = number;
  return normalized(last);
}

/** The answer of a row. Throws if it has no digit: the score is missing then, because any comparison would be wrong. */
export function referenceGold(answer: string): string {
  const gold = normalized(answer);
  if (!/[0-9]/.test(gold)) throw new Error("answer: has no number after its last `#### `: correct the row");
  return gold;
}

/** Without commas and dollars, what comes before the last `#### `, and a point at the end. */
export function normalized(text: string): string {
  const plain = text.trim().replace(/[,$]/g, "");
  const mark = plain.lastIndexOf("#### ");
  return (mark < 0 ? plain : plain.slice(mark + 5)).replace(/\.$/, "").toLowerCase();
}
