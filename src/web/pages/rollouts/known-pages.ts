/**
 * Keeps what is known of a long list that is read page by page: where each page begins and how many rows it had. Only
 * the rows of visible pages are kept. Pure.
 */
export const PAGE_ROWS = 200;

export interface KnownPage {
  /** The cursor after which it begins; undefined for the first. */
  readonly after: string | undefined;
  /** The number of rows at the last read; null if it was never read. */
  readonly rows: number | null;
}

export const FIRST: readonly KnownPage[] = [{ after: undefined, rows: null }];

interface ReadPage {
  readonly data: readonly unknown[];
  readonly last_id: string | null;
  readonly has_more: boolean;
}

/**
 * The pages after page `at` was read (again): the next page begins where it ends. If it is the last, no page follows.
 */
export function withRead(pages: readonly KnownPage[], at: number, read: ReadPage): readonly KnownPage[] {
  const known = pages[at];
  if (known === undefined) return pages;
  const next = read.has_more ? (read.last_id ?? undefined) : undefined;
  const following = pages[at + 1];
  if (known.rows === read.data.length && following?.after === next) return pages;
  const page = { ...known, rows: read.data.length };
  if (next === undefined) return [...pages.slice(0, at), page];
  const rest = following === undefined ? [{ after: next, rows: null }] : pages.slice(at + 1);
  const [second, ...others] = rest;
  return [...pages.slice(0, at), page, { rows: second?.rows ?? null, after: next }, ...others];
}

/** The index of each page's first row, then the index of the end. A page that was never read counts as full. */
export function startsOf(pages: readonly KnownPage[]): readonly number[] {
  const starts = [0];
  for (const { rows } of pages) starts.push((starts.at(-1) ?? 0) + (rows ?? PAGE_ROWS));
  return starts;
}

/** The pages that hold rows `first` to `last`. */
export function pagesAt(pages: readonly KnownPage[], first: number, last: number): readonly number[] {
  const starts = startsOf(pages);
  return pages.flatMap((_, at) => ((starts[at] ?? 0) <= last && (starts[at + 1] ?? 0) > first ? [at] : []));
}
