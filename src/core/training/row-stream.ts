/**
 * Decodes rows of samples from a stream of bytes, one at a time: only the current row and the current piece of the
 * stream are in memory.
 */
import { decodeMultiStream } from "@msgpack/msgpack";
import { decodeRows, parseRow, type SampleEncoding, type SampleRow } from "./sample-row.ts";

/** The row is longer than the limit. */
export class RowTooLongError extends Error {
  override readonly name = "RowTooLongError";
}

const NEWLINE = 10;

/** `chunks`: unzipped. `mostBytes`: limit of one encoded row. Throws SampleDecodeError and RowTooLongError. */
export async function* decodeRowStream(
  chunks: AsyncIterable<Uint8Array>,
  encoding: SampleEncoding,
  mostBytes: number,
): AsyncGenerator<SampleRow> {
  const held = { bytes: 0 };
  const counted = countChunks(chunks, held, mostBytes);
  let at = 0;
  if (encoding === "msgpack") {
    for await (const message of decodeMultiStream(counted)) {
      held.bytes = 0;
      yield parseRow(message, at);
      at += 1;
    }
    return;
  }
  for await (const line of linesOf(counted)) {
    held.bytes = 0;
    yield* decodeRows(line, "jsonl");
  }
}

/** Counts the bytes that came since the last complete row. */
async function* countChunks(
  chunks: AsyncIterable<Uint8Array>,
  held: { bytes: number },
  mostBytes: number,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    held.bytes += chunk.length;
    if (held.bytes > mostBytes + chunk.length) throw new RowTooLongError(`a row has more than ${mostBytes} bytes`);
    yield chunk;
  }
}

async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let begun: Uint8Array[] = [];
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      yield joined([...begun, chunk.subarray(from, end)]);
      begun = [];
      from = end + 1;
    }
    // Copied, because the sender may reuse its buffer.
    if (from < chunk.length) begun.push(chunk.slice(from));
  }
  if (begun.length > 0) yield joined(begun);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
