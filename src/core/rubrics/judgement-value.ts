/**
 * Parses one value of a judge: a label of the menu or a number in its range, in any typography.
 *
 * Invariant. Quotation marks, brackets, bold, full-width characters, capitals, a final full stop and the name in front
 * ("Score: 7") are ignored. Any other word makes the value invalid: "not yes", "7 or 8" and "about 7" are no values.
 */

/** Names of a judgement in replies. */
export const NAME = "(?:(?:final|overall)[\\s_]?)?(?:verdict|score|rating|grade|label|judge?ment|decision)";
const MARKS = "[\\s*_`\"'“”‘’«»()[\\]<>【】「」]";
const EDGES = new RegExp(`^${MARKS}{1,40}|(?:${MARKS}|[.,:;!。]){1,40}$`, "g");
const NAMED = new RegExp(`^(?:(?:the|my)\\s)?${NAME}${MARKS}{0,9}(?::|=|-{1,2}\\s|[–—]|is\\b:?)`, "i");
/** Maximal characters of a value. */
const LONGEST = 200;

/** The text without the marks around a value. */
function bare(text: string): string {
  const plain = text.slice(0, LONGEST).normalize("NFKC").replaceAll("\u2212", "-").replace(EDGES, "");
  return plain.replace(NAMED, "").replace(EDGES, "");
}

/** A label in lower case, with blanks between its words: `not_supported`. */
function spelling(text: string): string {
  return bare(text)
    .toLowerCase()
    .replace(/(?<=[\p{L}\d])[\s_-]{1,9}(?=[\p{L}\d])/gu, " ");
}

const BOOLEANS: Readonly<Record<string, string>> = { true: "yes", yes: "true", false: "no", no: "false" };

/** The label itself, or the only label that differs from it only in typography; `true` is `yes`, `false` is `no`. */
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

/** A number, or a text that is a number: `"7"`; `"7/10"` and `"7 out of 10"` if the range ends at 10. */
export function numberWithin([least, most]: readonly [number, number], given: unknown): number | null {
  const value = typeof given === "string" ? numberIn(given, most) : given;
  return typeof value === "number" && value >= least && value <= most ? value : null;
}

const DECIMAL = "[+-]?(?:\\d{1,30}(?:\\.\\d{0,30})?|\\.\\d{1,30})";
const OF = `\\s{0,3}(?:/|\\(?\\s?(?:out\\s)?of\\b)\\s{0,3}(${DECIMAL})`;
const NUMBER = new RegExp(`^(${DECIMAL}(?:e[+-]?\\d{1,3})?)(?:${OF})?(?:\\s{0,3}(?:points?|pts))?$`, "i");

/** A bound is not a number: "> 7"; but `<7>` is a number in brackets. */
const BOUND = new RegExp(`(?:[>≤≥≈~]|<(?!\\s{0,3}${DECIMAL}\\s{0,3}>))=?\\s{0,3}[+-]?\\.?\\d`);

function numberIn(text: string, most: number): number | null {
  if (BOUND.test(text.slice(0, LONGEST).normalize("NFKC"))) return null;
  const [, value, of] = NUMBER.exec(bare(text)) ?? [];
  return value === undefined || (of !== undefined && Number(of) !== most) ? null : Number(value);
}

const OUT_OF = new RegExp(`(?<![\\w.,/-])(${DECIMAL})${OF}(?![\\w/]|[.,]\\d)`, "gi");
const GRADED =
  "(?:model|candidate|student|assistant|submission|response|reply|answer|essay|text|work|output|solution|summary|translation|code|report|story|it|this|that)";
/** Words between the grader and the number: "I give | this reply a score of | 7 out of 10". */
const BETWEEN = `(?:\\s(?:${GRADED}(?:['’]s)?|them|the|an?|its|final|overall|solid|strong|weak|good|total|only|score|rating|grade|mark|of|at|as|with))`;
const GRADER =
  "(?:I|we)(?:['’](?:d|ll)|\\s(?:would|will))?(?:\\s(?:therefore|thus|hence|only))?\\s(?:give|rate|score|grade|assign|award|mark)";
const EARNS = `(?:(?:the|this|that)\\s)?(?:${GRADED}(?:['’]s)?\\s){1,2}(?:therefore\\s|thus\\s|only\\s)?(?:gets|earns|deserves|receives|scores|merits|rates|is(?:\\sworth)?)`;
const STATES = `(?:(?:the|my|our)\\s)?${NAME}(?:\\s(?:for|of)(?:\\s(?:the|this|that)){0,1}(?:\\s${GRADED}(?:['’]s)?){1,2})?\\s?(?:is|:|=)`;
/**
 * A sentence, or its last clause, that gives the grade. Others may have numbers of another kind: "it misses 2 out of
 * 10".
 */
const GIVES = new RegExp(
  "(?:^|[;:,]\\s|,?\\s(?:so|thus|therefore|hence|and|but)\\s)(?:(?:so|overall|therefore|thus|hence|and|but|finally|in (?:sum|summary|total|short|conclusion)|all in all|on balance),?\\s)?" +
    `(?:${GRADER}|${EARNS}|${STATES})${BETWEEN}{0,8}\\s$`,
  "i",
);
/** Text that may follow the number. */
const GIVEN =
  /^(?:\s(?:points?|pts|marks?|stars?|overall|in total|response|reply|answer))?\s?(?:$|[.!,;()–—-]|(?:overall|for|because|since|as|due|on)\b)/i;
const DOUBTS =
  /\b(?:no|none|not|never|or|between|than|if|would have|could|might|to|says?|said|claims?|claimed|asks?|asked|requests?|demands?|wants?|insists?|instruct\w*|inject\w*|refuse\w*|wrote|writes)\b|n['’]t\b|\?/i;

/** The number that the last sentence of prose gives out of the range's maximum: "I give it 7 out of 10." */
export function numberOutOf([least, most]: readonly [number, number], line: string): number | null {
  const end = line.slice(-1000);
  const [match, ...others] = end.matchAll(OUT_OF);
  if (match === undefined || others.length > 0 || Number(match[2]) !== most || DOUBTS.test(line)) return null;
  const before =
    end
      .slice(0, match.index)
      .split(/[.!?]\s/)
      .at(-1) ?? "";
  const after = end.slice(match.index + match[0].length);
  const isGiven = GIVES.test(before) && GIVEN.test(after) && !/[.!?]\s+\S/.test(after);
  return isGiven ? numberWithin([least, most], Number(match[1])) : null;
}
