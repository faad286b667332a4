/** The reader of all replies from outside, on real sockets. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { beginningOf, LongBodyError, PausedBodyError, wholeText } from "../../../src/kernel/clients/bounded-body.ts";
import { sendHostileBody } from "../../fakes/hostile-body.ts";

let stop = async () => undefined;
afterEach(() => stop());

/** A reply of the server, and a promise that resolves when its reader hangs up. */
async function answered(respond: (response: ServerResponse) => void) {
  const gone = Promise.withResolvers<void>();
  const server = createServer((_, response) => {
    response.once("close", gone.resolve);
    respond(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stop = async () => {
    server.closeAllConnections();
    server.close();
  };
  const { port } = server.address() as AddressInfo;
  return { reply: await fetch(`http://127.0.0.1:${port}/`), gone: gone.promise };
}

const MIB = 1024 * 1024;

test("reading an endless body stops at the limit, and its sender notices that", async () => {
  const { reply, gone } = await answered((response) => sendHostileBody(response, { kind: "endless" }));
  await expect(wholeText(reply, MIB)).rejects.toThrow(LongBodyError);
  await gone;
});

test("a compressed body is counted after decompression", async () => {
  const bomb = { kind: "bomb", bytes: 300 * MIB } as const;
  const { reply, gone } = await answered((response) => sendHostileBody(response, bomb));
  await expect(wholeText(reply, MIB)).rejects.toThrow("more than 1048576 bytes");
  await gone;
});

test("reading the beginning gives at most the limit of a longer body, and all of a shorter one", async () => {
  const endless = await answered((response) => sendHostileBody(response, { kind: "endless" }));
  expect(await beginningOf(endless.reply, 1000)).toBe(`{"id": "${"a".repeat(992)}`);
  await endless.gone;
  await stop();
  const short = await answered((response) => response.end("é and that is all"));
  expect(await beginningOf(short.reply, 1000)).toBe("é and that is all");
});

test("a text of exactly the limit is read whole, and one more character is too long", async () => {
  const said = "é".repeat(512);
  const fits = await answered((response) => response.end(said));
  expect(await wholeText(fits.reply, 1024)).toBe(said);
  await stop();
  const longer = await answered((response) => response.end(`${said}.`));
  await expect(wholeText(longer.reply, 1024)).rejects.toThrow(LongBodyError);
});

test("reading a body that pauses ends after the pause, however long its first byte took", async () => {
  const begun = Promise.withResolvers<() => void>();
  const { reply, gone } = await answered((response) => {
    response.flushHeaders();
    begun.resolve(() => response.write("beg"));
  });
  const timers: { ms: number; late: () => void }[] = [];
  const armed = Promise.withResolvers<void>();
  const text = wholeText(reply, MIB, (ms, late) => {
    timers.push({ ms, late });
    armed.resolve();
    return () => undefined;
  });
  // No timer runs before the first byte.
  const begin = await begun.promise;
  expect(timers).toEqual([]);
  begin();
  await armed.promise;
  expect(timers.map(({ ms }) => ms)).toEqual([LIMITS.bodyPauseMs]);
  timers[0]?.late();
  await expect(text).rejects.toThrow(PausedBodyError);
  await gone;
});

test("a body with a content-length ends with its last byte, without further waiting", async () => {
  const { reply } = await answered((response) => {
    response.setHeader("content-length", 5);
    response.end("whole");
  });
  const timers: number[] = [];
  const after = (ms: number) => {
    timers.push(ms);
    return () => undefined;
  };
  expect(await wholeText(reply, MIB, after)).toBe("whole");
  expect(timers).toEqual([]);
});

test.each([
  { "content-encoding": "gzip" },
  // workerd decodes the chunks and shows both headers.
  { "transfer-encoding": "chunked" },
])("with %j, the content-length is not the length of the body", async (beside) => {
  const pieces = ["in", "flated"].map((text) => new TextEncoder().encode(text));
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = pieces.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(piece);
    },
  });
  const headers = { "content-length": "2", ...beside };
  expect(await wholeText(new Response(body, { headers }), MIB)).toBe("inflated");
});
