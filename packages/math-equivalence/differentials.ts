/**
 * Joins signs with the name after them to one name: `\Delta x`, and `dx` if it is a differential.
 *
 * Invariant: such a sign is not a factor; it is never cancelled, as in `dy/dx`.
 */
import { closingOf } from "./structure.ts";
import { FUNCTIONS } from "./syntax.ts";
import type { Token } from "./token.ts";

/** An operator without its operand: not an expression. */
const OPERATOR: Token = { kind: "mark", text: "\\d" };

/**
 * `d`, `y` become one name, and so do `d`, `^`, `2`, `y`; the `d` of `\frac{d}{dx}` becomes a mark that the grammar
 * refuses.
 */
export function joinDifferentials(tokens: readonly Token[]): Token[] {
  if (!tokens.some(isSign)) return [...tokens];
  const isDerivative = tokens.some((_, at) => isDerivativeAt(tokens, at) || isByPlace(tokens, at));
  const joined: Token[] = [];
  for (let at = 0; at < tokens.length; ) {
    const token = tokens[at];
    if (token === undefined) break;
    const end = nameAfter(tokens, at);
    const name = tokens[end];
    const isOne = isDerivative || isAlways(token);
    if (isSign(token) && name !== undefined && isName(name, token) && isOne) {
      const signs = tokens.slice(at, end).map(({ text }) => text);
      const text = `${signs.join("").replaceAll(/[{}]/g, "")} ${name.text}`;
      joined.push({ kind: "name", text, spaced: token.spaced === true });
      at = end + 1;
    } else {
      const isOperator = isDerivative && isSign(token) && tokens[at - 1]?.text === "{" && !isJoint(tokens[end]);
      joined.push(isOperator ? OPERATOR : token);
      at += 1;
    }
  }
  return joined;
}

function isSign(token: Token): boolean {
  return token.kind === "name" && /^(?:d|delta|Delta)$/.test(token.text);
}

function isAlways({ text, upright }: Token): boolean {
  return text !== "d" || upright === true;
}

/** `y\,dx`, or only `dx` or `dt`: there is a space before the sign and none after it. */
function isByPlace(tokens: readonly Token[], at: number): boolean {
  if (at === 0) return tokens.length === 2 && /^[t-z]$/.test(tokens[1]?.text ?? "");
  const [before, sign, after] = [tokens[at - 1], tokens[at], tokens[at + 1]];
  if (sign === undefined || !isSign(sign) || after?.kind !== "name") return false;
  return before?.kind === "name" && before.text.length === 1 && sign.spaced === true && after.spaced !== true;
}

/** Whether a sign may apply to this token: next to a Greek letter, δ is a separate letter. */
function isName({ kind, text }: Token, sign: Token): boolean {
  if (sign.text === "delta" && text.length > 1) return false;
  return kind === "name" && text !== "pi" && !FUNCTIONS.some((known) => known === text);
}

/** Where the sign at `at` ends, including the order of the derivative: `d`, `d^2`, `d^{2}`. */
function nameAfter(tokens: readonly Token[], at: number): number {
  if (tokens[at + 1]?.text !== "^") return at + 1;
  if (tokens[at + 2]?.text !== "{") return at + 3;
  return tokens[at + 4]?.text === "}" ? at + 5 : at + 1;
}

/** `\frac{dy}{dx}`, `\frac{d}{dx}`, `\frac{d(xy)}{dx}`, `dy \over dx`, `dy/dx`. */
function isDerivativeAt(tokens: readonly Token[], at: number): boolean {
  const isDifferential = (place: number) => {
    const [sign, name] = [tokens[place], tokens[nameAfter(tokens, place)]];
    return sign !== undefined && isSign(sign) && name !== undefined && isName(name, sign);
  };
  const isOver = tokens[at]?.text === "over" && isDifferential(at + 1);
  if (isOver) return tokens.slice(Math.max(0, at - MOST_TOKENS), at).some(isSign);
  if (tokens[at]?.text === "/") return isDifferential(at + 1) && isDifferential(at - 2);
  if (tokens[at]?.text !== "frac" || tokens[at + 1]?.text !== "{") return false;
  const over = tokens.slice(at + 1, at + 1 + MOST_TOKENS);
  const end = at + 1 + closingOf(over);
  if (end === at || tokens[end + 1]?.text !== "{" || !isDifferential(end + 2)) return false;
  const places = Array.from({ length: end - at - 2 }, (_, place) => at + 2 + place);
  const first = tokens[at + 2];
  const isOfAll = first !== undefined && isSign(first) && !isJoint(tokens[nameAfter(tokens, at + 2)]);
  return isOfAll || places.some(isDifferential);
}

/** A token after which the sign is a factor or a term. */
function isJoint(token: Token | undefined): boolean {
  return token?.kind === "mark" && /^[-+*/^]$/.test(token.text);
}

/** The most tokens above a fraction line that are checked. */
const MOST_TOKENS = 40;
