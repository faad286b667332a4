import { expect, test } from "vitest";
import { isJsonType, mediaTypeOf } from "../../src/contract/media-type.ts";

test.each([
  ["Text/Event-Stream; charset=UTF-8", "text/event-stream"],
  ["APPLICATION/JSON", "application/json"],
  [" application/json ;charset=utf-8", "application/json"],
  ["application/jsonl;", "application/jsonl"],
  ["text/html, application/json", "text/html, application/json"],
  ["", ""],
  [null, ""],
])("the media type of %j is %j", (header, type) => {
  expect(mediaTypeOf(header)).toBe(type);
});

test("JSON is recognised by its type or its suffix, in any case", () => {
  for (const type of ["Application/Json; charset=utf-8", "application/problem+JSON"])
    expect(isJsonType(type)).toBe(true);
  for (const type of ["text/json-like", "application/jsonl", "application/x-json", ""]) {
    expect(isJsonType(type)).toBe(false);
  }
});
