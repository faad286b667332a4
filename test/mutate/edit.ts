/** One edit of a token, or of the order of two statements, and the tests that must detect it. */
export interface Edit {
  /** Relative to the root, as are the tests. */
  readonly file: string;
  readonly old: string;
  readonly new: string;
  readonly tests: readonly string[];
}

/** `tests` are paths relative to test/, without the common suffix. */
export function editsOf(
  file: string,
  tests: readonly string[],
  edits: readonly (readonly [old: string, edited: string])[],
): Edit[] {
  const paths = tests.map((name) => `test/${name}.test.ts`);
  return edits.map(([old, edited]) => ({ file, old, new: edited, tests: paths }));
}
