/** Rows for runs whose questions a test writes itself. */
import type { Turns } from "./script.ts";

/** `count` questions of gsm8k; the first ones contain the given words. */
export function questions(count: number, words: readonly string[] = []) {
  return Array.from({ length: count }, (_, index) => ({
    question: `${words[index] ?? "plain"} question ${index}`,
    answer: "so it is #### 4",
  }));
}

/** The reply that gets a reward of 1 for them. */
export const RIGHT: Turns = ["\\boxed{4}"];
/** Finds every secret number up to three, one guess in each turn, never in the first turn. */
export const GUESSES: Turns = [0, 1, 2, 3].map((number) => ({
  tool_calls: [{ name: "guess", arguments: { number } }],
}));

export const down = { kind: "status", status: 500 } as const;
