/** What a caller may upload as a dataset, made into the body of a request: JSON lines. */

/** One task row; what must be in it is the environment's to say. */
export type TaskRow = Readonly<Record<string, unknown>>;

/**
 * JSONL as text, bytes, a file or a stream; or the rows themselves. Chunks of an iterable that are text or bytes are
 * sent as they are, anything else as one row.
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
  /** It can be read once: an upload that breaks off cannot be sent again. */
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

/** Asks for a chunk only when there is room for it; a request that ends early ends the iteration. */
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
