/**
 * Bodies that would overwhelm a reader without bounds, sent over real sockets, each until its reader closes the
 * connection.
 */
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { createGzip } from "node:zlib";

export type HostileBody =
  /** A JSON text that never ends, as fast as it is read. */
  | { kind: "endless"; status?: number }
  /** This many bytes after decompression; about a thousandth of it as sent. */
  | { kind: "bomb"; bytes: number }
  /** One byte at a time, forever: it never becomes a complete text. */
  | { kind: "drip"; everyMs: number }
  /** OpenAI's error format, with a message of this many characters after its first words. */
  | { kind: "long_error"; status: number; characters: number };

const CHUNK = Buffer.alloc(64 * 1024, "a");
const JSON_TYPE = { "content-type": "application/json" };

/** Returns the status that was sent. */
export function sendHostileBody(response: ServerResponse, body: HostileBody): number {
  switch (body.kind) {
    case "endless":
      response.writeHead(body.status ?? 200, JSON_TYPE).write('{"id": "');
      Readable.from(chunks(Number.POSITIVE_INFINITY)).pipe(response);
      return body.status ?? 200;
    case "bomb":
      response.writeHead(200, { ...JSON_TYPE, "content-encoding": "gzip" });
      Readable.from(chunks(body.bytes)).pipe(createGzip()).pipe(response);
      return 200;
    case "drip": {
      response.writeHead(200, JSON_TYPE);
      const timer = setInterval(() => response.write(" "), body.everyMs);
      response.once("close", () => clearInterval(timer));
      return 200;
    }
    case "long_error": {
      const { status, characters } = body;
      const message = `the engine says: ${"e".repeat(characters)}`;
      response.writeHead(status, JSON_TYPE).end(JSON.stringify({ error: { message, code: status } }));
      return status;
    }
  }
}

function* chunks(bytes: number): Generator<Buffer> {
  for (let sent = 0; sent < bytes; sent += CHUNK.length) yield CHUNK;
}
