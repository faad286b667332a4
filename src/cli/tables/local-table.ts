/** A Parquet, CSV or TSV file on disk as JSON Lines, which is what the platform takes. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFile } from "./bytes.ts";
import { formatOf, taskRows } from "./table.ts";

const TEXT_LENGTH = 4 * 1024 * 1024;

export interface ConvertedTable extends Disposable {
  /** A temporary file; `dispose` deletes it. */
  readonly file: string;
}

/** Whether the file must be converted before it is sent. */
export function isTable(file: string): boolean {
  const format = formatOf(file);
  return format !== null && format !== "jsonl";
}

/** Every column becomes a field of the task rows. The result is the same each time, so that an upload can continue. */
export async function convertTable(file: string, param: string, signal?: AbortSignal): Promise<ConvertedTable> {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-table-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    const converted = join(folder, "rows.jsonl");
    writeFileSync(converted, "");
    await using bytes = await openFile(file, param);
    for await (const { rows } of taskRows(bytes, formatOf(file) ?? "jsonl", null, 0)) {
      signal?.throwIfAborted();
      for (const text of jsonLines(rows)) await appendFile(converted, text);
    }
    return { file: converted, [Symbol.dispose]: remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** In texts of about `TEXT_LENGTH`: one text of all rows may be longer than a string can be. */
export function* jsonLines(rows: readonly object[]): Generator<string> {
  let text = "";
  for (const row of rows) {
    text += `${JSON.stringify(row)}\n`;
    if (text.length < TEXT_LENGTH) continue;
    yield text;
    text = "";
  }
  yield text;
}
