/** The position in a sequence of tokens while it is read. */
import type { Budget } from "./budget.ts";
import { MathSyntaxError } from "./syntax.ts";
import type { Token } from "./token.ts";

/** The context of reading an answer, besides its tokens. */
export interface Reading {
  readonly budget: Budget;
  /** Names that are functions before a bracket: they never occur alone, in either text. */
  readonly functions: ReadonlySet<string>;
}

const END: Token = { kind: "mark", text: "" };

export class Cursor {
  readonly reading: Reading;
  readonly #tokens: Token[];
  #at = 0;
  /** The number of open bars: the next bar closes one. */
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

  /** The token `ahead` tokens further on. */
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

  /** The first digit of a number; the rest of it stays unread: `\frac12` is a half. */
  takeDigit(): string {
    const { text } = this.take();
    if (text.length > 1) {
      this.#at -= 1;
      this.#tokens[this.#at] = { kind: "number", text: text.slice(1) };
    }
    return text.slice(0, 1);
  }

  /** The index after `_` as text: one sign, or a group. */
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

/** The terms of a sum sorted by their text: `n+1` and `1+n` are the same index. */
function inOrder(index: string): string {
  if (!/^\w+(?:[+-]\w+)+$/.test(index)) return index;
  return (`+${index}`.match(/[+-]\w+/g) ?? []).sort().join("");
}

/** Round brackets are reserved for the names of functions. */
function indexText({ text }: Token): string {
  if (text === "(") return "⟨";
  return text === ")" ? "⟩" : text;
}
