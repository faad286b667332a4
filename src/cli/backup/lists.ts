/** Long lists as blobs, a JSON value a line. */
import type * as z from "zod";
import type { Blobs } from "./blobs.ts";

const BLOB_CHARACTERS = 1_000_000;

export class ListWriter<Entry extends object> {
  readonly #blobs: Blobs;
  readonly #written: string[] = [];
  #text = "";

  constructor(blobs: Blobs) {
    this.#blobs = blobs;
  }

  async add(entry: Entry): Promise<void> {
    this.#text += `${JSON.stringify(entry)}\n`;
    if (this.#text.length >= BLOB_CHARACTERS) await this.#write();
  }

  /** The blobs of the whole list. */
  async end(): Promise<readonly string[]> {
    if (this.#text !== "") await this.#write();
    return this.#written;
  }

  async #write(): Promise<void> {
    const text = this.#text;
    this.#text = "";
    this.#written.push(await this.#blobs.add(text));
  }
}

export async function* readList<Schema extends z.ZodType>(
  blobs: Blobs,
  list: readonly string[],
  schema: Schema,
): AsyncGenerator<z.output<Schema>> {
  for (const blob of list) {
    for (const line of (await blobs.text(blob)).split("\n")) {
      if (line !== "") yield schema.parse(JSON.parse(line));
    }
  }
}
