/** Text in columns. */
import { displayWidth, padTo } from "./text-width.ts";

/** A header, a rule, and a line for each row. */
export function columns(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) => {
    return Math.max(displayWidth(title), ...rows.map((row) => displayWidth(row[column] ?? "")));
  });
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => padTo(cell, widths[column] ?? 0))
      .join("   ")
      .trimEnd();
  return [header, widths.map((width) => "─".repeat(width)), ...rows].map(line).join("\n");
}

/** Names and values below each other; what is null is left out. */
export function details(fields: Readonly<Record<string, string | null>>): string {
  const there = Object.entries(fields).flatMap(([name, value]) => {
    return value === null ? [] : [{ name, value }];
  });
  const width = Math.max(...there.map(({ name }) => name.length));
  return there.map(({ name, value }) => `${name.padEnd(width)}  ${value}`).join("\n");
}
