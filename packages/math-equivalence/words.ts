/** Numbers that are written as words. */
import type { Token } from "./token.ts";

const SMALL = [
  "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen",
  "eighteen nineteen",
]
  .join(" ")
  .split(" ");
const TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const SCALES = new Map([
  ["dozen", 12n],
  ["hundred", 100n],
  ["thousand", 10n ** 3n],
  ["million", 10n ** 6n],
  ["billion", 10n ** 9n],
  ["trillion", 10n ** 12n],
]);
const VALUES = new Map([
  ...SMALL.map((word, value) => [word, BigInt(value)] as const),
  ...TENS.map((word, at) => [word, BigInt(20 + 10 * at)] as const),
]);

/** `twenty-one` becomes the number 21, `per cent` its sign, and `2.5 million` the product of two numbers. */
export function joinNumberWords(tokens: readonly Token[]): Token[] {
  const joined: Token[] = [];
  for (let at = 0; at < tokens.length; ) {
    if (isPerCent(tokens, at)) {
      joined.push({ kind: "mark", text: "%" });
      at += 2;
      continue;
    }
    const scale = scaleOf(tokens[at]);
    if (joined.at(-1)?.kind === "number" && scale !== undefined) {
      joined.push({ kind: "mark", text: "*" }, { kind: "number", text: String(scale) });
      at += 1;
      continue;
    }
    const { value, length } = readNumber(tokens, at);
    const token = tokens[at];
    if (length > 0) joined.push({ kind: "number", text: String(value), spaced: true });
    else if (token !== undefined) joined.push(token);
    at += Math.max(length, 1);
  }
  return joined;
}

function isPerCent(tokens: readonly Token[], at: number): boolean {
  return /^per$/i.test(tokens[at]?.text ?? "") && /^cent$/i.test(tokens[at + 1]?.text ?? "");
}

/** The number whose words start at `start`, and how many tokens it takes: 0 when none starts there. */
function readNumber(tokens: readonly Token[], start: number): { readonly value: bigint; readonly length: number } {
  let sum: Sum = { total: 0n, group: 0n };
  let at = start;
  for (;;) {
    const joint = at > start && /^(?:-|and)$/.test(tokens[at]?.text ?? "") ? 1 : 0;
    const next = add(sum, tokens[at + joint], at === start ? undefined : tokens[at + joint - 1]);
    if (next === undefined) return { value: sum.total + sum.group, length: at - start };
    sum = next;
    at += joint + 1;
  }
}

/** The thousands read so far, and what is below them. */
interface Sum {
  readonly total: bigint;
  readonly group: bigint;
}

/** Undefined where the word does not go on with the number: "two, three" and "two and three" are two. */
function add({ total, group }: Sum, word: Token | undefined, before: Token | undefined): Sum | undefined {
  const [value, scale] = [smallOf(word), scaleOf(word)];
  if (value !== undefined) {
    return before === undefined || fits(total, group, value, before) ? { total, group: group + value } : undefined;
  }
  if (scale === undefined) return undefined;
  const times = (group === 0n ? 1n : group) * scale;
  return scale < 1000n ? { total, group: times } : { total: total + times, group: 0n };
}

/** Ones after tens, with or without a stroke; anything below a hundred after hundreds and above. */
function fits(total: bigint, group: bigint, value: bigint, before: Token): boolean {
  if (group % 100n === 0n) return total + group > 0n && before.text !== "-";
  return before.text !== "and" && group % 100n >= 20n && group % 10n === 0n && value > 0n && value < 10n;
}

function smallOf(token: Token | undefined): bigint | undefined {
  return token?.kind === "word" ? VALUES.get(token.text.toLowerCase()) : undefined;
}

function scaleOf(token: Token | undefined): bigint | undefined {
  return token?.kind === "word" ? SCALES.get(token.text.toLowerCase()) : undefined;
}
