/** Cuts a Markdown text between its blocks, so that each part can be rendered by itself. Pure. */

/** A line that opens or closes a block of code: its indentation, its marks, and what follows them. */
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;

/**
 * The parts, which together have all of the text but the blank lines between them. A part has at most `most` characters,
 * unless a single block has more. Blocks of code and the paragraphs of a list's item stay whole.
 */
export function splitMarkdown(text: string, most: number): string[] {
  const parts: string[] = [];
  let part = "";
  for (const block of blocksOf(text)) {
    if (part !== "" && part.length + block.length > most) {
      parts.push(part);
      part = "";
    }
    part += block;
  }
  if (part.trim() !== "") parts.push(part);
  return parts;
}

/** Each with the blank lines that follow it. */
function* blocksOf(text: string): Generator<string> {
  let block = "";
  let fence: string | null = null;
  let blank = false;
  for (const line of text.replaceAll(/\r\n?/g, "\n").split("\n")) {
    if (fence === null && blank && block.trim() !== "" && /^\S/.test(line)) {
      yield block;
      block = "";
    }
    block += `${line}\n`;
    blank = line.trim() === "";
    fence = fenceAfter(fence, line);
  }
  yield block;
}

/** The marks that opened the block of code that the next line is in; null outside of one. */
function fenceAfter(fence: string | null, line: string): string | null {
  const [, marks = "", rest = ""] = FENCE.exec(line) ?? [];
  if (marks === "") return fence;
  if (fence === null) return marks.startsWith("`") && rest.includes("`") ? null : marks;
  const closes = marks[0] === fence[0] && marks.length >= fence.length && rest.trim() === "";
  return closes ? null : fence;
}
