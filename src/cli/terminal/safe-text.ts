/**
 * Text that a model, a tool or a dataset wrote, made harmless for a terminal: what would move the cursor, change
 * colours or turn the direction of reading is shown as a code instead. Long text is cut, and says so.
 */

const MAX_CHARACTERS = 10_000;
const MAX_LINES = 100;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
/** Marks that reorder or hide what stands around them. */
const INVISIBLE = /[\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export function safeText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll("\r\n", "\n")
    .replaceAll("\t", "    ")
    .replace(CONTROLS, codeOf)
    .replace(INVISIBLE, codeOf);
}

/** One line, also of text that has several. */
export function safeLine(text: string): string {
  return safeText(text).replaceAll("\n", "⏎");
}

/** The first part of long text, and what is missing of it; null where nothing is. */
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
