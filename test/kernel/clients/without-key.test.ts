import { expect, test } from "vitest";
import { mayHoldKey, replyWithoutKey, withoutKey } from "../../../src/kernel/clients/without-key.ts";

const KEY = 'sk-ab/cd+12"34-wxyz';
const base64 = (text: string) => Buffer.from(text).toString("base64");

test("a key is removed from all texts and names of a reply, in every form", () => {
  const reply = {
    id: `chatcmpl-${KEY}`,
    [KEY]: [1, true, null, `Bearer ${KEY}`],
    args: JSON.stringify({ header: KEY }),
    php: `"${KEY.replaceAll("/", "\\/")}"`,
    url: `https://x.example/?key=${encodeURIComponent(KEY)}&a=1`,
  };
  expect(replyWithoutKey(reply, KEY)).toEqual({
    id: "chatcmpl-[key]",
    "[key]": [1, true, null, "Bearer [key]"],
    args: '{"header":"[key]"}',
    php: '"[key]"',
    url: "https://x.example/?key=[key]&a=1",
  });
});

test.each(["", "B", "Be", "Bearer ", "user:"])(
  "the base64 of %jKEY does not contain the base64 of the key, in either alphabet",
  (before) => {
    const text = base64(`${before}${KEY}, and more`);
    const url = text.replaceAll("+", "-").replaceAll("/", "_");
    for (const written of [text, url]) {
      const said = replyWithoutKey(`<${written}>`, KEY);
      expect(said).toContain("[key]");
      // What is left belongs to its neighbours, plus one character that it shares with each of them.
      const neighbours = written.length - Math.floor((KEY.length * 4) / 3);
      expect(said.replace("[key]", "").length - 2).toBeLessThanOrEqual(neighbours + 2);
    }
  },
);

test("a reply without the key is not copied", () => {
  const reply = { choices: [{ token_ids: [1, 2, 3] }] };
  expect(replyWithoutKey(reply, KEY)).toBe(reply);
  expect(replyWithoutKey(reply, null)).toBe(reply);
});

test.each([
  ["EMPTY", "the list is EMPTY"],
  ["test", "a test of tests"],
  ["none", "nonesuch, none"],
  ["sk-no-key-required", "write sk-no-key-required"],
  ["not-needed", "it is not-needed"],
  ["12345678", "1234 * 10002 + 66 = 12345678 + 0"],
  ["x", "x + x = 2x"],
  ["lm-studio", "open lm-studio"],
])("%s is a placeholder key for servers that check none: a reply that contains it is unchanged", (key, said) => {
  expect(replyWithoutKey({ said }, key)).toEqual({ said });
});

test("an error text has no key, no beginning of a cut key, and no word that is the key", () => {
  expect(withoutKey(`401 Incorrect API key: ${KEY}.`, KEY)).toBe("401 Incorrect API key: [key].");
  expect(withoutKey(`"${KEY.slice(0, 10)}"... is not valid JSON`, KEY)).toBe('"[key]"... is not valid JSON');
  expect(withoutKey("no such key: hunter", "hunter")).toBe("no such key: [key]");
  expect(withoutKey("the x-axis, x and 2x", "x")).toBe("the x-axis, [key] and 2x");
  expect(withoutKey("as it is", null)).toBe("as it is");
});

test.each([
  ["as it is", `{"id": "${KEY.replace('"', '\\"')}"}`, KEY],
  ["with letters escaped", '{"id": "\\u0073k-0123456789"}', "sk-0123456789"],
  ["with slashes escaped", '{"id": "sk-01\\/23456789"}', "sk-01/23456789"],
  ["in base64", `{"id": "${base64("Bearer sk-0123456789")}"}`, "sk-0123456789"],
  ["in a text of JSON", JSON.stringify({ id: JSON.stringify(KEY) }), KEY],
])("a reply that contains the key %s is searched", (_how, text, key) => {
  expect(mayHoldKey(() => text, key)).toBe(true);
  expect(JSON.stringify(replyWithoutKey(JSON.parse(text), key))).toContain("[key]");
});

test("a reply that cannot contain the key is not searched", () => {
  const text = JSON.stringify({ content: 'Überraschung\n\t"sk-"', ids: [1, 2] });
  expect(mayHoldKey(() => text, "sk-0123456789")).toBe(false);
  expect(mayHoldKey(() => '{"content": "EMPTY"}', "EMPTY")).toBe(false);
});
