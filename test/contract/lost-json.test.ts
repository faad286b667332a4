import { expect, test } from "vitest";
import { decimalOf, isRawNumber, parseKeepingNumbers } from "../../src/contract/exact-json.ts";
import { findLost } from "../../src/contract/lost-json.ts";

const lostIn = (text: string, name?: string) => findLost(text, JSON.parse(text), name);

test.each([
  [
    '{"answer":9007199254740993}',
    "answer",
    "the whole number 9007199254740993 has too many digits to be stored exactly",
  ],
  ['{"answer":-9007199254740993}', "answer", "the whole number -9007199254740993 has"],
  ['{"a":{"b":[1,[2,9007199254740993.0]]}}', "a.b[1][1]", "the whole number 9007199254740993.0 has"],
  ['[{"n":1},{"n":9.007199254740993e15}]', "[1].n", "the number 9.007199254740993e15 has"],
  ['{"n":12345678901234567890123}', "n", "12345678901234567890123"],
  // Doubles that are written back with other digits.
  ['{"n":9223372036854775808}', "n", "9223372036854775808"],
  ['{"n":1234567890123456789e3}', "n", "1234567890123456789e3"],
  ['{"n":1e400}', "n", "the number 1e400 is too large to be stored"],
  ['{"n":-1E+400}', "n", "the number -1E+400 is too large"],
  ["9007199254740993", "", "the whole number 9007199254740993 has"],
  [`{"n":1${"0".repeat(400)}}`, "n", "is too large to be stored"],
])("a number that no double holds is found with its place: %s", (text, path, message) => {
  expect(lostIn(text)).toEqual({ path, message: expect.stringContaining(message) });
  expect(lostIn(text)?.message.endsWith(": send it as a string")).toBe(true);
});

test("a number that is written back as an equal number is accepted, however it is written", () => {
  for (const kept of [
    ...[
      "9007199254740991",
      "9007199254740994",
      "-9007199254740992",
      "1e22",
      "10000000000000000000000",
      "6.02214076e23",
    ],
    ...["0.1", "3.14159265358979323846", "0.1000000000000000055511", "1.0", "-0", "0e999999999", "1e-400", "100E2"],
    ...["9.223372036854776e+18", "1.7976931348623157e308", "123456789012345678e-10", '"9007199254740993"', '"1e400"'],
  ]) {
    expect(lostIn(`{"n":${kept},"list":[${kept}]}`), kept).toBeNull();
  }
});

test.each([
  ['{"answer":1,"answer":2}', "answer", 'the key "answer" appears twice'],
  ['{"info":{"a":1,"b":{"c":1,"c":1}}}', "info.b.c", 'info.b: the key "c" appears twice'],
  ['[{"a":1},{"a":1,"b":[],"a":[]}]', "[1].a", '[1]: the key "a" appears twice'],
  ['{"a" :1, "b": 2, "a"\t: 3}', "a", 'the key "a" appears twice'],
  // The same name in two spellings.
  ['{"\\u0061":1,"a":2}', "a", 'the key "a" appears twice'],
  ['{"q\\"":1,"q\\"":2}', 'q"', 'the key "q\\"" appears twice'],
  ['{"x\\\\":1,"x\\\\":2}', "x\\", 'the key "x\\\\" appears twice'],
  ['{"":1,"":2}', "", 'the key "" appears twice'],
  ['{"a":{"b":1},"c":"\\":\\":","a":1}', "a", 'the key "a" appears twice'],
])("a name that occurs twice in one object is found: %s", (text, path, message) => {
  expect(lostIn(text)).toEqual({ path, message });
});

test("names in different objects, or in texts, are not repetitions", () => {
  for (const text of [
    '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}',
    '{"a":"\\"a\\":1,\\"a\\":2","b":":","c":": a"}',
    '{"constructor":1,"toString":2,"hasOwnProperty":3}',
    '{"a\\\\":1,"a":"x\\\\"}',
    '["a","a",":",":"]',
    `${'{"a":'.repeat(5000)}1${"}".repeat(5000)}`,
  ]) {
    expect(lostIn(text), text.slice(0, 80)).toBeNull();
  }
});

test("the place begins with the name of the value, and stays short", () => {
  expect(lostIn('{"n":[1e999]}', "info")?.path).toBe("info.n[0]");
  const long = "k".repeat(100_000);
  expect(lostIn(`{"${long}":1,"${long}":2}`)?.message.length).toBeLessThan(500);
  expect(lostIn(`{"a":${"9".repeat(100_000)}}`)?.message.length).toBeLessThan(500);
});

test("in random texts it finds exactly what parsing and writing would change", () => {
  let state = 1;
  const below = (n: number) => {
    state = (state * 48271) % 2147483647;
    return state % n;
  };
  const numbers = ["1", "9007199254740993", "9007199254740992", "1e3", "-2.50", "1e400", '":"', '"\\":"', '"a\\\\"'];
  // Without escapes: V8 may parse a repeated name with an escape as another name.
  const names = ['"a"', '"b"', '"c:"', '" :"', '""'];
  const make = (depth: number): { text: string; lost: boolean } => {
    const kind = depth > 3 ? 0 : below(4);
    if (kind < 2) {
      const text = numbers[below(numbers.length)] ?? "1";
      return { text, lost: text === "9007199254740993" || text === "1e400" };
    }
    const parts = Array.from({ length: below(4) }, () => ({ name: names[below(names.length)], ...make(depth + 1) }));
    const lost = parts.some((part) => part.lost);
    if (kind === 2) return { text: `[${parts.map(({ text }) => text).join(", ")}]`, lost };
    const different = new Set(parts.map(({ name }): unknown => JSON.parse(name ?? "")));
    const text = `{${parts.map((part) => `${part.name}${" ".repeat(below(2))}:${part.text}`).join(",")}}`;
    return { text, lost: lost || different.size < parts.length };
  };
  for (let round = 0; round < 3000; round += 1) {
    const { text, lost } = make(0);
    expect(lostIn(text) !== null, text).toBe(lost);
  }
});

test("a parser that keeps numbers returns raw ones only for those that a double would change", () => {
  const value = parseKeepingNumbers('{"a":9007199254740993,"b":1.0,"c":[1e400],"d":9007199254740994}');
  expect(JSON.stringify(value)).toBe('{"a":9007199254740993,"b":1,"c":[1e400],"d":9007199254740994}');
  expect(isRawNumber(parseKeepingNumbers("1e400"))).toBe(true);
  const deep = (inner: string) => `${"[".repeat(100_000)}${inner}${"]".repeat(100_000)}`;
  expect(parseKeepingNumbers(deep("1"))).toHaveLength(1);
  expect(() => parseKeepingNumbers(deep("1e400"))).toThrow(SyntaxError);
});

test("equal numbers have one decimal form", () => {
  const same = ["9007199254740993", "9007199254740993.0", "9.007199254740993e15", "90071992547409930E-1"];
  expect(new Set(same.map(decimalOf)).size).toBe(1);
  expect(decimalOf("-0.0e7")).toBe("0");
  expect(decimalOf("9007199254740993")).not.toBe(decimalOf("-9007199254740993"));
});
