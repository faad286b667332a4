/** The page a transcript is set on: a narrow column of names, a wide one of text. */
import type { Paint, Style } from "./paint.ts";
import { preview, safeText } from "./safe-text.ts";
import { cutTo, displayWidth, padTo, wrap } from "./text-width.ts";

export interface Page {
  /** Columns in all. */
  readonly width: number;
  readonly paint: Paint;
}

const LABEL_WIDTH = 11;
const NARROWEST_TEXT = 10;
/** Dashes and spaces around a title and what is said of it. */
const NARROWEST_RULE = 7;

export function textWidth({ width }: Page): number {
  return Math.max(NARROWEST_TEXT, width - LABEL_WIDTH);
}

export interface Entry {
  readonly label: string;
  readonly style: Style;
  /** Whoever wrote it: it is made harmless here. */
  readonly text: string;
  /** Of the text; default: none. */
  readonly textStyle?: Style;
}

/** A name in the left column, the text wrapped beside it. */
export function entry({ label, style, text, textStyle }: Entry, page: Page): string[] {
  const { shown, missing } = preview(safeText(text));
  const lines = wrap(shown, textWidth(page)).map((line) => {
    return textStyle === undefined ? line : page.paint(textStyle, line);
  });
  if (missing !== null) lines.push(page.paint("grey", missing));
  return lines.map((line, at) => {
    const name = padTo(at === 0 ? label : "", LABEL_WIDTH);
    // Nothing but spaces needs no colour, and would not be trimmed with it.
    return ((name.trim() === "" ? name : page.paint(style, name)) + line).trimEnd();
  });
}

export function rule(title: string, facts: string, { paint, width }: Page): string {
  const room = width - displayWidth(title) - NARROWEST_RULE;
  const said = facts === "" ? "" : ` ${cutTo(facts, room)}`;
  const dashes = "─".repeat(Math.max(2, width - displayWidth(title) - displayWidth(said) - 4));
  return `${paint("grey", "──")} ${paint("bold", title)} ${paint("grey", dashes + said)}`;
}
