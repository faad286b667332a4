/**
 * What tells prose from mathematics, and the marks that prose is set with: bold, italics, headings.
 *
 * Invariant: linear in the text. No pattern has a repetition that can begin at every character and run past the next
 * mark.
 */

/** Words that mathematics has too. */
const MATH_WORDS = new Set(["and", "or", "pi", "sin", "cos", "tan", "ln", "log", "exp", "sqrt"]);

/**
 * Two words side by side, of more than three letters together: a sentence, whatever else the line holds. `shortest`:
 * letters from which on a word counts.
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

/** A line without the marks of Markdown: `#### **5**` is `5`. A product and a power keep their stars. */
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
/** Characters at the end of a line among which they are looked for. */
const END = 40;

/** Without the pictures that begin and end a line: `18 ✅`. */
function withoutPictures(line: string): string {
  const plain = line.replace(PICTURES_BEFORE, "");
  return plain.slice(0, -END) + plain.slice(-END).replace(PICTURES_BEHIND, "");
}

/** Without the `#` of a heading, before it and behind it, and the `>` of a quotation. */
function withoutHashes(line: string): string {
  let [start, end] = [0, line.length];
  while (start < end && /[\s#>]/.test(line[start] ?? "")) start += 1;
  while (end > start && /[\s#]/.test(line[end - 1] ?? "")) end -= 1;
  return line.slice(start, end);
}

/** `Step 2:`, `Part (a)`, in any of the words that number the parts of a solution. */
const PART =
  /^(?:step|part|case|question|problem|task|section|phase|stage|exercise|example|method|approach|scenario)\s{0,2}#?\(?(?:\d{1,3}|[ivx]{1,5}|[a-h])\)?(?![\p{L}\d])[\s.:)–-]{0,5}/iu;
/** Titles that no answer is. */
const TITLE =
  /^(?:(?:the )?(?:final )?(?:answer|result|solution)s?|conclusion|summary|explanation|verification|check|calculations?|reasoning|analysis|approach|given|setup|steps?|proof|overview)\s?[.:]?$/i;
/** `1. Find the cost` */
const NUMBERED_TITLE = /^\d{1,2}[.)]\s{1,3}\p{L}/u;
const WORDS = /^\p{L}[\p{L}\s&'’,-]+:?$/u;
const ANSWERS_IN_WORDS = /^(?:yes|no|true|false|none|never|always)$/i;
/** `Day 3`, `Schritt 2:` */
const WORD_AND_NUMBER = /^\p{L}[\p{L} ]{1,30}\d{1,2}(?:\s?[.:-]|$)/u;

/** Without the name of a part of a solution before it. */
export function withoutPart(line: string): string {
  return line.replace(PART, "");
}

/** Whether a line is a title and nothing else. */
export function isTitle(line: string): boolean {
  return withoutPart(line) === "" || TITLE.test(line);
}

/** Whether what stands behind the mark of a heading is its title; `isLast`: no line stands below it. */
export function isHeading(content: string, isLast: boolean): boolean {
  if (PART.test(content) || TITLE.test(content) || NUMBERED_TITLE.test(content)) return true;
  if (isLast) return false;
  return (WORDS.test(content) && !ANSWERS_IN_WORDS.test(content)) || WORD_AND_NUMBER.test(content);
}
