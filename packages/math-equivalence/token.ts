/** A word of a mathematical text: a number, a name, a word of prose or a mark. */

export interface Token {
  readonly kind: "number" | "name" | "word" | "mark";
  readonly text: string;
  /** There is white space before it. */
  readonly spaced?: boolean;
  /** From `\text{…}` or `\mathrm{…}`, or a unit after a number: it may be a unit. */
  readonly upright?: boolean;
}

/** The same text for the same sequence of tokens, without braces around a single sign. */
export function textOf(tokens: readonly Token[]): string {
  const parts: string[] = [];
  for (const [at, { text }] of tokens.entries()) {
    const isAround = (open: number) => tokens[open]?.text === "{" && tokens[open + 2]?.text === "}";
    const isSole = (inner: number) => tokens[inner]?.text.length === 1;
    if ((text === "{" && isAround(at) && isSole(at + 1)) || (text === "}" && isAround(at - 2) && isSole(at - 1))) {
      continue;
    }
    parts.push(text);
  }
  return parts.join(" ");
}
