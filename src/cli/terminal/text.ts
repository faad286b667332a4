/** Text on a terminal: measures it, breaks it into lines, and removes control characters. Widths are in columns. */
import { stripVTControlCharacters } from "node:util";

/** East Asian wide and full-width characters and emoji: two columns each. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|^\p{Emoji_Presentation}/u;
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Colour codes have no width. */
export function displayWidth(text: string): number {
  const plain = stripVTControlCharacters(text);
  // The fast path for most text.
  if (/^[\x20-\x7e]*$/.test(plain)) return plain.length;
  let width = 0;
  for (const { segment } of graphemes.segment(plain)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}

export function padTo(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - displayWidth(text)));
}

/** Cut to a width, with a mark if something is missing. For text without colour codes. */
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

/** Broken at spaces if possible; a word wider than a line is broken anywhere. Keeps the line breaks of the text. */
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

const MAX_CHARACTERS = 10_000;
const MAX_LINES = 100;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
/** Characters that reorder or hide the text around them. */
const INVISIBLE = /[\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * Text from a model, a tool or a dataset, made safe for a terminal: control characters that would move the cursor,
 * change colours or reverse the reading direction are shown as codes. Long text is cut, with a note.
 */
export function safeText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll("\r\n", "\n")
    .replaceAll("\t", "    ")
    .replace(CONTROLS, codeOf)
    .replace(INVISIBLE, codeOf);
}

/** As one line, even if the text has several. */
export function safeLine(text: string): string {
  return safeText(text).replaceAll("\n", "⏎");
}

/** The first part of a long text, and a note of what is missing; the note is null if nothing is. */
export function preview(text: string): { readonly shown: string; readonly missing: string | null } {
  const lines = text.slice(0, MAX_CHARACTERS).split("\n").slice(0, MAX_LINES);
  const shown = lines.join("\n");
  if (shown.length === text.length) return { shown, missing: null };
  const more = (text.length - shown.length).toLocaleString("en-US");
  return { shown, missing: `… ${more} more characters; --json has them` };
}

function codeOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `\\u{${code.toString(16)}}`;
}
