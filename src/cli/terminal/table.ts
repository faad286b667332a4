/** Prints text in columns, or as a list of fields if the columns do not fit. */
import { cutTo, displayWidth, padTo, safeLine } from "./text.ts";

/**
 * The maximum widths by column title. A longer text is cut in its column, and is complete if rows are printed as lists.
 */
type Widest = Readonly<Record<string, number>>;

interface Listing<T> {
  readonly header: readonly string[];
  readonly rowOf: (item: T) => readonly string[];
  /** The text for an empty list: how to add something to it. */
  readonly none: string;
  /** The columns that are available. */
  readonly room: number;
  readonly widest?: Widest;
}

/**
 * A header, a rule, and a line for each row. A table wider than `room` would be broken by the terminal, so it is
 * printed row by row instead, with a name and a value per line.
 */
export function columns(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  room = Number.POSITIVE_INFINITY,
  widest: Widest = {},
): string {
  const cut = rows.map((row) =>
    header.map((title, column) => cutTo(row[column] ?? "", widest[title] ?? Number.POSITIVE_INFINITY)),
  );
  const widths = header.map((title, column) => {
    return Math.max(displayWidth(title), ...cut.map((row) => displayWidth(row[column] ?? "")));
  });
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => padTo(cell, widths[column] ?? 0))
      .join("   ")
      .trimEnd();
  const lines = [header, widths.map((width) => "─".repeat(width)), ...cut].map(line);
  if (lines.every((text) => displayWidth(text) <= room)) return lines.join("\n");
  return rows.map((row) => details(recordOf(header, row))).join("\n\n");
}

function recordOf(header: readonly string[], row: readonly string[]) {
  return Object.fromEntries(header.map((title, column) => [title, row[column] || null]));
}

/** Names and values, one pair per line; null values are left out. */
export function details(fields: Readonly<Record<string, string | null>>): string {
  const there = Object.entries(fields).flatMap(([name, value]) => {
    return value === null ? [] : [{ name, value }];
  });
  const width = Math.max(...there.map(({ name }) => name.length));
  return there.map(({ name, value }) => `${name.padEnd(width)}  ${value}`).join("\n");
}

export function listText<T>(items: readonly T[], { header, rowOf, none, room, widest }: Listing<T>): string {
  if (items.length === 0) return none;
  const rows = items.map((item) => rowOf(item).map(safeLine));
  return columns(header, rows, room, widest);
}

/** The same for values from users or models. */
export function safeDetails(fields: Readonly<Record<string, string | null>>): string {
  const safe = Object.entries(fields).map(([name, value]) => [name, value === null ? null : safeLine(value)] as const);
  return details(Object.fromEntries(safe));
}
