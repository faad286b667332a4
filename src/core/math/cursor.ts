/** Walks over tokens. Past the last one every question is answered with no. */
import { MathSyntaxError } from "./syntax.ts";
import type { Token } from "./tokens.ts";
import type { MathWork } from "./work.ts";

const END: Token = { kind: "mark", text: "" };

export class Cursor {
  readonly work: MathWork;
  readonly #tokens: Token[];
  #at = 0;
  /** Bars that were opened: inside them the next bar closes. */
  bars = 0;

  constructor(tokens: readonly Token[], work: MathWork) {
    this.#tokens = [...tokens];
    this.work = work;
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
