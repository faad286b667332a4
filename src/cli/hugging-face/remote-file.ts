/** A file at a URL, read by ranges. A connection that is cut continues at the byte where it ended. */
import { usageError } from "../exit.ts";
import type { Bytes } from "../tables/bytes.ts";
import type { Hub } from "./hub.ts";

const NO_COMPRESSION = { "accept-encoding": "identity" };

export class RemoteFile implements Bytes {
  readonly name: string;
  readonly size: number;
  /** Names this content; null if the server gives none. */
  readonly etag: string | null;
  readonly #hub: Hub;
  readonly #url: string;
  readonly #onBytes: (count: number) => void;

  private constructor(hub: Hub, { url, name, onBytes }: RemoteOptions, size: number, etag: string | null) {
    this.#hub = hub;
    this.#url = url;
    this.name = name;
    this.#onBytes = onBytes;
    this.size = size;
    this.etag = etag;
  }

  /** Asks for the first byte: links that are signed for GET refuse HEAD. */
  static async open(hub: Hub, options: RemoteOptions): Promise<RemoteFile> {
    // An empty file has no first byte.
    const empty = 416;
    const headers = { ...NO_COMPRESSION, range: "bytes=0-0" };
    const reply = await hub.open(options.url, headers, options.name, [empty]);
    if (reply === null) return new RemoteFile(hub, options, 0, null);
    await reply.body?.cancel();
    const range = rangeOf(reply);
    if (range === null) throw usageError(`${options.name}: the server does not answer requests for a part of a file`);
    return new RemoteFile(hub, options, range.size, reply.headers.get("etag"));
  }

  async read(start: number, end: number): Promise<ArrayBuffer> {
    const bytes = new Uint8Array(end - start);
    let at = 0;
    for await (const chunk of this.#range(start, end)) {
      bytes.set(chunk, at);
      at += chunk.length;
    }
    return bytes.buffer;
  }

  stream(start: number): AsyncIterable<Uint8Array> {
    return this.#range(start, this.size);
  }

  async *#range(start: number, end: number): AsyncGenerator<Uint8Array> {
    let at = start;
    let attempt = 0;
    while (at < end) {
      try {
        for await (const chunk of await this.#open(at, end)) {
          const part = chunk.subarray(0, end - at);
          at += part.length;
          attempt = 0;
          this.#onBytes(part.length);
          yield part;
        }
        if (at < end) throw new Error(`the connection ended at byte ${at} of ${end}`);
      } catch (error) {
        if (!isCut(error)) throw error;
        attempt += 1;
        await this.#hub.waitAfter(error, attempt, this.name);
      }
    }
  }

  async #open(start: number, end: number): Promise<AsyncIterable<Uint8Array>> {
    const headers = { ...NO_COMPRESSION, range: `bytes=${start}-${end - 1}` };
    const reply = await this.#hub.open(this.#url, headers, this.name);
    const range = reply && rangeOf(reply);
    const isSame = range?.size === this.size && (reply?.headers.get("etag") ?? null) === this.etag;
    if (isSame && range.start === start && reply?.body) return reply.body;
    await reply?.body?.cancel();
    throw usageError(`${this.name}: the file changed while it was read: run the command again`);
  }
}

interface RemoteOptions {
  readonly url: string;
  /** The name in errors. */
  readonly name: string;
  /** Called with the length of what was received. */
  readonly onBytes: (count: number) => void;
}

/** What `fetch` throws if the connection breaks while the body is read. */
function isCut(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof Error && error.message.startsWith("the connection ended"));
}

function rangeOf(reply: Response): { readonly start: number; readonly size: number } | null {
  const [, start, size] = /^bytes (\d+)-\d+\/(\d+)$/.exec(reply.headers.get("content-range") ?? "") ?? [];
  return reply.status === 206 && start !== undefined ? { start: Number(start), size: Number(size) } : null;
}
