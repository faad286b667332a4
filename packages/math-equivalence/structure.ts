/** Brackets and separators of a sequence of tokens. */
import type { Token } from "./token.ts";

const OPENING = new Set(["(", "[", "{", "\\{", "lfloor", "lceil", "langle", "begin"]);
const CLOSING = new Set([")", "]", "}", "\\}", "rfloor", "rceil", "rangle", "end"]);

/** 1 for an opening bracket, −1 for a closing one, else 0. Environments with begin and end count as brackets too. */
export function turn({ kind, text }: Token): number {
  if (kind !== "mark") return 0;
  if (OPENING.has(text)) return 1;
  return CLOSING.has(text) ? -1 : 0;
}

/** Whether every bracket closes. Any closing bracket counts: `[0, 1)` is an interval. */
export function isBalanced(tokens: readonly Token[]): boolean {
  let depth = 0;
  for (const token of tokens) {
    depth += turn(token);
    if (depth < 0) return false;
  }
  return depth === 0;
}

/** The positions of the tokens outside all brackets for which `isWanted` holds. */
export function placesOf(tokens: readonly Token[], isWanted: (token: Token) => boolean): number[] {
  const places: number[] = [];
  let depth = 0;
  for (const [at, token] of tokens.entries()) {
    depth += turn(token);
    if (depth === 0 && isWanted(token)) places.push(at);
  }
  return places;
}

/** The parts between the positions. */
export function cut(tokens: readonly Token[], places: readonly number[]): Token[][] {
  const ends = [...places, tokens.length];
  return ends.map((end, at) => tokens.slice(at === 0 ? 0 : (ends[at - 1] ?? 0) + 1, end));
}

/** The parts between the marks that are outside all brackets. */
export function split(tokens: readonly Token[], ...marks: readonly string[]): Token[][] {
  return cut(
    tokens,
    placesOf(tokens, ({ kind, text }) => kind === "mark" && marks.includes(text)),
  );
}

/** Where the bracket at the start of the tokens closes; −1 if it does not, or if there is none. */
export function closingOf(tokens: readonly Token[]): number {
  let depth = 0;
  for (const [at, token] of tokens.entries()) {
    depth += turn(token);
    if (depth === 0) return turn(token) === -1 ? at : -1;
  }
  return -1;
}

/** The tokens without braces around all of them. */
export function ungroup(tokens: readonly Token[]): readonly Token[] {
  let inner = tokens;
  while (inner[0]?.text === "{" && closingOf(inner) === inner.length - 1) inner = inner.slice(1, -1);
  return inner;
}
