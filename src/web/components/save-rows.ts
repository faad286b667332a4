/** Saves rows as a file in the browser. */
const LINES_A_PART = 500;

/**
 * One JSON object per line, or the text that `print` makes of a row; `first` comes before them. The parts of the file
 * are blobs, which browsers keep outside the page's memory. `onCount` gets the number of rows so far.
 */
export async function saveRows<Row>(
  name: string,
  rows: AsyncIterable<Row>,
  onCount: (rows: number) => void,
  print: (row: Row) => string = (row) => JSON.stringify(row),
  first = "",
): Promise<void> {
  const parts: Blob[] = [new Blob([first])];
  let lines: string[] = [];
  let count = 0;
  for await (const row of rows) {
    lines.push(`${print(row)}\n`);
    count += 1;
    if (lines.length < LINES_A_PART) continue;
    parts.push(new Blob(lines));
    lines = [];
    onCount(count);
  }
  onCount(count);
  save(name, new Blob([...parts, ...lines]));
}

function save(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
