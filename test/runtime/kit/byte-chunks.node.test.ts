/** Bodies of requests, piece by piece. */
import { expect, test } from "vitest";
import { BrokenBodyError, receivedChunks } from "../../../src/runtime/kit/body-chunks.ts";

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

test("a body that pauses for a minute is given up, and what came before is handed out", async () => {
  const asked: number[] = [];
  const pieces: string[] = [];
  const read = async () => {
    const received = receivedChunks(pausing("a row"), (ms, late) => {
      asked.push(ms);
      if (asked.length === 2) queueMicrotask(late);
      return () => undefined;
    });
    for await (const piece of received) pieces.push(new TextDecoder().decode(piece));
  };
  const failure = new BrokenBodyError("the body paused for 60 s before its end: send it again");
  await expect(read()).rejects.toThrow(failure);
  expect({ asked, pieces }).toEqual({ asked: [60_000, 60_000], pieces: ["a row"] });
});
