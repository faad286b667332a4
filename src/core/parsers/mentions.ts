/**
 * Decides whether a mark in a text is meant, or only mentioned.
 *
 * The rule. Everywhere, a mark is a mention if it is alone in quotation marks, backticks or brackets (`"<think>"`), or
 * inside a JSON string (`{"reason": "no </think> here"}`). Outside of thoughts it is also a mention inside a code span,
 * inside a fenced block that closes, and if it is named as a tag ("the </think> tag", "the tag <think>"). An opening
 * mark without a closing one is a mention if it is used as a word in a sentence ("write <think> first"). In all other
 * cases it is meant: a draft must not win over the answer.
 */

export interface Span {
  readonly start: number;
  readonly end: number;
}

interface Block extends Span {
  /** The index after the line of the opening fence. */
  readonly body: number;
  /** The fence names no language. */
  readonly plain: boolean;
}

type Range = readonly [start: number, end: number];

const CLOSING: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  "`": "`",
  "(": ")",
  "“": "”",
  "‘": "’",
  "«": "»",
};
const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;
const ENDS_A_WORD = /[\p{L}\p{N}.!?)]/u;
const KIND_BEHIND = /^ (?:tag|token|marker)s?(?![\w-])/;
const KIND_BEFORE = /\b(?:the|a|an)(?: \w{1,12})? (?:tag|token|marker) $/i;
const ON_A_LINE = /\S[ \t]{1,3}$/;
const LETTER_BEFORE = /[\p{L},] $/u;
const NO_WORD_BEHIND = /^[ .,;:!?)]/;
const BLANK = /\s*/y;
const NO_WORDS = /[\s`~]*/y;
const QUOTE = /\\.|"/gs;
const TICK = /`/g;
const LINE_END = /\n/g;
const FENCE = /^[ \t]*(`{3,}|~{3,})([^\n]*)$/gm;
const BEFORE_STRING = /[{[,:]\s*$/;
const BEHIND_STRING = /^\s*[}\],:]/;
/** How many characters on either side are searched: for words, and for the signs around a JSON string. */
const NEAR = 32;
const INDENT = 100;

export class Mentions {
  readonly #text: string;
  /** The sorted places of each pattern; each list is made at its first use. */
  readonly #places = new Map<RegExp, readonly number[]>();
  readonly #ends = new Map<RegExp, Map<number, number>>();
  #blocks: { readonly all: readonly Block[]; readonly bodies: readonly number[] } | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  /** Whether it is alone between two quotation marks, or inside a JSON string. */
  isQuoted({ start, end }: Span): boolean {
    return this.#isWrapped(start, end) || this.#isInString(start, end);
  }

  /**
   * Whether it is in a code span or a fenced block, or named by its kind. `closes`: a closing mark alone on its line
   * may end a thought that left its block open.
   */
  isCode({ start, end }: Span, closes: boolean): boolean {
    return this.#isNamed(start, end) || this.#isInSpan(start, end) || this.#isInBlock(start, end, closes);
  }

  /** Whether it is used as a word in the middle of a sentence. */
  isWord({ start, end }: Span): boolean {
    const [before, behind] = this.#around(start, end);
    return LETTER_BEFORE.test(before) && NO_WORD_BEHIND.test(behind);
  }

  #around(start: number, end: number): [before: string, behind: string] {
    return [this.#text.slice(Math.max(0, start - NEAR), start), this.#text.slice(end, end + NEAR)];
  }

  #isWrapped(start: number, end: number): boolean {
    const text = this.#text;
    const closing = CLOSING[text[start - 1] ?? ""];
    if (closing === undefined) return false;
    const at = text[end] === "\\" ? end + 1 : end;
    return (
      text[at] === closing && !ENDS_A_WORD.test(text[start - 2] ?? "") && !LETTER_OR_DIGIT.test(text[at + 1] ?? "")
    );
  }

  #isInString(start: number, end: number): boolean {
    const quotes = this.#where(QUOTE);
    const at = countBelow(quotes, start);
    const [opening, closing] = [quotes[at - 1], quotes[countBelow(quotes, end)]];
    if (opening === undefined || closing === undefined) return false;
    const before = this.#text.slice(Math.max(0, opening - INDENT), opening);
    const behind = this.#text.slice(closing + 1, closing + 1 + INDENT);
    return BEFORE_STRING.test(before) && BEHIND_STRING.test(behind);
  }

  #isNamed(start: number, end: number): boolean {
    const [before, behind] = this.#around(start, end);
    return ON_A_LINE.test(before) && (KIND_BEHIND.test(behind) || KIND_BEFORE.test(before));
  }

  #isInSpan(start: number, end: number): boolean {
    const ticks = this.#where(TICK);
    const [begin, stop] = this.#lineAround(start);
    const before = countBelow(ticks, start) - countBelow(ticks, begin);
    const behind = countBelow(ticks, stop) - countBelow(ticks, end);
    return before % 2 === 1 && behind > 0;
  }

  #isInBlock(start: number, end: number, closes: boolean): boolean {
    this.#blocks ??= fencedBlocks(this.#text);
    const { all, bodies } = this.#blocks;
    const block = all[countBelow(bodies, start + 1) - 1];
    if (block === undefined || block.end < end) return false;
    if (closes) {
      const [begin, stop] = this.#lineAround(start);
      return this.#endOf(NO_WORDS, begin) < start || this.#endOf(BLANK, end) < stop;
    }
    // A reply that is a fenced block as a whole may begin with its thoughts; then the block has no language.
    return !block.plain || this.#endOf(BLANK, 0) < block.start || this.#endOf(BLANK, block.body) < start;
  }

  #lineAround(start: number): Range {
    const lines = this.#where(LINE_END);
    const line = countBelow(lines, start);
    return [(lines[line - 1] ?? -1) + 1, lines[line] ?? this.#text.length];
  }

  /** The end of a sequence of such characters that begins at `start`. Cached, so that a sequence is read only once. */
  #endOf(run: RegExp, start: number): number {
    const ends = this.#ends.get(run) ?? new Map<number, number>();
    this.#ends.set(run, ends);
    const known = ends.get(start);
    if (known !== undefined) return known;
    run.lastIndex = start;
    run.test(this.#text);
    ends.set(start, run.lastIndex);
    return run.lastIndex;
  }

  #where(mark: RegExp): readonly number[] {
    const known = this.#places.get(mark);
    if (known !== undefined) return known;
    const places: number[] = [];
    for (const { 0: found, index } of this.#text.matchAll(mark)) if (!found.startsWith("\\")) places.push(index);
    this.#places.set(mark, places);
    return places;
  }
}

/** How many of the ascending numbers are less than `limit`. */
function countBelow(ascending: readonly number[], limit: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ascending[middle] ?? 0) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Blocks that close: a closing fence is at least as long as the opening one, and alone on its line. */
function fencedBlocks(text: string): { readonly all: readonly Block[]; readonly bodies: readonly number[] } {
  const blocks: Block[] = [];
  let open: (Omit<Block, "end"> & { readonly fence: string }) | null = null;
  for (const { 0: line, 1: fence = "", 2: info = "", index } of text.matchAll(FENCE)) {
    if (open === null) {
      const isFence = !(fence.startsWith("`") && info.includes("`"));
      if (isFence) open = { start: index, body: index + line.length, plain: info.trim() === "", fence };
    } else if (fence.startsWith(open.fence) && info.trim() === "") {
      blocks.push({ start: open.start, body: open.body, plain: open.plain, end: index });
      open = null;
    }
  }
  return { all: blocks, bodies: blocks.map(({ body }) => body) };
}
