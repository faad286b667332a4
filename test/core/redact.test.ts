import { expect, test } from "vitest";
import { redact } from "../../src/core/redact.ts";

test("a secret is taken out of every text, however deep, and out of names", () => {
  const value = {
    a: ["the key sk-123456", { "sk-123456": null }],
    error: { message: "sk-123456!" },
  };
  expect(redact(value, ["sk-123456"])).toEqual({
    a: ["the key [secret]", { "[secret]": null }],
    error: { message: "[secret]!" },
  });
});

test("what holds no secret stays as it is, and so does everything when there are none", () => {
  const value = { n: 1, b: true, none: null, text: "plain" };
  expect(redact(value, ["sk-123456"])).toEqual(value);
  expect(redact(value, [])).toBe(value);
});

test("a secret that JSON writes in another way is taken out of a JSON text too", () => {
  const secret = 'line 1\n"line 2"';
  const state = { told: JSON.stringify({ secret }), plain: `a ${secret} b` };
  expect(redact(state, [secret])).toEqual({
    told: '{"secret":"[secret]"}',
    plain: "a [secret] b",
  });
});

test("a secret that begins like another leaves no rest of it", () => {
  const secrets = ["sk-123456", "sk-123456-admin"];
  expect(redact("sk-123456-admin, sk-123456", secrets)).toBe("[secret], [secret]");
});

test("a secret too short to be told from ordinary text is left alone", () => {
  expect(redact("a cat", ["a"])).toBe("a cat");
});
