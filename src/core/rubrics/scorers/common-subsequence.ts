/** The common subsequence of two sequences. 32 items of one are compared with one of the other at a time. */
import { type Budgeted, spendWork, withThousands } from "../work.ts";

/** Pairs of items per step, measured: about 7 ns for 32 pairs. */
const PAIRS_AT_ONCE = 200;
const BITS = 32;
const OVERFLOW = 2 ** BITS;

/**
 * Length of the longest common subsequence (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"). `args`: the
 * calling scoring function's, whose budget is charged the product of the lengths; `items`: their name in an error.
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
  /** For each column, the carry of the rows above to the next 32. */
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

/** One bit per row of the block: 0 where the subsequence grows. */
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
