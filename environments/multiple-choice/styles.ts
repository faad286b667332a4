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
  const byLength = options.map((_, at) => at).sort((a, b) => (options[b]?.length ?? 0) - (options[a]?.length ?? 0));
  const texts = byLength.map((at) => options[at] ?? "").filter((text) => text !== "");
  if (texts.length === 0) return null;
  const pattern = new RegExp(texts.map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("|"), "g");
  const last = Array.from(reply.matchAll(pattern), ([text]) => text).at(-1);
  // Of equal options the last one counts.
  return last === undefined ? null : options.lastIndexOf(last);
}

/** In lower case, without punctuation. */
function plain(text: string): string {
  return text.toLowerCase().replace(/\p{P}/gu, "");
}
