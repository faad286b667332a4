/** Which unique constraint a failed write ran into: SQLite names its columns in the message, and nothing else does. */

/** The table whose unique constraint refused the write, or null for any other failure. */
export function violatedTable(thrown: unknown): string | null {
  for (let link = thrown; link instanceof Error; link = link.cause) {
    const table = /UNIQUE constraint failed: (\w+)\./.exec(link.message)?.[1];
    if (table !== undefined) return table;
  }
  return null;
}
