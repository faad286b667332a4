/** How each benchmark asks, and how the lm-evaluation-harness finds the letter in a reply. */
import { LETTERS, type Question } from "./rows.ts";

export interface Style {
  readonly systemPrompt: string;
  /** Shuffles the options if the arguments name no seed; null: they keep their order. */
  readonly usualSeed: number | null;
  readonly clean: (option: string) => string;
  readonly prompt: (question: Question) => string;
  /** The letter that the reference finds; null if it finds none. */
  readonly referenceLetter: (reply: string, options: readonly string[]) => string | null;
}

const STEPS = "Think step by step and then finish your answer with";

export const STYLES: Readonly<Record<"mmlu_pro" | "gpqa", Style>> = {
  mmlu_pro: {
    systemPrompt: `The following are multiple choice questions (with answers). ${STEPS} "the answer is (X)" where X is the correct letter choice.`,
    usualSeed: null,
    clean: (option) => option.trim(),
    prompt: ({ text, options }) =>
      `Question:\n${text}\nOptions:\n${options.map((option, at) => `${LETTERS[at]}. ${option}\n`).join("")}Answer: Let's think step by step.`,
    referenceLetter: (reply) => /answer is \(?([ABCDEFGHIJ])\)?/.exec(reply)?.[1] ?? null,
  },
  gpqa: {
    systemPrompt: `${STEPS} "The answer is (X)." where X is the correct letter choice.`,
    usualSeed: 0,
    clean: (option) => option.trim().replaceAll(" [title]", ". ").replaceAll("  ", " "),
    prompt: ({ text, options }) =>
      `What is the correct answer to this question:${text}\nChoices:\n${options.map((option, at) => `(${LETTERS[at]}) ${option}\n`).join("")}Let's think step by step: `,
    referenceLetter: lastLetterOrOption,
  },
};

/** The last letter in brackets; else the last option whose text is in the reply; else the last letter after a colon. */
function lastLetterOrOption(reply: string, options: readonly string[]): string | null {
  const bracketed = Array.from(reply.matchAll(/\(([A-Z])\)/g), ([, letter]) => letter ?? "");
  if (bracketed.length > 0) return bracketed.at(-1) ?? null;
  const named = lastOption(
    plain(reply),
    options.map((option) => plain(option.trim())),
  );
  if (named !== null) return LETTERS[named] ?? null;
  const afterColon = new RegExp(`:\\s*([${LETTERS.slice(0, options.length)}])`, "g");
  return Array.from(reply.matchAll(afterColon), ([, letter]) => letter ?? "").at(-1) ?? null;
}

/** The index of the last of these texts, found from the left without overlaps; at one place the longest is taken. */
function lastOption(reply: string, options: readonly string[]): number | null {
  const byLength = options.map((_, at) => at).sort((a, b) => (options[a]?.length ?? 0) - (options[b]?.length ?? 0));
  /** The longest option that begins at each place, counted from 1; of equal options the last one counts. */
  const begins = new Uint8Array(reply.length);
  for (const option of byLength) for (const start of placesOf(options[option] ?? "", reply)) begins[start] = option + 1;
  let last: number | null = null;
  for (let at = 0; at < reply.length; ) {
    const option = (begins[at] ?? 0) - 1;
    if (option >= 0) last = option;
    at += options[option]?.length ?? 1;
  }
  return last;
}

/** Where a text begins in a reply, overlaps included: Knuth-Morris-Pratt, whose work grows with the length alone. */
function* placesOf(text: string, reply: string): Generator<number> {
  if (text === "") return;
  const borders = [0];
  for (let at = 1, length = 0; at < text.length; at += 1) {
    length = extended(length, text[at]);
    borders.push(length);
  }
  for (let at = 0, length = 0; at < reply.length; at += 1) {
    length = extended(length, reply[at]);
    if (length === text.length) yield at + 1 - length;
  }

  /** How much of the text is matched after one more character. */
  function extended(length: number, character: string | undefined): number {
    let matched = length;
    while (matched > 0 && text[matched] !== character) matched = borders[matched - 1] ?? 0;
    return text[matched] === character ? matched + 1 : 0;
  }
}

/** In lower case, without punctuation. */
function plain(text: string): string {
  return text.toLowerCase().replace(/\p{P}/gu, "");
}
