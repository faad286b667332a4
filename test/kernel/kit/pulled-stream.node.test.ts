/** Replies that are produced while they are read. */
import { expect, test } from "vitest";
import { pulledStream } from "../../../src/kernel/kit/pulled-stream.ts";

/** A reply with this many pieces, and the timers that wait for its reader. */
function replyOf(pieces: number) {
  const made: number[] = [];
  const armed = new Set<() => void>();
  let ends = 0;
  const next = async () => {
    if (made.length === pieces) return null;
    made.push(made.length);
    return new Uint8Array([made.length]);
  };
  const end = () => {
    ends += 1;
  };
  const stream = pulledStream({ next, end }, (_ms, late) => {
    armed.add(late);
    return () => armed.delete(late);
  });
  return { reader: stream.getReader(), made, armed, ends: () => ends };
}

test("nothing is produced before it is read, and the end is called once", async () => {
  const { reader, made, ends } = replyOf(2);
  await Promise.resolve();
  expect(made).toEqual([]);
  expect((await reader.read()).value).toEqual(new Uint8Array([1]));
  expect([made.length, ends()]).toEqual([1, 0]);
  await reader.read();
  expect((await reader.read()).done).toBe(true);
  await reader.cancel();
  expect(ends()).toBe(1);
});

test("a reader that takes nothing for too long is cut off", async () => {
  const { reader, armed, ends } = replyOf(5);
  await reader.read();
  expect(armed.size).toBe(1);
  for (const late of armed) late();
  await expect(reader.read()).rejects.toThrow("the client stopped reading this reply");
  expect([armed.size, ends()]).toEqual([0, 1]);
});

test("a reader that disconnects ends it", async () => {
  const { reader, armed, ends } = replyOf(5);
  await reader.read();
  await reader.cancel();
  expect([armed.size, ends()]).toEqual([0, 1]);
});
