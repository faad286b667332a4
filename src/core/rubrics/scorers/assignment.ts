/**
 * Pairs rows with columns so that the sum of the pairs' scores is greatest: the Hungarian method with potentials (Kuhn 1955,
 * Munkres 1957), in rows² × columns steps.
 */

/** The greatest sum. Rows are of one length; where there are fewer of one kind, some of the other stay alone. */
export function bestAssignment(scores: readonly (readonly number[])[]): number {
  const rows = scores.length;
  const columns = scores[0]?.length ?? 0;
  if (rows === 0 || columns === 0) return 0;
  const tall = rows > columns;
  const [few, many] = tall ? [columns, rows] : [rows, columns];
  const score = (row: number, column: number) => (tall ? scores[column]?.[row] : scores[row]?.[column]) ?? 0;
  const pairs = assign(few, many, (row, column) => -score(row, column));
  return pairs.reduce((sum, row, column) => sum + (row < 0 ? 0 : score(row, column)), 0);
}

/** The row of each column, −1 for none, at the least sum of costs. There are no more rows than columns. */
function assign(rows: number, columns: number, cost: (row: number, column: number) => number): number[] {
  const rowOf = new Array<number>(columns + 1).fill(-1);
  const potentials = {
    rows: new Float64Array(rows),
    columns: new Float64Array(columns + 1),
  };
  for (let row = 0; row < rows; row += 1) augment(row, rowOf, potentials, columns, cost);
  return rowOf.slice(0, columns);
}

interface Potentials {
  readonly rows: Float64Array;
  readonly columns: Float64Array;
}

/** Brings one more row in: a shortest path from it to a column that is free, then every pair on it changes over. */
function augment(
  first: number,
  rowOf: number[],
  potentials: Potentials,
  columns: number,
  cost: (row: number, column: number) => number,
): void {
  const start = columns;
  const slack = new Float64Array(columns).fill(Number.POSITIVE_INFINITY);
  const before = new Int32Array(columns).fill(start);
  const used = new Uint8Array(columns + 1);
  rowOf[start] = first;
  let column = start;
  while (rowOf[column] !== -1) {
    used[column] = 1;
    column = nearest(column, rowOf, potentials, { slack, before, used }, cost);
  }
  while (column !== start) {
    const previous = before[column] ?? start;
    rowOf[column] = rowOf[previous] ?? -1;
    column = previous;
  }
}

interface Search {
  readonly slack: Float64Array;
  readonly before: Int32Array;
  readonly used: Uint8Array;
}

/** The nearest column not yet used, with potentials moved so that the way there costs nothing. */
function nearest(
  from: number,
  rowOf: readonly number[],
  potentials: Potentials,
  search: Search,
  cost: (row: number, column: number) => number,
): number {
  const { slack, before, used } = search;
  const row = rowOf[from] ?? 0;
  const base = potentials.rows[row] ?? 0;
  let best = { column: 0, slack: Number.POSITIVE_INFINITY };
  for (const [at, known] of slack.entries()) {
    if (used[at] === 1) continue;
    const reduced = cost(row, at) - base - (potentials.columns[at] ?? 0);
    if (reduced < known) before[at] = from;
    slack[at] = Math.min(reduced, known);
    if (Math.min(reduced, known) < best.slack) best = { column: at, slack: slack[at] ?? 0 };
  }
  shift(best.slack, rowOf, potentials, search);
  return best.column;
}

function shift(by: number, rowOf: readonly number[], { rows, columns }: Potentials, { slack, used }: Search): void {
  for (const [at, isUsed] of used.entries()) {
    if (isUsed === 1) {
      const owner = rowOf[at] ?? 0;
      rows[owner] = (rows[owner] ?? 0) + by;
      columns[at] = (columns[at] ?? 0) - by;
    } else if (at < slack.length) slack[at] = (slack[at] ?? 0) - by;
  }
}
