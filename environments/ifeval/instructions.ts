/**
 * The 25 instructions of IFEval (Zhou et al., 2023), each with the arguments of a row and a check of a reply. They decide
 * as `instructions.py` of the lm-evaluation-harness does; README.md names the differences.
 */
import * as z from "zod";
import { languageOf, languageSteps } from "./language.ts";
import { sentencesOf } from "./sentences.ts";
import { countCapitalWords, countWords, isLower, isUpper } from "./words.ts";

type Check = (reply: string) => boolean;

const Count = z.int().min(0).max(100_000);
const Relation = z.enum(["less than", "at least"]);
const Text = z.string().min(1).max(10_000);
/** It is looked for in the whole reply, so its length is limited. */
const Keyword = Text.max(200);
const Keywords = z.array(Keyword).min(1).max(50);
const CONSTRAINED = ["My answer is yes.", "My answer is no.", "My answer is maybe."];
/** The edge of a word in a pattern: `\b` for letters of all scripts. */
const WORD = "[\\p{L}\\p{N}_]";
const EDGE = `(?:(?<=${WORD})(?!${WORD})|(?<!${WORD})(?=${WORD}))`;

/** Steps of work per character of a reply, measured on ordinary texts and rounded up. */
const SCAN = 2;
const SENTENCES = 8;
const CAPITALS = 12;
/** For each keyword. The slowest one of 200 characters takes less. */
const KEYWORD = 1;

/** The work of a check, by the length of the reply. */
type Steps = (length: number) => number;

const perCharacter =
  (steps: number): Steps =>
  (length) =>
    length * steps;
const ofKeywords = (count: number) => perCharacter(SCAN + count * KEYWORD);
const ofLanguage: Steps = (length) => length * SCAN + languageSteps(length);

/** An instruction whose arguments have this shape. */
function instruction<Shape extends z.ZodRawShape>(
  shape: Shape,
  make: (args: z.infer<z.ZodObject<Shape>>) => Check,
  steps: (args: z.infer<z.ZodObject<Shape>>) => Steps = () => perCharacter(SCAN),
) {
  const args = z.object(shape);
  return {
    args,
    checkOf: (given: unknown): Check => make(args.parse(given)),
    stepsOf: (given: unknown): Steps => steps(args.parse(given)),
  };
}

export const INSTRUCTIONS = {
  "keywords:existence": instruction(
    { keywords: Keywords },
    ({ keywords }) => {
      const patterns = keywords.map((keyword) => new RegExp(literal(keyword), "iu"));
      return (reply) => patterns.every((pattern) => pattern.test(reply));
    },
    ({ keywords }) => ofKeywords(keywords.length),
  ),
  "keywords:frequency": instruction(
    { keyword: Keyword, frequency: Count, relation: Relation },
    ({ keyword, frequency, relation }) => {
      const pattern = new RegExp(literal(keyword.trim()), "giu");
      return (reply) => compare(countOf(reply, pattern), relation, frequency);
    },
    () => ofKeywords(1),
  ),
  "keywords:forbidden_words": instruction(
    { forbidden_words: Keywords },
    ({ forbidden_words }) => {
      const patterns = forbidden_words.map((word) => new RegExp(`${EDGE}${literal(word)}${EDGE}`, "iu"));
      return (reply) => !patterns.some((pattern) => pattern.test(reply));
    },
    ({ forbidden_words }) => ofKeywords(forbidden_words.length),
  ),
  "keywords:letter_frequency": instruction(
    { letter: Text.max(1), let_frequency: Count, let_relation: Relation },
    ({ letter, let_frequency, let_relation }) => {
      return (reply) =>
        compare(reply.toLowerCase().split(letter.toLowerCase()).length - 1, let_relation, let_frequency);
    },
  ),
  "language:response_language": instruction(
    { language: Text },
    ({ language }) => {
      return (reply) => [language, null].includes(languageOf(reply));
    },
    () => ofLanguage,
  ),
  "length_constraints:number_sentences": instruction(
    { num_sentences: Count, relation: Relation },
    ({ num_sentences, relation }) =>
      (reply) =>
        compare(sentencesOf(reply).length, relation, num_sentences),
    () => perCharacter(SENTENCES),
  ),
  "length_constraints:number_paragraphs": instruction({ num_paragraphs: Count }, ({ num_paragraphs }) => {
    return (reply) => countParagraphs(reply) === num_paragraphs;
  }),
  "length_constraints:number_words": instruction(
    { num_words: Count, relation: Relation },
    ({ num_words, relation }) => {
      return (reply) => compare(countWords(reply), relation, num_words);
    },
  ),
  "length_constraints:nth_paragraph_first_word": instruction(
    { num_paragraphs: Count, nth_paragraph: Count.min(1), first_word: Text },
    ({ num_paragraphs, nth_paragraph, first_word }) =>
      (reply) => {
        const paragraphs = reply.split("\n\n");
        const count = paragraphs.filter((paragraph) => paragraph.trim() !== "").length;
        const nth = nth_paragraph <= count ? (paragraphs[nth_paragraph - 1] ?? "").trim() : "";
        return count === num_paragraphs && nth !== "" && firstWord(nth) === first_word.toLowerCase();
      },
  ),
  "detectable_content:number_placeholders": instruction({ num_placeholders: Count }, ({ num_placeholders }) => {
    return (reply) => countPlaceholders(reply) >= num_placeholders;
  }),
  "detectable_content:postscript": instruction({ postscript_marker: Keyword }, ({ postscript_marker }) => {
    const pattern = postscriptPattern(postscript_marker.trim());
    return (reply) => pattern.test(reply.toLowerCase());
  }),
  "detectable_format:number_bullet_lists": instruction({ num_bullets: Count }, ({ num_bullets }) => {
    return (reply) => countBullets(reply, /^\*[^*]/s, 2) + countBullets(reply, /^-/, 1) === num_bullets;
  }),
  "detectable_format:constrained_response": instruction({}, () => {
    return (reply) => CONSTRAINED.some((answer) => reply.includes(answer));
  }),
  "detectable_format:number_highlighted_sections": instruction({ num_highlights: Count }, ({ num_highlights }) => {
    return (reply) => countHighlights(reply) >= num_highlights;
  }),
  "detectable_format:multiple_sections": instruction(
    { section_spliter: Keyword, num_sections: Count },
    ({ section_spliter, num_sections }) => {
      const pattern = new RegExp(`${literal(section_spliter.trim())}\\s?\\p{Nd}+`, "gu");
      return (reply) => countOf(reply, pattern) >= num_sections;
    },
    () => ofKeywords(1),
  ),
  "detectable_format:json_format": instruction({}, () => isJson),
  "detectable_format:title": instruction({}, () => (reply) => reply.split("\n").some(hasTitle)),
  "combination:two_responses": instruction({}, () => hasTwoResponses),
  "combination:repeat_prompt": instruction({ prompt_to_repeat: Text }, ({ prompt_to_repeat }) => {
    return (reply) => reply.trim().toLowerCase().startsWith(prompt_to_repeat.trim().toLowerCase());
  }),
  "startend:end_checker": instruction({ end_phrase: Text }, ({ end_phrase }) => {
    return (reply) => stripped(reply.trim(), '"', '"').toLowerCase().endsWith(end_phrase.trim().toLowerCase());
  }),
  "startend:quotation": instruction({}, () => (reply) => /^".*"$/s.test(reply.trim())),
  "change_case:capital_word_frequency": instruction(
    { capital_frequency: Count, capital_relation: Relation },
    ({ capital_frequency, capital_relation }) =>
      (reply) =>
        compare(countCapitalWords(reply), capital_relation, capital_frequency),
    () => perCharacter(CAPITALS),
  ),
  "change_case:english_capital": instruction(
    {},
    () => (reply) => isUpper(reply) && languageOf(reply) === "en",
    () => ofLanguage,
  ),
  "change_case:english_lowercase": instruction(
    {},
    () => (reply) => isLower(reply) && languageOf(reply) === "en",
    () => ofLanguage,
  ),
  "punctuation:no_comma": instruction({}, () => (reply) => !reply.includes(",")),
};

export type InstructionId = keyof typeof INSTRUCTIONS;
export const INSTRUCTION_IDS = Object.keys(INSTRUCTIONS);

export function isInstructionId(id: string): id is InstructionId {
  return Object.hasOwn(INSTRUCTIONS, id);
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, (sign) => (sign === "-" ? "\\x2d" : `\\${sign}`));
}

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}

function compare(count: number, relation: z.infer<typeof Relation>, limit: number): boolean {
  return relation === "less than" ? count < limit : count >= limit;
}

/** Parts between `***`; an empty one counts as none at the beginning and the end, and spoils the reply elsewhere. */
function countParagraphs(reply: string): number | null {
  const parts = reply.split("***").map((part) => part.trim() !== "");
  const inner = parts.slice(1, -1);
  return inner.includes(false) ? null : parts.filter(Boolean).length;
}

function firstWord(paragraph: string): string {
  const [word = ""] = paragraph.split(/\s+/);
  const [letters = ""] = word
    .replace(/^'+/, "")
    .replace(/^"+/, "")
    .split(/[.,?!'"]/);
  return letters.toLowerCase();
}

/** Without these signs at its beginning and its end. */
function stripped(text: string, opening: string, closing: string): string {
  let [start, end] = [0, text.length];
  while (text[start] === opening) start += 1;
  while (end > start && text[end - 1] === closing) end -= 1;
  return text.slice(start, end);
}

function countPlaceholders(reply: string): number {
  let count = 0;
  for (const line of reply.split("\n")) {
    let end = 0;
    for (;;) {
      const start = line.indexOf("[", end);
      end = start < 0 ? 0 : line.indexOf("]", start) + 1;
      if (end === 0) break;
      count += 1;
    }
  }
  return count;
}

function postscriptPattern(marker: string): RegExp {
  if (marker === "P.P.S") return /p\.\s?p\.\s?s/;
  return marker === "P.S." ? /p\.\s?s\./ : new RegExp(literal(marker.toLowerCase()));
}

/** Lines, after white space and empty lines, that begin with a sign of this length; each takes the rest of its line. */
function countBullets(reply: string, sign: RegExp, length: number): number {
  let count = 0;
  let at = 0;
  while (at < reply.length) {
    while (at < reply.length && /\s/.test(reply[at] ?? "")) at += 1;
    if (sign.test(reply.slice(at, at + length))) {
      count += 1;
      at += length;
    }
    const end = reply.indexOf("\n", at);
    if (end < 0) break;
    at = end + 1;
  }
  return count;
}

/** `*text*` and `**text**`, each counted for itself, so that a bold text counts once. */
function countHighlights(reply: string): number {
  const single = Array.from(reply.matchAll(/\*[^\n*]*\*/g), ([text]) => text.replaceAll("*", ""));
  const double = Array.from(reply.matchAll(/\*\*[^\n*]*\*\*/g), ([text]) => text.slice(2, -2));
  return [...single, ...double].filter((text) => text.trim() !== "").length;
}

function isJson(reply: string): boolean {
  const opened = reply
    .trim()
    .replace(/^```json/, "")
    .replace(/^```Json/, "")
    .replace(/^```JSON/, "");
  const inner = opened.replace(/^```/, "").replace(/```$/, "").trim();
  try {
    JSON.parse(inner);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** `<<title>>`, from the first opening to the last closing of a line. */
function hasTitle(line: string): boolean {
  const [start, end] = [line.indexOf("<<"), line.lastIndexOf(">>")];
  if (start < 0 || end < start + 3) return false;
  return stripped(line.slice(start, end + 2), "<", ">").trim() !== "";
}

function hasTwoResponses(reply: string): boolean {
  const parts = reply.split("******").map((part) => part.trim());
  const [first, second, ...more] = parts.filter((part) => part !== "");
  return !parts.slice(1, -1).includes("") && more.length === 0 && second !== undefined && first !== second;
}
