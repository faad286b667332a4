/** Reads numbers that are written as words. */
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
    const token = tokens[at];
    if (joined.length === 0 && isMinus(tokens, at)) {
      joined.push({ kind: "mark", text: "-" });
      at += 1;
      continue;
    }
    const fraction = readFraction(tokens, at);
    if (fraction !== undefined) {
      joined.push(...fraction.tokens);
      at += fraction.length;
      continue;
    }
    const { value, length } = readNumber(tokens, at);
    if (length > 0) joined.push({ kind: "number", text: String(value), spaced: true });
    else if (token !== undefined) joined.push(token);
    at += Math.max(length, 1);
  }
  return joined;
}

/** `negative five` */
function isMinus(tokens: readonly Token[], at: number): boolean {
  const isWord = tokens[at]?.kind === "word" && /^(?:negative|minus)$/i.test(tokens[at]?.text ?? "");
  return isWord && (tokens[at + 1]?.kind === "number" || readNumber(tokens, at + 1).length > 0);
}

const PARTS = new Map(
  "third fourth fifth sixth seventh eighth ninth tenth".split(" ").map((word, at) => [word, BigInt(at + 3)] as const),
);

/** `two thirds`, `one half`, `one and two thirds`, as tokens; quarters are coins too. */
function readFraction(tokens: readonly Token[], start: number): { tokens: Token[]; length: number } | undefined {
  const first = readNumber(tokens, start);
  const next = start + first.length;
  if (first.length === 0) return undefined;
  const part = partAt(tokens, next, first.value);
  if (part !== undefined) return { tokens: fractionOf(first.value, part.under), length: part.end - start };
  if (tokens[next]?.text !== "and") return undefined;
  const { value, length } = readNumber(tokens, next + 1);
  const mixed = length === 0 ? undefined : partAt(tokens, next + 1 + length, value);
  if (mixed === undefined) return undefined;
  const whole: Token = { kind: "number", text: String(first.value), spaced: true };
  return { tokens: [whole, ...fractionOf(value, mixed.under)], length: mixed.end - start };
}

/** The denominator that this count refers to: one third, two thirds. */
function partAt(tokens: readonly Token[], at: number, count: bigint): { under: bigint; end: number } | undefined {
  const start = tokens[at]?.text === "-" ? at + 1 : at;
  const token = tokens[start];
  const word = token?.kind === "word" ? token.text.toLowerCase() : "";
  const singular = word === "half" || word === "halves" ? "half" : word.replace(/s$/, "");
  const under = singular === "half" ? 2n : PARTS.get(singular);
  const isOne = word === singular;
  return under === undefined || isOne !== (count === 1n) ? undefined : { under, end: start + 1 };
}

function fractionOf(over: bigint, under: bigint): Token[] {
  const [open, close] = [{ kind: "mark", text: "{" } as const, { kind: "mark", text: "}" } as const];
  const number = (value: bigint): Token => ({ kind: "number", text: String(value) });
  return [{ kind: "mark", text: "frac" }, open, number(over), close, open, number(under), close];
}

function isPerCent(tokens: readonly Token[], at: number): boolean {
  return /^per$/i.test(tokens[at]?.text ?? "") && /^cent$/i.test(tokens[at + 1]?.text ?? "");
}

/** The number whose words start at `start`, and how many tokens it takes: 0 if none starts there. */
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

/** The thousands read so far, and the part below them. */
interface Sum {
  readonly total: bigint;
  readonly group: bigint;
}

/** Undefined if the word does not continue the number: "two, three" and "two and three" are two numbers. */
function add({ total, group }: Sum, word: Token | undefined, before: Token | undefined): Sum | undefined {
  const [value, scale] = [smallOf(word), scaleOf(word)];
  if (value !== undefined) {
    return before === undefined || fits(total, group, value, before) ? { total, group: group + value } : undefined;
  }
  if (scale === undefined) return undefined;
  const times = (group === 0n ? 1n : group) * scale;
  return scale < 1000n ? { total, group: times } : { total: total + times, group: 0n };
}

/** Ones after tens, with or without a hyphen; anything below a hundred after hundreds and above. */
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
