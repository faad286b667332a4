/**
 * Finds what `JSON.parse` loses of a text: the digits of a number that no double has, and all but the last of several
 * members of an object with the same name. A reader that must keep its input refuses both, with their place.
 *
 * The work is linear in the length of the text. Most texts are not scanned: the value has no large number, and as many
 * names as the text.
 */
import { inexactMessage, isKept } from "./exact-json.ts";
import { membersOf } from "./json.ts";
import { quotedText } from "./shown-text.ts";

export interface Lost {
  /** As `findOddity` writes it: `info.ids[2]`. */
  readonly path: string;
  /** Begins with the path, if there is one. */
  readonly message: string;
}

const [SPACE, QUOTE] = [32, 34];
const [MINUS, POINT, BACKSLASH] = [45, 46, 92];
/** The number of digits of 2^53. */
const LARGE = 16;
/** Deeper values are scanned in their text, which needs no stack. */
const DEEPEST = 100;
const SHOWN_PATH = 200;

/**
 * The first thing that was lost when `JSON.parse` made `value` of the text, or null. `name`: the name of the value in
 * paths.
 */
export function findLost(text: string, value: unknown, name = ""): Lost | null {
  return mayHaveLost(text, value) ? new Scanner(text, name).scan() : null;
}

/** The path as the end of a longer path: `.answer`, `[2]`. */
export function within({ path }: Lost): string {
  return path === "" || path.startsWith("[") ? path : `.${path}`;
}

/** False only if nothing was lost: no number is past 2^53, and the text has no more names than the value. */
function mayHaveLost(text: string, value: unknown): boolean {
  const names = namesIn([value]);
  let found = 0;
  for (let at = text.indexOf(":"); at !== -1 && found <= names; at = text.indexOf(":", at + 1)) {
    if (mayEndName(text, at - 1)) found += 1;
  }
  return found > names;
}

/** Whether the character there is a quote or white space. A quote after a single backslash ends no text. */
function mayEndName(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code !== QUOTE) return code <= SPACE;
  return text.charCodeAt(at - 1) !== BACKSLASH || text.charCodeAt(at - 2) === BACKSLASH;
}

/** The number of members of all objects in a value; less than 0 if a number is past 2^53 or the nesting is too deep. */
function namesIn(value: object, depth = 0): number {
  if (depth > DEEPEST) return Number.NEGATIVE_INFINITY;
  const members = membersOf(value);
  let names = Array.isArray(value) ? 0 : members.length;
  for (let at = 0; at < members.length; at += 1) {
    const member = members[at];
    if (typeof member === "object" && member !== null) names += namesIn(member, depth + 1);
    else if (typeof member === "number" && Math.abs(member) > Number.MAX_SAFE_INTEGER) return Number.NEGATIVE_INFINITY;
  }
  return names;
}

/** An object or a list that is open at the scanner's position. `key`, `index`: of its current member. */
interface Open {
  readonly list: boolean;
  readonly keys: Set<string>;
  key: string;
  index: number;
}

/** Scans a text that is known to be valid JSON. */
class Scanner {
  readonly #text: string;
  readonly #open: Open[];
  /** The next text is the name of a member. */
  #naming = false;

  constructor(text: string, name: string) {
    this.#text = text;
    this.#open = [{ list: false, keys: new Set(), key: name, index: 0 }];
  }

  scan(): Lost | null {
    let lost: Lost | null = null;
    for (let at = 0; at < this.#text.length && lost === null; at += 1) {
      const char = this.#text.charAt(at);
      if (char === '"') {
        const end = closingQuote(this.#text, at);
        lost = this.#naming ? this.#name(nameIn(this.#text, at, end)) : null;
        at = end;
      } else if (char >= "0" && char <= "9") {
        const { end, source } = largeNumber(this.#text, at);
        lost = source === null ? null : this.#number(source);
        at = end - 1;
      } else this.#step(char);
    }
    return lost;
  }

  #step(char: string): void {
    const top = this.#open.at(-1);
    if (char === "{" || char === "[") {
      this.#open.push({ list: char === "[", keys: new Set(), key: "", index: 0 });
      this.#naming = char === "{";
    } else if (char === "}" || char === "]") {
      this.#open.pop();
      this.#naming = false;
    } else if (char === ",") {
      this.#naming = top?.list === false;
      if (top !== undefined) top.index += 1;
    } else if (char === ":") this.#naming = false;
  }

  #name(key: string): Lost | null {
    const top = this.#open.at(-1);
    if (top === undefined) return null;
    top.key = key;
    if (!top.keys.has(key)) {
      top.keys.add(key);
      return null;
    }
    const around = pathOf(this.#open.slice(0, -1));
    const message = `the key ${JSON.stringify(quotedText(key, SHOWN_PATH))} appears twice`;
    return { path: pathOf(this.#open), message: around === "" ? message : `${around}: ${message}` };
  }

  #number(source: string): Lost | null {
    if (isKept(Number(source), source)) return null;
    const path = pathOf(this.#open);
    const message = `${inexactMessage(source)}: send it as a string`;
    return { path, message: path === "" ? message : `${path}: ${message}` };
  }
}

/** The end of the number whose first digit is at `from`; and its text if it may be past 2^53. */
function largeNumber(text: string, from: number): { readonly end: number; readonly source: string | null } {
  const whole = endOfDigits(text, from);
  let end = text.charCodeAt(whole) === POINT ? endOfDigits(text, whole + 1) : whole;
  const sign = /[eE]/.test(text.charAt(end)) ? text.charCodeAt(end + 1) : MINUS;
  if (/[eE]/.test(text.charAt(end))) end = endOfDigits(text, end + 2);
  if (whole - from < LARGE && sign === MINUS) return { end, source: null };
  const start = text.charCodeAt(from - 1) === MINUS ? from - 1 : from;
  return { end, source: text.slice(start, end) };
}

/** The end of the text that opens at `from`: a quote with an even number of backslashes before it. */
function closingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at;
    while (text.charCodeAt(before - 1) === BACKSLASH) before -= 1;
    if ((at - before) % 2 === 0) return at;
  }
  return text.length;
}

function nameIn(text: string, from: number, end: number): string {
  const name = text.slice(from + 1, end);
  return name.includes("\\") ? String(JSON.parse(`"${name}"`)) : name;
}

function endOfDigits(text: string, from: number): number {
  let end = from;
  while (isDigit(text.charCodeAt(end))) end += 1;
  return end;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function pathOf(open: readonly Open[]): string {
  const path = open.reduce((before, { list, index, key }) => {
    if (list) return `${before}[${index}]`;
    return before === "" ? key : `${before}.${key}`;
  }, "");
  return quotedText(path, SHOWN_PATH);
}
