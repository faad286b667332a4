/** The bytes of a request or of a stored object, in chunks worth the asking. */

/** Read without a buffer of one's own, the runtime hands out 4 KiB at a time, at five times the cost. */
const CHUNK_BYTES = 256 * 1024;

/**
 * A chunk is good until the next one is asked for: they share their memory. Whoever stops early cancels the rest. The
 * stream must be one of bytes, as those of the runtime are.
 */
export async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader({ mode: "byob" });
  let buffer = new ArrayBuffer(CHUNK_BYTES);
  try {
    for (;;) {
      const { done, value } = await reader.read(new Uint8Array(buffer));
      if (done) return;
      yield value;
      buffer = value.buffer;
    }
  } finally {
    await reader.cancel();
  }
}

/** Takes what is left of a body that nobody reads: until it is sent, its sender does not look for an answer. */
export async function readToEnd(body: ReadableStream<Uint8Array>, atMost: number): Promise<void> {
  let read = 0;
  for await (const chunk of chunksOf(body)) {
    read += chunk.length;
    if (read > atMost) return;
  }
}
