/**
 * Splits a mathematical text, LaTeX or plain, into tokens.
 *
 * Invariants: every character belongs to a token or is white space, and each is read once: no text is refused here. A
 * group brace is `{`, a visible brace is `\{`. Letters inside `\text{…}` are words and upright letters; outside, a run
 * of letters is a product of variables unless it looks like a word.
 */
import { joinDifferentials } from "./differentials.ts";
import { FUNCTIONS } from "./syntax.ts";
import type { Token } from "./token.ts";
import { isPlainUnit, SPACED_UNIT } from "./units.ts";
import { joinNumberWords } from "./words.ts";

/** Commands that are another spelling of a mark. */
const MARKS = new Map(
  Object.entries({
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
    approx: "approx",
    simeq: "approx",
    cup: "cup",
    cap: "cap",
    setminus: "setminus",
    backslash: "setminus",
    land: "land",
    wedge: "land",
    lor: "lor",
    vee: "lor",
    pm: "pm",
    mp: "mp",
    mid: "|",
    vert: "|",
    lvert: "|",
    rvert: "|",
    colon: ":",
    lbrace: "\\{",
    rbrace: "\\}",
    langle: "langle",
    rangle: "rangle",
    lbrack: "[",
    rbrack: "]",
    lfloor: "lfloor",
    rfloor: "rfloor",
    lceil: "lceil",
    rceil: "rceil",
    frac: "frac",
    over: "over",
    binom: "binom",
    dbinom: "binom",
    tbinom: "binom",
    choose: "choose",
    sqrt: "sqrt",
    circ: "circ",
    angle: "angle",
    triangle: "triangle",
    begin: "begin",
    end: "end",
    pounds: "£",
    euro: "€",
    yen: "¥",
    ldots: "dots",
    dots: "dots",
    cdots: "dots",
  }),
);

/** Names with another spelling; any other name stands for itself. */
const NAMES = new Map(
  Object.entries({
    asin: "arcsin",
    acos: "arccos",
    atan: "arctan",
    arctg: "arctan",
    tg: "tan",
    ctg: "cot",
    lg: "log",
    cosec: "csc",
    infty: "infinity",
    inf: "infinity",
    oo: "infinity",
    varnothing: "emptyset",
    varphi: "phi",
    varepsilon: "epsilon",
    vartheta: "theta",
    imath: "i",
  }),
);

/** Marks that a text may spell as a word. */
const WORD_MARKS = new Map(Object.entries({ sqrt: "sqrt", and: "and", or: "or", union: "cup", percent: "%" }));
const PLAIN_NAMES = new Set<string>([...FUNCTIONS, ...NAMES.keys(), "pi", "abs", "infinity", "emptyset"]);
const GREEK =
  /^(?:alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega|ell|hbar|emptyset|infinity)$/;
/** A letter with one of these is a separate name. */
const ACCENTS = new Map(
  Object.entries({
    bar: "bar",
    overline: "bar",
    hat: "hat",
    widehat: "hat",
    tilde: "tilde",
    widetilde: "tilde",
    dot: "dot",
    ddot: "ddot",
  }),
);

/** How letters are read: as variables, as words, upright, as a vector's name, as a set of numbers. */
type Mode = "math" | "text" | "upright" | "vector" | "set" | "script" | "fraktur";
const MODES = new Map<string, Mode>(
  Object.entries({
    text: "text",
    textbf: "text",
    textit: "text",
    textrm: "text",
    textsf: "text",
    textnormal: "text",
    mbox: "text",
    hbox: "text",
    mathrm: "upright",
    mathsf: "upright",
    mathit: "upright",
    operatorname: "upright",
    rm: "upright",
    mathbf: "vector",
    boldsymbol: "vector",
    bm: "vector",
    vec: "vector",
    overrightarrow: "vector",
    mathbb: "set",
    mathcal: "script",
    mathscr: "script",
    mathfrak: "fraktur",
  }),
);

/** A run of letters this long is a word, not a product of variables. */
const WORD = 4;
const NUMBER = /(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y;
const GROUPED = /\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?/y;
/** Brackets with nothing else inside: `(1,234)` is a point or an interval. */
const OPENS_POINT = /(?:[([⟨]|\\(?:langle|lbrack)) ?[-+]? ?$/;
const CLOSES_POINT = / ?(?:[)\]⟩]|\\(?:rangle|rbrack))/y;
/** How many characters before a number are searched for its bracket. */
const BEFORE_NUMBER = 10;
const LETTERS = /([A-Za-z]+)('*)/y;
const COMMAND = /\\([A-Za-z]+|.)/sy;
const MARK = /<=|>=|!=|./suy;
/** A short run of letters that is a word, not a product, if it is alone: `no`, `red`, `was`. */
const SPOKEN = /[eiou]|^[^aeiou]a[^aeiou]$/i;
/** A text about vectors. */
const VECTORS = /\\(?:nabla|vec|overrightarrow|mathbf|boldsymbol|bm)(?![a-zA-Z])/;
/** A text of nothing but words. */
const PROSE = /^[A-Za-z .,'-]+$/;
const OPENS_MODE = /\s?\{/y;

/**
 * With `grouped` a comma before three digits belongs to the number, unless brackets contain nothing else; otherwise it
 * separates.
 */
export function tokenize(text: string, grouped = true): Token[] {
  const reader = new Tokenizer(text, grouped);
  return joinDifferentials(joinNumberWords(reader.read()));
}

class Tokenizer {
  readonly #text: string;
  readonly #grouped: boolean;
  readonly #isProse: boolean;
  readonly #isSentence: boolean;
  readonly #tokens: Token[] = [];
  /** The mode inside each open brace; `own` braces belong to the command of the mode and are not a group. */
  readonly #braces: { readonly mode: Mode; readonly own: boolean }[] = [];
  #at = 0;
  readonly #hasVectors: boolean;

  constructor(text: string, grouped: boolean) {
    this.#text = text;
    this.#grouped = grouped;
    this.#hasVectors = VECTORS.test(text);
    this.#isProse = PROSE.test(text);
    this.#isSentence = this.#isProse && / /.test(text) && /[A-Za-z]{4}/.test(text);
  }

  get #mode(): Mode {
    return this.#braces.at(-1)?.mode ?? "math";
  }

  read(): Token[] {
    while (this.#at < this.#text.length) {
      if (this.#text[this.#at] === " ") this.#at += 1;
      else if (!this.#readNumber() && !this.#readLetters(this.#mode)) this.#readMark();
    }
    return this.#tokens;
  }

  #take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match !== null) this.#at = pattern.lastIndex;
    return match;
  }

  #push(kind: Token["kind"], text: string, start: number, upright = false): void {
    this.#tokens.push({ kind, text, spaced: this.#text[start - 1] === " ", upright });
  }

  #readNumber(): boolean {
    const start = this.#at;
    const number = (this.#grouped ? this.#takeGrouped() : null) ?? this.#take(NUMBER);
    if (number !== null) this.#push("number", number[0].replaceAll(",", ""), start);
    return number !== null;
  }

  #takeGrouped(): RegExpExecArray | null {
    const start = this.#at;
    const number = this.#take(GROUPED);
    CLOSES_POINT.lastIndex = this.#at;
    const before = this.#text.slice(Math.max(0, start - BEFORE_NUMBER), start);
    if (number === null || !OPENS_POINT.test(before) || !CLOSES_POINT.test(this.#text)) return number;
    this.#at = start;
    return null;
  }

  #readLetters(mode: Mode): boolean {
    const start = this.#at;
    const [all = "", letters = "", primes = ""] = this.#take(LETTERS) ?? [];
    if (all === "") return false;
    const mark = this.#wordMark(letters, start);
    if (mark !== undefined) this.#push("mark", mark, start);
    else if (mode === "math") this.#pushPlain(letters, primes, start);
    else this.#pushStyled(letters, primes, start, mode);
    return true;
  }

  #wordMark(letters: string, start: number): string | undefined {
    const before = this.#tokens.at(-1);
    if (letters === "U" && before?.kind === "mark" && /^(?:\)|\]|\\\})$/.test(before.text)) return "cup";
    const isSpaced = this.#text[start - 1] === " " && this.#text[this.#at] === " ";
    if (letters === "in" && isSpaced && this.#mode === "math" && before?.kind === "name") return "in";
    return WORD_MARKS.get(letters);
  }

  #pushPlain(letters: string, primes: string, start: number): void {
    if (this.#isUnitHere(letters, start)) this.#push("word", letters, start, true);
    else if (PLAIN_NAMES.has(letters)) this.#push("name", NAMES.get(letters) ?? letters, start);
    else if (/^[A-Z]{2,}$/.test(letters)) this.#push("name", letters + primes, start);
    else if (this.#isWord(letters, start)) this.#push("word", letters, start);
    else {
      for (const [at, letter] of [...letters].entries()) {
        this.#push("name", at === letters.length - 1 ? letter + primes : letter, start + at);
      }
    }
  }

  #isWord(letters: string, start: number): boolean {
    if (letters.length >= WORD || /^[A-Z][a-z]{2}$/.test(letters)) return true;
    // Letters after a word are a word: "20 years old".
    if (letters.length > 1 && this.#tokens.at(-1)?.kind === "word" && this.#text[start - 1] === " ") return true;
    return this.#isProse && letters.length > 1 && (this.#isSentence || SPOKEN.test(letters));
  }

  /** `60 km/h`: after a number, or after a unit and a slash. */
  #isUnitHere(letters: string, start: number): boolean {
    const [unit, last] = [this.#tokens.at(-2), this.#tokens.at(-1)];
    const isAfterValue = last?.text === "pi" || last?.text === "}" || last?.text === ")";
    if (isAfterValue && this.#text[start - 1] === " " && SPACED_UNIT.test(letters)) return true;
    if (last?.kind === "number") return isPlainUnit(letters, this.#text.slice(this.#at, this.#at + 4));
    return last?.text === "/" && unit?.kind === "word" && unit.upright === true;
  }

  #pushStyled(letters: string, primes: string, start: number, mode: Mode): void {
    if (mode === "set" || mode === "script" || mode === "fraktur") this.#push("name", `${mode}_${letters}`, start);
    else if (mode === "vector" && /^[eijk]$/.test(letters)) this.#push("name", `vec_${letters}`, start);
    else if (letters.length === 1) this.#push("name", letters + primes, start, mode !== "vector");
    else if (mode === "text" ? /^(?:pi|infinity)$/.test(letters) : PLAIN_NAMES.has(letters)) {
      this.#push("name", NAMES.get(letters) ?? letters, start);
    } else if (/^[A-Z]{2,}$/.test(letters)) this.#push("name", letters + primes, start);
    else this.#push("word", letters, start, true);
  }

  #readMark(): void {
    const start = this.#at;
    const command = this.#take(COMMAND)?.[1];
    if (command !== undefined) {
      this.#readCommand(command, start);
      return;
    }
    const mark = this.#take(MARK)?.[0] ?? "";
    if (mark === "{") this.#braces.push({ mode: this.#mode, own: false });
    if (mark === "}" && this.#braces.pop()?.own === true) return;
    // Punctuation of a sentence and quotes mean nothing.
    if (this.#mode === "text" && /^[.?"']$/.test(mark)) return;
    // Nor does an exclamation mark after a word, but n! is a number.
    const isShout = mark === "!" && this.#mode === "text" && this.#tokens.at(-1)?.kind === "word";
    if (isShout) return;
    this.#push("mark", mark, start);
  }

  #readCommand(command: string, start: number): void {
    const mode = MODES.get(command);
    const name = NAMES.get(command) ?? command;
    const isName = GREEK.test(name) || FUNCTIONS.some((known) => known === name);
    if (mode !== undefined) this.#openMode(mode);
    else if (isName) this.#push("name", name, start);
    else if (/^[RZNQC]$/.test(command)) this.#push("name", `set_${command}`, start);
    else this.#push("mark", this.#markOf(command), start);
  }

  #markOf(command: string): string {
    const accent = ACCENTS.get(command);
    if (accent !== undefined) return `accent ${accent}`;
    if (command === "|") return "|";
    // For vectors it is not a product of numbers.
    if (command === "times" && this.#hasVectors && this.#tokens.at(-1)?.kind !== "number") return "\\times";
    return MARKS.get(command) ?? `\\${command}`;
  }

  /** One letter or a group of the mode follows. */
  #openMode(mode: Mode): void {
    if (this.#take(OPENS_MODE) !== null) {
      this.#braces.push({ mode, own: true });
      return;
    }
    while (this.#text[this.#at] === " ") this.#at += 1;
    const letter = this.#text[this.#at] ?? "";
    if (!/[A-Za-z]/.test(letter)) return;
    this.#at += 1;
    this.#pushStyled(letter, "", this.#at - 1, mode);
  }
}
