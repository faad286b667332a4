/**
 * RE2 patterns from data, matched without backtracking.
 *
 * Invariants. Compiling and matching are counted before they are done. RE2 takes time linear in the text, but each
 * character may cost as much as the pattern has instructions, and a pattern of 20 characters with repetitions may have
 * thousands. So the product of the two is counted. The cost of compiling is derived from the pattern's text alone.
 */
import { RE2JS, RE2JSException } from "re2js";
import { type Work, WorkBudgetError, withThousands } from "../rubrics/work.ts";

const PATTERN_LIMITS = {
  characters: 4000,
  /** A repetition counts the instructions of its operand, multiplied by the maximal number of repetitions. */
  instructions: 10_000,
} as const;

/** The text is not an RE2 pattern. */
export class PatternError extends Error {
  override readonly name = "PatternError";
}

export class Pattern {
  readonly #compiled: RE2JS;

  /** Throws `PatternError`, and `WorkBudgetError` if the pattern is too large. */
  constructor(source: string, work: Work, flags = 0) {
    spendCompiling(source, work);
    this.#compiled = compile(source, flags);
  }

  /** Whether it matches somewhere in the text. */
  isIn(text: string, work: Work): boolean {
    this.#spendMatching(text, work);
    return this.#compiled.matcher(text).find();
  }

  /** Whether it matches the whole text. */
  matches(text: string, work: Work): boolean {
    this.#spendMatching(text, work);
    return this.#compiled.matches(text);
  }

  #spendMatching(text: string, work: Work): void {
    const instructions = this.#compiled.programSize();
    const what = `a pattern of ${withThousands(instructions)} instructions`;
    const doing = `matching ${what} with ${withThousands(text.length)} characters`;
    work.spend(STEPS.match * instructions * (text.length + 1), doing);
  }
}

/** Translates JavaScript's syntax to RE2's. */
export function translatePattern(source: string): string {
  return RE2JS.translateRegExp(source);
}

/** Measured, in steps: per character and instruction, and per element of the pattern. */
const STEPS = { match: 1, character: 400, instruction: 60, category: 16_000, range: 250_000 };
/** A Unicode class: case folding may apply to all of its characters. */
const CATEGORIES = /\\[pP]/g;
/** A range beyond ASCII: each of its characters is looked up if case is ignored. */
const WIDE_RANGES = /-(?:\\|[^\p{ASCII}])/gu;

function spendCompiling(source: string, work: Work): void {
  const { characters, instructions } = PATTERN_LIMITS;
  if (source.length > characters) {
    const has = `has ${withThousands(source.length)} characters`;
    throw new WorkBudgetError(`the pattern ${has}, and the limit is ${withThousands(characters)}`);
  }
  const size = instructionsOf(source);
  if (size > instructions) {
    const advice = "use fewer or smaller repetitions";
    throw new WorkBudgetError(`the pattern has more than ${withThousands(instructions)} instructions: ${advice}`);
  }
  const count = (what: RegExp) => source.match(what)?.length ?? 0;
  const steps =
    source.length * STEPS.character +
    size * STEPS.instruction +
    count(CATEGORIES) * STEPS.category +
    count(WIDE_RANGES) * STEPS.range;
  work.spend(steps, `compiling a pattern of ${withThousands(source.length)} characters`);
}

/** A quoted text, a name of a class, an escape, a class, a bracket, a repetition, or one character. */
const TOKEN =
  /\\Q[\s\S]*?(?:\\E|$)|\\[pPx]\{[^}]*\}|\\[\s\S]|\[\^?\]?(?:\[:\^?\w+:\]|\\[\s\S]|[^\]\\])*\]|[()]|\{(\d{1,9})(?:,(\d{0,9}))?\}|[\s\S]/gu;

interface Count {
  /** Instructions inside each open bracket, the outermost first. */
  readonly sizes: number[];
  /** Instructions of the last element, to which a repetition applies. */
  last: number;
}

/** An upper bound of the compiled instructions: a repetition counts the element before it so many times. */
function instructionsOf(source: string): number {
  const count: Count = { sizes: [2], last: 0 };
  for (const token of source.matchAll(TOKEN)) countToken(token, count);
  return count.sizes.reduce((sum, size) => sum + size);
}

function countToken([token, least, most]: RegExpExecArray, count: Count): void {
  if (least !== undefined) {
    const repeated = (count.last + 1) * (1 + Math.max(Number(least), Number(most ?? 0)));
    add(repeated, count.last + repeated, count);
  } else if (token === "(") {
    count.sizes.push(2);
  } else {
    const closed = token === ")" && count.sizes.length > 1 ? count.sizes.pop() : undefined;
    const size = closed ?? (token.startsWith("\\Q") ? token.length : 1);
    add(size, size, count);
  }
}

function add(size: number, last: number, count: Count): void {
  count.sizes.push((count.sizes.pop() ?? 0) + size);
  count.last = last;
}

function compile(source: string, flags: number): RE2JS {
  try {
    return RE2JS.compile(source, flags);
  } catch (thrown) {
    if (!(thrown instanceof RE2JSException)) throw thrown;
    throw new PatternError(`is not an RE2 pattern (no look-around, no back-references): ${thrown.message}`);
  }
}
