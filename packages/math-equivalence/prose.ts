/**
 * Distinguishes prose from mathematics, and removes the marks of prose: bold, italics, headings.
 *
 * Invariant: linear in the text. No pattern has a repetition that can begin at every character and run past the next
 * mark.
 */

/** Words that also occur in mathematics. */
const MATH_WORDS = new Set(["and", "or", "pi", "sin", "cos", "tan", "ln", "log", "exp", "sqrt"]);

/**
 * Two adjacent words, of more than three letters together, make a sentence, whatever else the line contains.
 * `shortest`: the minimum number of letters of a word.
 */
export function isSentence(line: string, shortest = 1): boolean {
  let before = "";
  // One at a time: a line may be the whole of a long reply.
  for (const [text] of line.matchAll(/\S+/g)) {
    const word = /^((?:\p{Script=Latin}|\p{Script=Cyrillic})+)[,:;.!?]?$/u.exec(text)?.[1] ?? "";
    const counts = word.length >= shortest && !MATH_WORDS.has(word);
    if (counts && before !== "" && before.length + word.length > 3) return true;
    before = counts ? word : "";
  }
  return false;
}

const STARS = /(?<![\w*\\)\]}])(\*{1,3})(?=[^\s*])([^*\n]*[^\s*\n])\1(?!\*)/g;
const LOW_LINES = /(?<![\w\\])(__?)(?=[^\s_])([^_\n]*[^\s_\n])\1(?!\w)/g;
const CODE = /`([^`\n]*)`/g;

/** A line without Markdown: `#### **5**` is `5`. Products and powers keep their stars. */
export function withoutMarks(line: string): string {
  const plain = withoutPictures(withoutHashes(line))
    .replace(STARS, "$2")
    .replace(LOW_LINES, "$2")
    .replace(CODE, "$1")
    .trim();
  // Bold may begin on one line and end on another.
  return withoutPictures(plain.replace(/^\*\*(?!\*)/, "").replace(/(?<!\*)\*\*$/, "")).trim();
}

const PICTURE = "(?:\\p{Extended_Pictographic}|\\p{Emoji_Modifier}|[\\ufe0f✓✔✗✘∎■□▪◾])";
const PICTURES_BEFORE = new RegExp(`^(?:${PICTURE}\\s{0,3}){1,20}(?=.)`, "u");
const PICTURES_BEHIND = new RegExp(`(?<=.)\\s{0,3}(?:${PICTURE}\\s{0,3}){1,20}$`, "u");
/** How many characters at the end of a line are searched for them. */
const END = 40;

/** Without emoji at the start and the end of a line: `18 ✅`. */
function withoutPictures(line: string): string {
  const plain = line.replace(PICTURES_BEFORE, "");
  return plain.slice(0, -END) + plain.slice(-END).replace(PICTURES_BEHIND, "");
}

/** Without the `#` of a heading, before and after it, and the `>` of a quotation. */
function withoutHashes(line: string): string {
  let [start, end] = [0, line.length];
  while (start < end && /[\s#>]/.test(line[start] ?? "")) start += 1;
  while (end > start && /[\s#]/.test(line[end - 1] ?? "")) end -= 1;
  return line.slice(start, end);
}

/** `Step 2:`, `Part (a)`, with any of the words that number the parts of a solution. */
const PART =
  /^(?:step|part|case|question|problem|task|section|phase|stage|exercise|example|method|approach|scenario)\s{0,2}#?\(?(?:\d{1,3}|[ivx]{1,5}|[a-h])\)?(?![\p{L}\d])[\s.:)–-]{0,5}/iu;
/** Titles that are never an answer. */
const TITLE =
  /^(?:(?:the )?(?:final )?(?:answer|result|solution)s?|conclusion|summary|explanation|verification|check|calculations?|reasoning|analysis|approach|given|setup|steps?|proof|overview)\s?[.:]?$/i;
/** `1. Find the cost` */
const NUMBERED_TITLE = /^\d{1,2}[.)]\s{1,3}\p{L}/u;
const WORDS = /^\p{L}[\p{L}\s&'’,-]+:?$/u;
const ANSWERS_IN_WORDS = /^(?:yes|no|true|false|none|never|always)$/i;
/** `Day 3`, `Schritt 2:` */
const WORD_AND_NUMBER = /^\p{L}[\p{L} ]{1,30}\d{1,2}(?:\s?[.:-]|$)/u;

/** The line without a leading name of a part of the solution. */
export function withoutPart(line: string): string {
  return line.replace(PART, "");
}

/** Whether a line is a title and nothing else. */
export function isTitle(line: string): boolean {
  return withoutPart(line) === "" || TITLE.test(line);
}

/** Whether the text after the mark of a heading is its title; `isLast`: no line follows it. */
export function isHeading(content: string, isLast: boolean): boolean {
  if (PART.test(content) || TITLE.test(content) || NUMBERED_TITLE.test(content)) return true;
  if (isLast) return false;
  return (WORDS.test(content) && !ANSWERS_IN_WORDS.test(content)) || WORD_AND_NUMBER.test(content);
}
