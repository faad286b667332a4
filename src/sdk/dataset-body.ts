/** Makes the body of an upload, as JSON lines, from all forms of a dataset. */

/** One task row. Its required fields depend on the environment. */
export type TaskRow = Readonly<Record<string, unknown>>;

/**
 * JSONL as text, bytes, a file or a stream; or the rows themselves. Chunks of an iterable are sent as they are if they
 * are text or bytes; anything else is one row.
 */
export type DatasetSource =
  | string
  | Uint8Array<ArrayBuffer>
  | Blob
  | readonly TaskRow[]
  | ReadableStream<Uint8Array>
  | AsyncIterable<TaskRow | Uint8Array | string>;

export interface DatasetBody {
  readonly body: BodyInit;
  /** It can only be read once: an interrupted upload cannot be sent again. */
  readonly once: boolean;
}

export function datasetBodyOf(source: DatasetSource): DatasetBody {
  if (typeof source === "string" || source instanceof Uint8Array || source instanceof Blob) {
    return { body: source, once: false };
  }
  if (source instanceof ReadableStream) return { body: source, once: true };
  if (isRows(source)) return { body: source.map(lineOf).join(""), once: false };
  return { body: streamOf(source), once: true };
}

function isRows(source: object): source is readonly TaskRow[] {
  return Array.isArray(source);
}

/** Requests a chunk only when the stream has room for it; a request that ends early ends the iteration. */
function streamOf(chunks: AsyncIterable<TaskRow | Uint8Array | string>): ReadableStream<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) return controller.close();
      controller.enqueue(value instanceof Uint8Array ? value : encoder.encode(textOf(value)));
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

function textOf(chunk: TaskRow | string): string {
  return typeof chunk === "string" ? chunk : lineOf(chunk);
}

function lineOf(row: TaskRow): string {
  return `${JSON.stringify(row)}\n`;
}
