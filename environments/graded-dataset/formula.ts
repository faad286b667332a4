/**
 * The formula of a `multi` grader: numbers, names of graders, + - * / ^, brackets, and a few functions.
 *
 * Invariants. A formula is parsed, never run as code: it can only compute. Its length and its depth are limited, so
 * that parsing ends. An undefined result (a division by zero, the log of a negative number) is not finite.
 * Source: https://developers.openai.com/api/docs/guides/graders (multi graders).
 */

export interface Formula {
  readonly names: readonly string[];
  /** `values`: a number for each of `names`. */
  evaluate(values: ReadonlyMap<string, number>): number;
}

type Node = (values: ReadonlyMap<string, number>) => number;
interface Reader {
  readonly tokens: readonly string[];
  at: number;
  depth: number;
  readonly names: Set<string>;
}

const LONGEST = 2000;
const DEEPEST = 50;
const TOKEN = /\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[A-Za-z_]\w*|[-+*/^(),])\s*/y;
const NAME = /^[A-Za-z_]\w*$/;
const ONE: Readonly<Record<string, (x: number) => number>> = {
  abs: Math.abs,
  floor: Math.floor,
  ceil: Math.ceil,
  exp: Math.exp,
  sqrt: Math.sqrt,
  log: Math.log,
};
const MANY: Readonly<Record<string, (...xs: number[]) => number>> = {
  min: Math.min,
  max: Math.max,
};
const FUNCTIONS = [...Object.keys(ONE), ...Object.keys(MANY)];

/** Throws SyntaxError with what is wrong. */
export function parseFormula(text: string): Formula {
  const reader = { tokens: tokensOf(text), at: 0, depth: 0, names: new Set<string>() };
  const node = sum(reader);
  if (reader.at < reader.tokens.length) throw unexpected(reader);
  return { names: [...reader.names], evaluate: node };
}

/** Whether a formula can use a grader of this name. */
export function canBeNamed(name: string): boolean {
  return NAME.test(name) && !FUNCTIONS.includes(name);
}

function tokensOf(text: string): string[] {
  if (text.length > LONGEST) throw new SyntaxError(`has over ${LONGEST} characters`);
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const [, token] = TOKEN.exec(text) ?? [];
    if (token === undefined) throw new SyntaxError(`cannot be read from ${text.slice(at, at + 10)}`);
    tokens.push(token);
  }
  return tokens;
}

function sum(reader: Reader): Node {
  let left = product(reader);
  for (let sign = take(reader, "+", "-"); sign !== null; sign = take(reader, "+", "-")) {
    const [first, second, minus] = [left, product(reader), sign === "-"];
    left = (values) => (minus ? first(values) - second(values) : first(values) + second(values));
  }
  return left;
}

function product(reader: Reader): Node {
  let left = signed(reader);
  for (let sign = take(reader, "*", "/"); sign !== null; sign = take(reader, "*", "/")) {
    const [first, second, over] = [left, signed(reader), sign === "/"];
    left = (values) => (over ? first(values) / second(values) : first(values) * second(values));
  }
  return left;
}

function signed(reader: Reader): Node {
  const sign = take(reader, "+", "-");
  if (sign === null) return power(reader);
  const node = deeper(reader, signed);
  return sign === "-" ? (values) => -node(values) : node;
}

function power(reader: Reader): Node {
  const base = atom(reader);
  if (take(reader, "^") === null) return base;
  const exponent = deeper(reader, signed);
  return (values) => base(values) ** exponent(values);
}

function atom(reader: Reader): Node {
  const token = reader.tokens[reader.at];
  if (token === undefined) throw unexpected(reader);
  reader.at += 1;
  if (token === "(") {
    const inside = deeper(reader, sum);
    expect(reader, ")");
    return inside;
  }
  if (NAME.test(token)) return FUNCTIONS.includes(token) ? call(reader, token) : variable(reader, token);
  const value = Number(token);
  if (Number.isNaN(value)) {
    reader.at -= 1;
    throw unexpected(reader);
  }
  return () => value;
}

function variable(reader: Reader, name: string): Node {
  reader.names.add(name);
  return (values) => values.get(name) ?? Number.NaN;
}

function call(reader: Reader, name: string): Node {
  expect(reader, "(");
  const given = [deeper(reader, sum)];
  while (take(reader, ",") !== null) given.push(deeper(reader, sum));
  expect(reader, ")");
  const [first] = given;
  const one = ONE[name];
  if (one !== undefined && first !== undefined) {
    if (given.length > 1) throw new SyntaxError(`${name} takes one number`);
    return (values) => one(first(values));
  }
  const many = MANY[name];
  return (values) => many?.(...given.map((node) => node(values))) ?? Number.NaN;
}

function deeper(reader: Reader, read: (reader: Reader) => Node): Node {
  reader.depth += 1;
  if (reader.depth > DEEPEST) throw new SyntaxError(`is nested more than ${DEEPEST} deep`);
  const node = read(reader);
  reader.depth -= 1;
  return node;
}

function take(reader: Reader, ...wanted: readonly string[]): string | null {
  const token = reader.tokens[reader.at];
  if (token === undefined || !wanted.includes(token)) return null;
  reader.at += 1;
  return token;
}

function expect(reader: Reader, wanted: string): void {
  if (take(reader, wanted) === null) throw unexpected(reader, wanted);
}

function unexpected({ tokens, at }: Reader, wanted?: string): SyntaxError {
  const found = tokens[at] === undefined ? "ends too early" : `has ${tokens[at]} where none can stand`;
  return new SyntaxError(wanted === undefined ? found : `${found}: ${wanted} is missing`);
}
