/**
 * The words of a mathematical text, LaTeX or plain.
 *
 * Invariants. Every character belongs to a token or is white space, or the text is refused. Each character is read
 * once. A group brace is `{`, a brace that is meant to be seen is `\{`.
 */

import type { Budget } from "./budget.ts";
import { FUNCTIONS, MathSyntaxError } from "./syntax.ts";

export interface Token {
  readonly kind: "number" | "name" | "mark";
  readonly text: string;
}

/** Commands that are another mark's spelling. The empty text is a space. */
const MARKS: Readonly<Record<string, string>> = {
  cdot: "*",
  times: "*",
  ast: "*",
  div: "/",
  le: "<=",
  leq: "<=",
  leqslant: "<=",
  ge: ">=",
  geq: ">=",
  geqslant: ">=",
  lt: "<",
  gt: ">",
  ne: "!=",
  neq: "!=",
  in: "in",
  cup: "cup",
  pm: "pm",
  mp: "mp",
  mid: "|",
  vert: "|",
  lvert: "|",
  rvert: "|",
  lbrace: "\\{",
  rbrace: "\\}",
  langle: "(",
  rangle: ")",
  lfloor: "lfloor",
  rfloor: "rfloor",
  lceil: "lceil",
  rceil: "rceil",
  frac: "frac",
  binom: "binom",
  sqrt: "sqrt",
  circ: "circ",
  begin: "begin",
  end: "end",
};

/** Names with another spelling; a name that is not here means itself. */
const NAMES: Readonly<Record<string, string>> = {
  asin: "arcsin",
  acos: "arccos",
  atan: "arctan",
  infty: "infinity",
  inf: "infinity",
  oo: "infinity",
  varnothing: "emptyset",
  varphi: "phi",
  varepsilon: "epsilon",
};

/** Marks that a plain text spells as a word. */
const PLAIN_MARKS: Readonly<Record<string, string>> = {
  sqrt: "sqrt",
  and: ",",
  or: ",",
  union: "cup",
  U: "cup",
};
const PLAIN_NAMES = new Set<string>([...FUNCTIONS, ...Object.keys(NAMES), "pi", "abs", "infinity"]);
/** Letters of the alphabets that commands name, and the sets of numbers are not told from them. */
const GREEK =
  /^(?:alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Sigma|Phi|Psi|Omega|ell|emptyset|infinity)$/;

/** A run of letters this long is a word, not a product of variables. */
const WORD = 4;
const NUMBER = /(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y;
const GROUPED = /\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?/y;
const LETTERS = /[A-Za-z]+/y;
const COMMAND = /\\([A-Za-z]+|[{}\\|])/y;
const MARK = /<=|>=|!=|[-+*/^_()[\]{},;:|!=<>%&]/y;

export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  // Whether a comma here would separate: inside brackets it does, and then no number holds one.
  const open: string[] = [];
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  while (at < text.length) {
    if (text[at] === " ") {
      at += 1;
      continue;
    }
    const inBrackets = open.length > 0 && open.at(-1) !== "{";
    const grouped = inBrackets ? null : take(GROUPED);
    const number = grouped ?? take(NUMBER);
    if (number !== null) {
      tokens.push({ kind: "number", text: number[0].replaceAll(",", "") });
      continue;
    }
    const next = readWord(take) ?? readMark(take);
    if (next === null) throw new MathSyntaxError(`unexpected ${JSON.stringify(text[at])}`);
    for (const token of next) trackBrackets(open, token);
    tokens.push(...next);
  }
  return tokens;
}

function readWord(take: (pattern: RegExp) => RegExpExecArray | null): Token[] | null {
  const letters = take(LETTERS)?.[0];
  if (letters === undefined) return null;
  const mark = PLAIN_MARKS[letters];
  if (mark !== undefined) return [{ kind: "mark", text: mark }];
  if (PLAIN_NAMES.has(letters) || letters.length >= WORD) return [nameToken(letters)];
  return Array.from(letters, nameToken);
}

function readMark(take: (pattern: RegExp) => RegExpExecArray | null): Token[] | null {
  const command = take(COMMAND)?.[1];
  if (command === undefined) {
    const mark = take(MARK)?.[0];
    return mark === undefined ? null : [{ kind: "mark", text: mark }];
  }
  if (!/[A-Za-z]/.test(command)) {
    return [{ kind: "mark", text: command === "|" ? "|" : `\\${command}` }];
  }
  const mark = MARKS[command];
  if (mark !== undefined) return [{ kind: "mark", text: mark }];
  const name = nameToken(command);
  if (GREEK.test(name.text) || isFunction(name.text)) return [name];
  throw new MathSyntaxError(`\\${command} is not known`);
}

function nameToken(name: string): Token {
  return { kind: "name", text: NAMES[name] ?? name };
}

function isFunction(name: string): boolean {
  return FUNCTIONS.some((known) => known === name);
}

function trackBrackets(open: string[], { text }: Token): void {
  if (text === "(" || text === "[" || text === "{" || text === "\\{") open.push(text);
  if (text === ")" || text === "]" || text === "}" || text === "\\}") open.pop();
}

const END: Token = { kind: "mark", text: "" };

export class Cursor {
  readonly budget: Budget;
  readonly #tokens: Token[];
  #at = 0;
  /** Bars that were opened: inside them the next bar closes. */
  bars = 0;

  constructor(tokens: readonly Token[], budget: Budget) {
    this.#tokens = [...tokens];
    this.budget = budget;
  }

  get next(): Token {
    return this.#tokens[this.#at] ?? END;
  }

  get done(): boolean {
    return this.#at >= this.#tokens.length;
  }

  isMark(...marks: readonly string[]): boolean {
    return this.next.kind === "mark" && marks.includes(this.next.text) && !this.done;
  }

  /** What stands `ahead` tokens further on. */
  peek(ahead: number): Token {
    return this.#tokens[this.#at + ahead] ?? END;
  }

  take(): Token {
    const token = this.next;
    if (this.done) throw new MathSyntaxError("the text ends too early");
    this.#at += 1;
    return token;
  }

  takeMark(...marks: readonly string[]): boolean {
    if (!this.isMark(...marks)) return false;
    this.#at += 1;
    return true;
  }

  expect(mark: string): void {
    if (!this.takeMark(mark)) {
      throw new MathSyntaxError(`expected ${mark}, found ${this.next.text || "the end"}`);
    }
  }

  /** The first digit of a number, which leaves the others to be read: `\frac12` is a half. */
  takeDigit(): string {
    const { text } = this.take();
    if (text.length > 1) {
      this.#at -= 1;
      this.#tokens[this.#at] = { kind: "number", text: text.slice(1) };
    }
    return text.slice(0, 1);
  }

  /** What stands below the line after `_`: one sign, or a group, as text. */
  takeIndex(): string {
    if (!this.takeMark("{")) return this.take().text;
    const parts: string[] = [];
    while (!this.isMark("}")) parts.push(this.take().text);
    this.take();
    return parts.join("");
  }

  /** Skips tokens that were peeked at. */
  skip(count: number): void {
    this.#at += count;
  }
}
