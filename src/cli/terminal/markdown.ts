/** Writes Markdown for pages of GitHub and other hosts. Text of models is shown as it is, and never takes effect. */
import { safeLine } from "./text.ts";

/** Characters of a text that are shown, unless the caller says otherwise. Each may take nine in the file. */
const LONGEST = 120;

/** Characters that mean nothing in Markdown, HTML or a table. */
const PLAIN = /[^\p{L}\p{N} ,;!?'"()%+=±−-]/gu;

/**
 * Text of a model, a dataset or an endpoint as code on one line. Every character that could end the code, a cell or a
 * line, or begin a link, is written as its number; hosts notify nobody who is named inside code. Empty text is a dash.
 */
export function inlineCode(text: string, longest: number = LONGEST): string {
  // Cut first as well, because a reply may have megabytes.
  const characters = Array.from(safeLine(text.slice(0, 2 * longest)));
  const line = characters.length > longest ? `${characters.slice(0, longest - 1).join("")}…` : characters.join("");
  return line === "" ? "–" : `<code>${line.replace(PLAIN, (character) => `&#${character.codePointAt(0)};`)}</code>`;
}

/** A table; the cells must be Markdown without line breaks. "" without rows. */
export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return "";
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(header), line(header.map(() => "---")), ...rows.map(line)].join("\n");
}

/** A part that is closed at first; "" without a body. */
export function foldedPart(title: string, body: string): string {
  return body === "" ? "" : `<details><summary>${title}</summary>\n\n${body}\n\n</details>`;
}
