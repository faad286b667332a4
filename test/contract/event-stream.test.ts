import { expect, test } from "vitest";
import { EventReader } from "../../src/contract/event-stream.ts";

/** The data of the events that each piece completes. */
function dataBy(pieces: readonly string[]): string[][] {
  const reader = new EventReader();
  return pieces.map((piece) => reader.push(piece).map(({ data }) => data));
}

test.each(["\n", "\r\n", "\r"])("an event is returned with its empty line, whatever ends the lines: %j", (end) => {
  const text = [": hello", "event: message", "id: 7", "retry: 10", "data: one", "data:two", ""].join(end) + end;
  expect(new EventReader().push(text)).toEqual([{ name: "message", data: "one\ntwo", id: "7", retry: "10" }]);
});

test("wherever a text is cut, the same events come, each with the piece that completes it", () => {
  const text = "data: a\r\n\r\n: alive\r\n\r\nevent: ping\r\ndata\r\n\r\ndata: b\r\ndata:  c\r\n\r\n";
  for (let first = 0; first <= text.length; first += 1) {
    for (const second of [first, first + 1, first + 2]) {
      const pieces = [text.slice(0, first), text.slice(first, second), text.slice(second)];
      expect(dataBy(pieces).flat(), JSON.stringify(pieces)).toEqual(["a", "", "b\n c"]);
    }
  }
  expect(dataBy(["data: a\r", "\n\r", "\ndata: b", "\r\r", "\n"])).toEqual([[], ["a"], [], ["b"], []]);
});

test("comments, unknown fields and empty lines are not events, and the end completes an open event", () => {
  const reader = new EventReader();
  expect(reader.push(": a\n\n\n\nfoo: bar\n\n:\n\ndata: last")).toEqual([]);
  expect(reader.end()).toEqual([{ name: "message", data: "last", id: null, retry: null }]);
  expect(reader.end()).toEqual([]);
});

test("the cost of a long line is linear in its length, however many pieces it has", () => {
  const reader = new EventReader();
  reader.push("data: ");
  for (let piece = 0; piece < 100_000; piece += 1) reader.push("x".repeat(40));
  expect(reader.push("\n\n")[0]?.data.length).toBe(4_000_000);
});
