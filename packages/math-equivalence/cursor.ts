/** Where the reading of a sequence of tokens stands. */
import type { Budget } from "./budget.ts";
import { MathSyntaxError } from "./syntax.ts";
import type { Token } from "./token.ts";

/** What reading an answer hangs on beside its tokens. */
export interface Reading {
  readonly budget: Budget;
  /** Names that are functions where a bracket follows: they never stand alone, in neither of the two texts. */
  readonly functions: ReadonlySet<string>;
}

const END: Token = { kind: "mark", text: "" };

export class Cursor {
  readonly reading: Reading;
  readonly #tokens: Token[];
  #at = 0;
  /** Bars that were opened: inside them the next bar closes. */
  bars = 0;

  constructor(tokens: readonly Token[], reading: Reading) {
    this.#tokens = [...tokens];
    this.reading = reading;
  }

  get budget(): Budget {
    return this.reading.budget;
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
    if (!this.takeMark("{")) return indexText(this.take());
    const parts: string[] = [];
    for (let depth = 1; ; ) {
      const token = this.take();
      if (token.kind === "mark" && token.text === "{") depth += 1;
      if (token.kind === "mark" && token.text === "}") depth -= 1;
      if (depth === 0) return inOrder(parts.join(""));
      parts.push(indexText(token));
    }
  }

  /** Skips tokens that were peeked at. */
  skip(count: number): void {
    this.#at += count;
  }
}

/** The terms of a sum by their text: `n+1` and `1+n` are one index. */
function inOrder(index: string): string {
  if (!/^\w+(?:[+-]\w+)+$/.test(index)) return index;
  return (`+${index}`.match(/[+-]\w+/g) ?? []).sort().join("");
}

/** Round brackets are kept for the names of functions. */
function indexText({ text }: Token): string {
  if (text === "(") return "⟨";
  return text === ")" ? "⟩" : text;
}
