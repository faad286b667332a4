/**
 * An order of a few things, by chance: Fisher and Yates' shuffle. Every order is as likely as any other, as far as the words
 * it draws from are; for places of a dataset, which are never all written down, see permutation.ts.
 */

/** The numbers 0..length−1 in the order that `word` decides, a stream of unsigned 32-bit words. `length` is below 2^32. */
export function shuffledOrder(length: number, word: () => number): number[] {
  const order = Array.from({ length }, (_, at) => at);
  for (let left = length; left > 1; left -= 1) {
    const taken = order.splice(drawnBelow(left, word), 1);
    order.push(...taken);
  }
  return order;
}

/** Words that would make the small numbers likelier are drawn again: one in two at most. */
function drawnBelow(bound: number, word: () => number): number {
  const most = 2 ** 32 - (2 ** 32 % bound);
  for (;;) {
    const drawn = word();
    if (drawn < most) return drawn % bound;
  }
}
