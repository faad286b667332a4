/**
 * The units of measurement and the countable things that may follow a number. Anything that is not in this list is not
 * a unit: it stays in the answer as a name.
 *
 * A unit is a factor and powers of base units. Units that measure the same (`cm` and `in`, `m/s` and `mph`) have the
 * same powers.
 */
import type { Token } from "./token.ts";

/** Whole numbers for numerator and denominator. */
export type Factor = readonly [bigint, bigint];

export interface Unit {
  readonly factor: Factor;
  /** Exponents by base unit, none of them 0. */
  readonly bases: ReadonlyMap<string, number>;
}

/** Names, base, exponent of the base, and the factor for it. */
const MEASURES: readonly (readonly [string, string, number, bigint, bigint])[] = [
  ["m meter metre", "m", 1, 1n, 1n],
  ["in inch inches", "m", 1, 254n, 10_000n],
  ["ft foot feet", "m", 1, 3048n, 10_000n],
  ["yd yard", "m", 1, 9144n, 10_000n],
  ["mi mile", "m", 1, 1_609_344n, 1000n],
  ["acre", "acre", 1, 1n, 1n],
  ["ha hectare", "m", 2, 10_000n, 1n],
  ["L l liter litre", "m", 3, 1n, 1000n],
  ["cc", "m", 3, 1n, 1_000_000n],
  ["gal gallon", "gallon", 1, 1n, 1n],
  ["qt quart", "gallon", 1, 1n, 4n],
  ["pt pint", "gallon", 1, 1n, 8n],
  ["cup", "gallon", 1, 1n, 16n],
  ["tablespoon tbsp", "gallon", 1, 1n, 256n],
  ["teaspoon tsp", "gallon", 1, 1n, 768n],
  ["g gram", "g", 1, 1n, 1n],
  ["ton tonne", "ton", 1, 1n, 1n],
  ["lb pound", "lb", 1, 1n, 1n],
  ["oz ounce", "lb", 1, 1n, 16n],
  ["s sec second", "s", 1, 1n, 1n],
  ["min minute", "s", 1, 60n, 1n],
  ["h hr hour", "s", 1, 3600n, 1n],
  ["day", "s", 1, 86_400n, 1n],
  ["week wk", "s", 1, 604_800n, 1n],
  ["month", "month", 1, 1n, 1n],
  ["year yr", "month", 1, 12n, 1n],
  ["decade", "month", 1, 120n, 1n],
  ["dollar USD ＄", "dollar", 1, 1n, 1n],
  ["cent ¢", "dollar", 1, 1n, 100n],
  ["degree deg", "degree", 1, 1n, 1n],
  ["rad radian", "rad", 1, 1n, 1n],
  ["eV", "eV", 1, 1n, 1n],
  ["euro €", "euro", 1, 1n, 1n],
  ["£ GBP", "£", 1, 1n, 1n],
  ["yen ¥", "yen", 1, 1n, 1n],
  ["rupee ₹", "rupee", 1, 1n, 1n],
  ["N newton", "N", 1, 1n, 1n],
  ["J joule", "J", 1, 1n, 1n],
  ["W watt", "W", 1, 1n, 1n],
  ["V volt", "V", 1, 1n, 1n],
  ["C coulomb", "C", 1, 1n, 1n],
  ["Pa pascal", "Pa", 1, 1n, 1n],
  ["Hz hertz", "Hz", 1, 1n, 1n],
  ["mol mole", "mol", 1, 1n, 1n],
  ["K kelvin", "K", 1, 1n, 1n],
  ["th st nd rd", "place", 1, 1n, 1n],
];

/** Countable things; each is its own base unit. */
const COUNTED = [
  "unit point time way case item piece pair group set row column page word letter digit number solution answer step",
  "person people student child children boy girl man men woman women friend adult player team member teacher worker",
  "apple orange banana egg cookie candy cake pizza slice bottle box bag basket can jar package pack bead block brick",
  "ball marble coin card ticket book pen pencil toy chair table room house car bus train bike flower plant tree bird",
  "cat dog fish cow chicken sheep horse game match vote side edge vertex vertices face triangle square rectangle line",
  "penny pennies nickel dime quarter bill crayon sticker stamp shirt shoe sock bee leaf leaves tile stone question",
]
  .join(" ")
  .split(" ");

const PREFIXES = new Map<string, Factor>(
  Object.entries({
    G: [10n ** 9n, 1n],
    M: [10n ** 6n, 1n],
    k: [1000n, 1n],
    c: [1n, 100n],
    m: [1n, 1000n],
    n: [1n, 10n ** 9n],
    kilo: [1000n, 1n],
    centi: [1n, 100n],
    milli: [1n, 1000n],
  }),
);
const PREFIXED = /^(G|M|k|c|m|n)(m|g|s|L|l|N|J|W|V|Pa|Hz|eV|mol)$|^(kilo|centi|milli)(meter|metre|gram|liter|litre)s?$/;
const SPEEDS = new Map([
  ["mph", "mi"],
  ["kph", "km"],
  ["kmh", "km"],
]);

const UNITS = new Map<string, Unit>([
  ...COUNTED.map((name) => [name, { factor: [1n, 1n], bases: new Map([[name, 1]]) }] as const),
  ...MEASURES.flatMap(([names, base, exponent, over, under]) => {
    const unit: Unit = { factor: [over, under], bases: new Map([[base, exponent]]) };
    return names.split(" ").map((name) => [name, unit] as const);
  }),
]);

/** `units`, `cm`, `Hours`; for one or two letters the case counts. */
function unitOf(name: string): Unit | undefined {
  const speed = SPEEDS.get(name);
  if (speed !== undefined) return times(unitOf(speed), unitOf("h"), -1);
  const [, sign, base, spelled, whole] = PREFIXED.exec(name) ?? [];
  if (sign !== undefined || spelled !== undefined) {
    const { factor, bases } = unitOf(base ?? whole ?? "") ?? NONE;
    return { factor: product(factor, PREFIXES.get(sign ?? spelled ?? "") ?? [1n, 1n]), bases };
  }
  const small = name.length > 2 ? name.toLowerCase() : name;
  const singular = /(?:ch|sh|x)es$/.test(small) ? small.slice(0, -2) : small.replace(/(?<=..)s$/, "");
  return UNITS.get(name) ?? UNITS.get(small) ?? UNITS.get(singular);
}

const NONE: Unit = { factor: [1n, 1n], bases: new Map() };

/** `a` times `b` to a power. */
function times(a: Unit | undefined, b: Unit | undefined, exponent: number): Unit | undefined {
  if (a === undefined || b === undefined) return undefined;
  const bases = new Map(a.bases);
  for (const [name, own] of b.bases) {
    const sum = (bases.get(name) ?? 0) + own * exponent;
    if (sum === 0) bases.delete(name);
    else bases.set(name, sum);
  }
  let { factor } = a;
  const [over, under] = b.factor;
  for (let at = 0; at < Math.abs(exponent); at += 1) {
    factor = product(factor, exponent > 0 ? [over, under] : [under, over]);
  }
  return { factor, bases };
}

function product(a: Factor, b: Factor): Factor {
  return [a[0] * b[0], a[1] * b[1]];
}

/** Names that cannot be a product of variables if there is a space before them. */
export const SPACED_UNIT = /^(?:km|cm|mm|kg)$/;

/**
 * Short names that are units directly after a number, although they are outside `\text{…}`. `rest`: the text after
 * them.
 */
export function isPlainUnit(letters: string, rest: string): boolean {
  if (/^(?:km|cm|mm|kg|ft|in|lbs?|oz|mph|kph|yd|hrs?|mL|ml|per|am|pm|th|st|nd|rd)$/.test(letters)) return true;
  if (letters === "m") return /^\/s(?![a-zA-Z])/.test(rest);
  return letters.length > 2 && letters !== "sec" && unitOf(letters) !== undefined;
}

const WORD_POWERS = new Map(Object.entries({ square: 2, sq: 2, cubic: 3, squared: 2, cubed: 3 }));
const MOST_FACTORS = 8;

/** Whether a unit may begin here. */
export function startsUnit(tokens: readonly Token[], at: number): boolean {
  const token = tokens[at];
  if (token?.text === "^") return degreeLength(tokens, at) > 0;
  if (isPer(token)) return readFactor(tokens, at + 1) !== undefined;
  if (token?.text === "frac") return readFraction(tokens, at) !== undefined;
  if (token?.kind === "mark") return UNITS.has(token.text);
  return canBeUnit(token) && (unitOf(token.text) !== undefined || powerWord(token) !== undefined);
}

function canBeUnit(token: Token | undefined): token is Token {
  return token?.kind === "word" || token?.upright === true;
}

function powerWord(token: Token | undefined): number | undefined {
  return token?.kind === "word" ? WORD_POWERS.get(token.text.toLowerCase()) : undefined;
}

/** Reads a product of units from `start`: the unit and where it ends; undefined if there is none. */
export function readUnit(tokens: readonly Token[], start: number): { unit: Unit; end: number } | undefined {
  const first = isPer(tokens[start]) ? start + 1 : start;
  let [unit, end, sign]: [Unit | undefined, number, number] = [NONE, first, first === start ? 1 : -1];
  for (let count = 0; count < MOST_FACTORS; count += 1) {
    const factor = readFactor(tokens, end);
    if (factor === undefined) break;
    unit = times(unit, factor.unit, sign * factor.power);
    const { length, divides } = jointAt(tokens, factor.end);
    end = factor.end + length;
    sign = divides ? -1 : 1;
  }
  return unit === undefined || end === first ? undefined : { unit, end: end + (isOf(tokens[end]) ? 1 : 0) };
}

/** The connection of a unit to the next: a slash or "per", a multiplication sign, nothing. */
function jointAt(tokens: readonly Token[], at: number): { length: 0 | 1; divides: boolean } {
  const joint = tokens[at];
  const divides = joint?.text === "/" || isPer(joint);
  const isJoint = (divides || joint?.text === "*") && readFactor(tokens, at + 1) !== undefined;
  return { length: isJoint ? 1 : 0, divides: isJoint && divides };
}

function isPer(token: Token | undefined): boolean {
  return token?.kind === "word" && /^per$/i.test(token.text);
}

/** `20 years old`, `5 cm long`: the word after the unit. */
function isOf(token: Token | undefined): boolean {
  return token?.kind === "word" && /^(?:old|long|wide|tall|high|deep|each|apart|away)$/i.test(token.text);
}

interface UnitPower {
  readonly unit: Unit;
  readonly power: number;
  readonly end: number;
}

function readFactor(tokens: readonly Token[], start: number): UnitPower | undefined {
  return readDegree(tokens, start) ?? readFraction(tokens, start) ?? readNamed(tokens, start);
}

/** `^\circ`, `^\circ\text{C}` */
function readDegree(tokens: readonly Token[], start: number): UnitPower | undefined {
  const end = start + degreeLength(tokens, start);
  if (end === start) return undefined;
  const scale = tokens[end];
  const isScale =
    scale !== undefined && /^[CF]$/.test(scale.text) && (scale.upright === true || end + 1 === tokens.length);
  const bases = new Map([[isScale ? `degree ${scale.text}` : "degree", 1]]);
  return { unit: { factor: NONE.factor, bases }, power: 1, end: isScale ? end + 1 : end };
}

/** `cm`, `square miles`, `m^2`, `feet squared` */
function readNamed(tokens: readonly Token[], start: number): UnitPower | undefined {
  const before = powerWord(tokens[start]);
  const at = before === undefined ? start : start + 1;
  const token = tokens[at];
  const isSign = token?.kind === "mark" && UNITS.has(token.text);
  const unit = canBeUnit(token) || isSign ? unitOf(token?.text ?? "") : undefined;
  if (unit === undefined) return undefined;
  const after = powerWord(tokens[at + 1]);
  const { power, end } = after === undefined ? readPower(tokens, at + 1) : { power: after, end: at + 2 };
  return { unit, power: (before ?? 1) * power, end };
}

/** `\frac{\text{km}}{\text{h}}` */
function readFraction(tokens: readonly Token[], start: number): UnitPower | undefined {
  if (tokens[start]?.text !== "frac" || tokens[start + 1]?.text !== "{") return undefined;
  const over = canBeUnit(tokens[start + 2]) ? readUnit(tokens, start + 2) : undefined;
  const [close, open] = over === undefined ? [] : tokens.slice(over.end, over.end + 2);
  if (over === undefined || close?.text !== "}" || open?.text !== "{") return undefined;
  const under = canBeUnit(tokens[over.end + 2]) ? readUnit(tokens, over.end + 2) : undefined;
  if (under === undefined || tokens[under.end]?.text !== "}") return undefined;
  const unit = times(over.unit, under.unit, -1);
  return unit && { unit, power: 1, end: under.end + 1 };
}

/** `^2`, `^{-1}`. */
function readPower(tokens: readonly Token[], start: number): { power: number; end: number } {
  const written = tokens.slice(start, start + 5).map(({ text }) => text);
  const [all, inBraces, bare] = /^\^ (?:\{ ((?:- )?[1-9]) \}|([1-9])(?= |$))/.exec(written.join(" ")) ?? [];
  if (all === undefined) return { power: 1, end: start };
  return { power: Number((inBraces ?? bare ?? "1").replace(" ", "")), end: start + all.split(" ").length };
}

/** The number of tokens of a degree sign, `^\circ` or `^{\circ}`. */
function degreeLength(tokens: readonly Token[], at: number): number {
  if (tokens[at]?.text !== "^") return 0;
  if (tokens[at + 1]?.text === "circ") return 2;
  return tokens[at + 1]?.text === "{" && tokens[at + 2]?.text === "circ" && tokens[at + 3]?.text === "}" ? 4 : 0;
}

export function sameBases(a: Unit, b: Unit): boolean {
  return a.bases.size === b.bases.size && [...a.bases].every(([name, power]) => b.bases.get(name) === power);
}
