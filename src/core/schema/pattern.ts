/**
 * A pattern that data brought, matched without backtracking: RE2's.
 *
 * Invariants. Compiling and matching are counted before they are done. RE2 takes time linear in the text, but each
 * character may cost as much as the pattern has instructions, and a repetition of 20 characters has thousands: so the
 * product of the two is what is counted. What compiling costs is told from the pattern's text alone.
 */
import { RE2JS, RE2JSException } from "re2js";
import { type Work, WorkBudgetError, withThousands } from "../rubrics/work.ts";

const PATTERN_LIMITS = {
  characters: 4000,
  /** A repetition has those of what it repeats, as often as it may be repeated. */
  instructions: 10_000,
} as const;

/** What is no pattern of RE2's. */
export class PatternError extends Error {
  override readonly name = "PatternError";
}

export class Pattern {
  readonly #compiled: RE2JS;

  /** Throws `PatternError`, and `WorkBudgetError` for one that is too large. */
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

/** JavaScript's spelling in RE2's. */
export function translatePattern(source: string): string {
  return RE2JS.translateRegExp(source);
}

/** Measured, in steps: of a character and an instruction, and of what the pattern holds. */
const STEPS = { match: 1, character: 400, instruction: 60, category: 16_000, range: 250_000 };
/** A class of Unicode's, all of which may have to be folded. */
const CATEGORIES = /\\[pP]/g;
/** A range to beyond ASCII: whatever the case, each of its characters is looked up. */
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
  /** Instructions inside each bracket that is open, the outermost first. */
  readonly sizes: number[];
  /** Instructions of what was read last, which a repetition repeats. */
  last: number;
}

/** No fewer instructions than the pattern compiles to: a repetition counts what stands before it so many times. */
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
