/**
 * Where the answer stands in a reply and in a row of a dataset. Each text is read a fixed number of times, by position.
 *
 * In a reply, in this order: the last `\boxed{…}` whose braces close; what follows the last `####` on its line; the
 * last line, if it is an answer and no sentence, or the last formula in it; the last number. What was thought
 * (everything up to the last `</think>`, and after a `<think>` that never closes) does not count. Nor does a last line
 * that is copied from the question, for what is asked often has the value of its answer.
 */

const MARK = "####";
/** Words that mathematics has too. */
const MATH_WORDS = new Set(["and", "or", "pi", "sin", "cos", "tan", "ln", "log", "exp", "sqrt"]);
/** `Answer: ` */
const LABEL = /^[A-Za-z ]{1,40}:(?!\/)/;
/** A minus after a digit or a closing bracket subtracts. */
const NUMBER = /(?:(?<![\w)])[-−])?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:\/\d+(?:\.\d+)?)?|\.\d+)%?/g;
/** How formulas are set apart, as opening and closing. */
const FORMULAS = [
  ["$$", "$$"],
  ["$", "$"],
  ["\\(", "\\)"],
  ["\\[", "\\]"],
] as const;

/** The answer of a reply to `question`; null when there is none. With `strict` only a box counts. */
export function extractMathAnswer(reply: string, strict = false, question = ""): string | null {
  const said = withoutThinking(reply);
  const boxed = extractBoxedAnswer(said, true).trim();
  if (boxed !== "" || strict) return boxed === "" ? null : boxed;
  return afterMark(said) ?? fromLastLine(said, question) ?? lastNumber(said);
}

/** The answer of a row: what its last box holds, what follows its `####`, or all of it. */
export function extractMathTarget(answer: string): string {
  const boxed = extractBoxedAnswer(answer, true).trim();
  return boxed !== "" ? boxed : (afterMark(answer) ?? answer.trim());
}

function withoutThinking(reply: string): string {
  const close = reply.lastIndexOf("</think>");
  const after = close === -1 ? reply : reply.slice(close + "</think>".length);
  const open = after.indexOf("<think>");
  return open === -1 ? after : after.slice(0, open);
}

function afterMark(text: string): string | null {
  const mark = text.lastIndexOf(MARK);
  if (mark === -1) return null;
  return (
    text
      .slice(mark + MARK.length)
      .trimStart()
      .split("\n", 1)[0]
      ?.trim() || null
  );
}

function fromLastLine(text: string, question: string): string | null {
  const line = text.trim().split("\n").at(-1)?.trim() ?? "";
  if (question.split("\n").some((asked) => asked.trim() === line)) return null;
  const formula = lastFormula(line);
  if (formula !== null) return formula;
  const answer = line.replaceAll("**", "").replace(LABEL, "").trim();
  return answer === "" || isSentence(answer) ? null : answer;
}

/** Two words side by side, of more than three letters together: a sentence, whatever else the line holds. */
function isSentence(line: string): boolean {
  let before = "";
  // One at a time: a line may be the whole of a long reply.
  for (const [text] of line.matchAll(/\S+/g)) {
    const word = /^([A-Za-z]+)[,:;.!?]?$/.exec(text)?.[1] ?? "";
    const counts = word !== "" && !MATH_WORDS.has(word);
    if (counts && before !== "" && before.length + word.length > 3) return true;
    before = counts ? word : "";
  }
  return false;
}

/** The formula that closes last; of one in `$$` the marks count as one. */
function lastFormula(line: string): string | null {
  let last = { end: -1, text: "" };
  for (const [open, close] of FORMULAS) {
    const end = line.lastIndexOf(close);
    const start = end <= 0 ? -1 : line.lastIndexOf(open, end - open.length);
    if (start === -1 || end + close.length <= last.end) continue;
    last = { end: end + close.length, text: line.slice(start + open.length, end).trim() };
  }
  return last.text === "" ? null : last.text;
}

function lastNumber(text: string): string | null {
  let last: string | null = null;
  for (const [number] of text.matchAll(NUMBER)) last = number;
  return last;
}

const BOX = "\\boxed{";

/**
 * What the last `\boxed{…}` holds, braces matched. Without one, or when it never closes: the whole text, or "" when
 * `strict`.
 */
export function extractBoxedAnswer(text: string, strict = false): string {
  const box = text.lastIndexOf(BOX);
  const start = box + BOX.length;
  const end = box === -1 ? -1 : closingBrace(text, start);
  if (end !== -1) return text.slice(start, end);
  return strict ? "" : text;
}

function closingBrace(text: string, start: number): number {
  let depth = 1;
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === "{") depth += 1;
    if (text[at] === "}") depth -= 1;
    if (depth === 0) return at;
  }
  return -1;
}
