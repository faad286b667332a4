/** Bodies of requests, piece by piece. */
import { expect, test } from "vitest";
import { receivedChunks } from "../../../src/kernel/kit/body-chunks.ts";

/** Sends this, and then neither more nor its end. */
function pausing(text: string): ReadableStream<Uint8Array> {
  const pieces = [new TextEncoder().encode(text)];
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      const piece = pieces.shift();
      if (piece === undefined) return new Promise(() => undefined);
      controller.enqueue(piece);
      return undefined;
    },
  });
}

/** How much is received from a sender whose pieces take this long each, by the transport's clock; and what ends it. */
async function receive(sent: readonly { bytes: number; tookMs: number }[], workMs = 0) {
  let [now, bytes, came] = [0, 0, 0];
  const left = [...sent];
  let coming = Promise.withResolvers<number>();
  const body = new ReadableStream({
    type: "bytes",
    async pull(controller) {
      const more = await coming.promise;
      came += more;
      controller.enqueue(new Uint8Array(more));
      coming = Promise.withResolvers();
    },
  });
  const after = (ms: number, late: () => void) => {
    // A piece larger than a chunk is read without waiting for its sender.
    if (came > bytes) return () => undefined;
    const piece = left.shift();
    if (piece === undefined || piece.tookMs >= ms) {
      late();
    } else {
      now += piece.tookMs;
      coming.resolve(piece.bytes);
    }
    return () => undefined;
  };
  try {
    for await (const piece of receivedChunks(body, { now: () => now, after })) {
      bytes += piece.length;
      now += workMs;
    }
    return { bytes, thrown: null };
  } catch (thrown) {
    return { bytes, thrown };
  }
}

const SLOW = { slow: true, message: "the body was too slow (under 32768 bytes in 60 s): send it again" };

test("reading a body that pauses for a minute ends, and what came before was delivered", async () => {
  const pieces: string[] = [];
  const asked: number[] = [];
  const read = async () => {
    const after = (ms: number, late: () => void) => {
      asked.push(ms);
      if (asked.length === 2) queueMicrotask(late);
      return () => undefined;
    };
    for await (const piece of receivedChunks(pausing("a row"), { now: () => 0, after })) {
      pieces.push(new TextDecoder().decode(piece));
    }
  };
  await expect(read()).rejects.toMatchObject(SLOW);
  expect({ asked, pieces }).toEqual({ asked: [60_000, 60_000], pieces: ["a row"] });
});

test("reading a body that trickles ends after a minute of waiting, however often a byte arrives", async () => {
  const trickle = Array.from({ length: 1000 }, () => ({ bytes: 1, tookMs: 7000 }));
  expect(await receive(trickle)).toMatchObject({ bytes: 8, thrown: SLOW });
});

test("a body that makes progress is read for as long as it takes", async () => {
  const slow = Array.from({ length: 100 }, () => ({ bytes: 32 * 1024, tookMs: 59_000 }));
  expect(await receive(slow)).toMatchObject({ bytes: 100 * 32 * 1024, thrown: SLOW });
});

test("the time of processing a piece does not count as its sender's", async () => {
  const steady = Array.from({ length: 50 }, () => ({ bytes: 1, tookMs: 1000 }));
  expect(await receive(steady, 90_000)).toMatchObject({ bytes: 50, thrown: SLOW });
});

test("a body gets a buffer of 4 KiB, and twice as much each time it has filled it", async () => {
  const rooms: number[] = [];
  const pieces = [1, 4095, 4096, 8192, 1];
  const body = new ReadableStream({
    type: "bytes",
    pull(controller) {
      rooms.push(controller.byobRequest?.view?.byteLength ?? 0);
      controller.byobRequest?.respond(pieces.shift() ?? 0);
      if (pieces.length === 0) controller.close();
    },
  });
  for await (const piece of receivedChunks(body)) expect(piece.length).toBeGreaterThan(0);
  expect(rooms).toEqual([4096, 4096, 4096, 8192, 16_384]);
});
