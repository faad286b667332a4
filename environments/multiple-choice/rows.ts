/**
 * Rows of multiple-choice questions: the options in a list with the right one's letter or index (MMLU-Pro), or the right
 * answer and the wrong ones in fields of their own (GPQA).
 */
import * as z from "zod";

export const LETTERS = "ABCDEFGHIJ";

export interface Question {
  readonly text: string;
  readonly options: readonly string[];
  /** The index of the right option. */
  readonly right: number;
  /** The subject; null if the row names none. */
  readonly category: string | null;
}

const Text = z.string().min(1);
const Option = Text.max(2000);
const Listed = z.object({
  question: Text,
  options: z.array(Option).min(2).max(LETTERS.length),
  answer: z.union([z.string().regex(/^[A-J]$/, "must be a letter from A to J"), z.int().min(0)]),
  category: z.string().nullish(),
});
const Separate = z.object({
  question: Text,
  correct: Option,
  incorrect_1: Option,
  incorrect_2: Option.nullish(),
  incorrect_3: Option.nullish(),
  category: z.string().nullish(),
});

/** `clean` is applied to every option. With a seed the options are shuffled, the same way for every rollout of a row. */
export function questionRow(clean: (option: string) => string, seed: number | null) {
  return z.union([Listed, Separate]).transform((row, context): Question => {
    const given = "options" in row ? listed(row) : separate(row);
    if (given.right < 0 || given.right >= given.options.length) {
      context.addIssue({ code: "custom", path: ["answer"], message: `is none of the ${given.options.length} options` });
    }
    const order = given.options.map((_, at) => at);
    if (seed !== null) shuffle(order, randomOf(`${seed}:${row.question}`));
    return {
      text: row.question,
      options: order.map((at) => clean(given.options[at] ?? "")),
      right: order.indexOf(given.right),
      category: row.category ?? null,
    };
  });
}

function listed({ options, answer }: z.infer<typeof Listed>) {
  return { options, right: typeof answer === "number" ? answer : LETTERS.indexOf(answer) };
}

function separate({ correct, incorrect_1, incorrect_2, incorrect_3 }: z.infer<typeof Separate>) {
  const wrong = [incorrect_1, incorrect_2, incorrect_3].filter((text) => text !== undefined && text !== null);
  return { options: [correct, ...wrong], right: 0 };
}

/** Fisher-Yates. */
function shuffle(order: number[], random: () => number): void {
  for (let last = order.length - 1; last > 0; last -= 1) {
    const at = Math.floor(random() * (last + 1));
    [order[last], order[at]] = [order[at] ?? last, order[last] ?? at];
  }
}

/** Numbers from 0 up to 1 that depend on the text alone: FNV-1a, then mulberry32. */
function randomOf(text: string): () => number {
  let state = 0x811c9dc5;
  for (const character of text) state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 0x01000193);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
