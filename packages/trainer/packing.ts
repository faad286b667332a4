/**
 * Samples of many lengths into rows of one length, so that little of a row is padding.
 *
 * First-fit decreasing: the longest sample first, each into the first row with room for it. The same lengths give the
 * same rows.
 */

/** For each row, the indices of its samples. Throws RangeError when a sample is longer than a row. */
export function packRows(lengths: readonly number[], capacity: number): number[][] {
  const longestFirst = lengths.map((length, index) => ({ length, index }));
  longestFirst.sort((one, other) => other.length - one.length || one.index - other.index);
  const rows: { free: number; readonly samples: number[] }[] = [];
  for (const { length, index } of longestFirst) {
    if (length > capacity) throw new RangeError(`a sample of ${length} tokens, rows of ${capacity}`);
    let row = rows.find(({ free }) => free >= length);
    if (row === undefined) {
      row = { free: capacity, samples: [] };
      rows.push(row);
    }
    row.free -= length;
    row.samples.push(index);
  }
  return rows.map(({ samples }) => samples);
}
