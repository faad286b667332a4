/** How wide text stands on a terminal, and how it is broken into lines. Widths are in columns. */
import { stripVTControlCharacters } from "node:util";

/** East Asian wide and full-width letters, and pictures: two columns each. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|^\p{Emoji_Presentation}/u;
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Colour codes count for nothing. */
export function displayWidth(text: string): number {
  const plain = stripVTControlCharacters(text);
  // Most text by far.
  if (/^[\x20-\x7e]*$/.test(plain)) return plain.length;
  let width = 0;
  for (const { segment } of graphemes.segment(plain)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}

export function padTo(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - displayWidth(text)));
}

/** Cut to a width, with a mark where something is missing. For text without colour codes. */
export function cutTo(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  return width < 1 ? "" : `${headOf(text, width - 1)}…`;
}

function headOf(text: string, width: number): string {
  let [head, taken] = ["", 0];
  for (const { segment } of graphemes.segment(text)) {
    taken += displayWidth(segment);
    if (taken > width) break;
    head += segment;
  }
  return head;
}

/** Broken at spaces where there are some; a word wider than a line is broken anywhere. Keeps the text's own lines. */
export function wrap(text: string, width: number): string[] {
  return text.split("\n").flatMap((line) => wrapLine(line, Math.max(1, width)));
}

function wrapLine(line: string, width: number): string[] {
  const lines: string[] = [];
  let rest = line;
  while (displayWidth(rest) > width) {
    const head = headOf(rest, width) || [...rest].slice(0, 1).join("");
    const space = rest[head.length] === " " ? head.length : head.lastIndexOf(" ");
    const kept = space > 0 && head.slice(0, space).trim() !== "" ? head.slice(0, space) : head;
    lines.push(kept);
    rest = rest.slice(kept.length).replace(/^ /, "");
  }
  return rest === "" && lines.length > 0 ? lines : [...lines, rest];
}
