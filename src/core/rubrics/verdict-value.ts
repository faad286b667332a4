/**
 * One value of a judge: a label of the menu or a number in its range, however it is set.
 *
 * Invariant. Quotation marks, brackets, bold, full-width characters, capitals, a full stop behind it and the name before it
 * ("Score: 7") say nothing. Any other word makes another value: "not yes", "7 or 8" and "about 7" are none.
 */

/** What a verdict is called. */
export const NAME = "(?:(?:final|overall)[\\s_]?)?(?:verdict|score|rating|grade|label|judge?ment|decision)";
const MARKS = "[\\s*_`\"'“”‘’«»()[\\]<>【】「」]";
const EDGES = new RegExp(`^${MARKS}{1,40}|(?:${MARKS}|[.,:;!。]){1,40}$`, "g");
const NAMED = new RegExp(`^(?:(?:the|my)\\s)?${NAME}${MARKS}{0,9}(?::|=|-{1,2}\\s|[–—]|is\\b:?)`, "i");
/** Characters of a value. */
const LONGEST = 200;

/** Without what says nothing around a value. */
function bare(text: string): string {
  const plain = text.slice(0, LONGEST).normalize("NFKC").replaceAll("\u2212", "-").replace(EDGES, "");
  return plain.replace(NAMED, "").replace(EDGES, "");
}

/** A label in lower case, its words apart by blanks: `not_supported`. */
function spelling(text: string): string {
  return bare(text)
    .toLowerCase()
    .replace(/(?<=[\p{L}\d])[\s_-]{1,9}(?=[\p{L}\d])/gu, " ");
}

const BOOLEANS: Readonly<Record<string, string>> = { true: "yes", yes: "true", false: "no", no: "false" };

/** The label itself, or the only one that differs from it in how it is set; `true` is `yes`, `false` is `no`. */
export function labelOf(labels: readonly string[], given: unknown): string | null {
  if (typeof given === "object") return null;
  const text = String(given).trim();
  if (labels.includes(text)) return text;
  const said = spelling(text);
  const alike = [
    labels.filter((label) => label.toLowerCase() === text.toLowerCase()),
    labels.filter((label) => said !== "" && spelling(label) === said),
    labels.filter((label) => spelling(label) === BOOLEANS[said]),
  ].find(({ length }) => length > 0);
  return alike?.length === 1 ? (alike[0] ?? null) : null;
}

/** A number, or a text that is one: `"7"`; `"7/10"` and `"7 out of 10"` where the range ends at 10. */
export function numberWithin([least, most]: readonly [number, number], given: unknown): number | null {
  const value = typeof given === "string" ? numberIn(given, most) : given;
  return typeof value === "number" && value >= least && value <= most ? value : null;
}

const DECIMAL = "[+-]?(?:\\d{1,30}(?:\\.\\d{0,30})?|\\.\\d{1,30})";
const OF = `\\s{0,3}(?:/|\\(?\\s?(?:out\\s)?of\\b)\\s{0,3}(${DECIMAL})`;
const NUMBER = new RegExp(`^(${DECIMAL}(?:e[+-]?\\d{1,3})?)(?:${OF})?(?:\\s{0,3}(?:points?|pts))?$`, "i");

function numberIn(text: string, most: number): number | null {
  const [, value, of] = NUMBER.exec(bare(text)) ?? [];
  return value === undefined || (of !== undefined && Number(of) !== most) ? null : Number(value);
}

const OUT_OF = new RegExp(`(?<![\\w.,/-])(${DECIMAL})${OF}(?![\\w/]|[.,]\\d)`, "gi");
const DOUBTS = /\b(?:not|never|or|between|than|if|would have|could|might|to)\b|n['’]t\b|\?/i;

/** Of prose, the number that it says to be one out of the range's most: "I give it 7 out of 10." */
export function numberOutOf([least, most]: readonly [number, number], line: string): number | null {
  const said = Array.from(line.slice(-1000).matchAll(OUT_OF), ([, value, of]) =>
    Number(of) === most ? Number(value) : null,
  );
  const [first, ...others] = said;
  const isClear = first !== undefined && others.length === 0 && !DOUBTS.test(line);
  return isClear ? numberWithin([least, most], first) : null;
}
