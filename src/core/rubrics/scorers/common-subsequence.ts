/** How much two sequences have in common, in order: 32 places of one are compared with a place of the other at a time. */
import { type Budgeted, spendWork, withThousands } from "../work.ts";

/** Pairs of items for each step, measured: some 7 ns for 32 pairs. */
const PAIRS_AT_ONCE = 200;
const BITS = 32;
const OVERFLOW = 2 ** BITS;

/**
 * Length of the longest common subsequence (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"). `args`: of
 * the scoring function that asks, whose budget the product of the lengths counts for; `items`: what an error calls them.
 * Throws `WorkBudgetError`.
 */
export function commonSubsequence(
  a: readonly string[],
  b: readonly string[],
  args: Budgeted = {},
  items = "items",
): number {
  const lengths = `${withThousands(a.length)} with ${withThousands(b.length)} ${items}`;
  spendWork(args, (a.length * b.length) / PAIRS_AT_ONCE, `comparing ${lengths}`);
  const numbers = new Map<string, number>();
  const [rows, columns] = [numbered(a, numbers), numbered(b, numbers)];
  const masks = new Int32Array(numbers.size);
  /** Of each column, what the rows above carry over to the next 32. */
  const carries = new Uint8Array(columns.length);
  let length = 0;
  for (let from = 0; from < rows.length; from += BITS) {
    const block = rows.subarray(from, from + BITS);
    for (const [bit, item] of block.entries()) masks[item] = (masks[item] ?? 0) | (1 << bit);
    length += zeroBits(matchBlock(masks, columns, carries), block.length);
    for (const item of block) masks[item] = 0;
  }
  return length;
}

/** A bit for each row of the block: 0 where the subsequence grows. */
function matchBlock(masks: Int32Array, columns: Uint32Array, carries: Uint8Array): number {
  let open = -1;
  for (let at = 0; at < columns.length; at += 1) {
    const mask = masks[columns[at] ?? 0] ?? 0;
    const sum = (open >>> 0) + ((open & mask) >>> 0) + (carries[at] ?? 0);
    carries[at] = sum >= OVERFLOW ? 1 : 0;
    open = sum | (open & ~mask);
  }
  return open;
}

function zeroBits(bits: number, count: number): number {
  let zeros = 0;
  for (let bit = 0; bit < count; bit += 1) zeros += 1 - ((bits >>> bit) & 1);
  return zeros;
}

function numbered(items: readonly string[], numbers: Map<string, number>): Uint32Array {
  return Uint32Array.from(items, (item) => {
    const number = numbers.get(item) ?? numbers.size;
    numbers.set(item, number);
    return number;
  });
}
