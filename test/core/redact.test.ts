import { expect, test } from "vitest";
import { CUT } from "../../src/contract/shown-text.ts";
import { redact } from "../../src/core/redact.ts";

test("a secret is removed from every text, however deep, and from names", () => {
  const value = {
    a: ["the key sk-123456", { "sk-123456": null }],
    error: { message: "sk-123456!" },
  };
  expect(redact(value, ["sk-123456"])).toEqual({
    a: ["the key [secret]", { "[secret]": null }],
    error: { message: "[secret]!" },
  });
});

test("a value without secrets is unchanged, and so is everything if there are no secrets", () => {
  const value = { n: 1, b: true, none: null, text: "plain" };
  expect(redact(value, ["sk-123456"])).toEqual(value);
  expect(redact(value, [])).toBe(value);
});

test("a secret is also removed from JSON text, where it is escaped", () => {
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

test("a secret too short to be told from ordinary text is not removed", () => {
  expect(redact("a cat", ["a"])).toBe("a cat");
});

test("the beginning of a secret that a parser quotes from a body is removed", () => {
  const secret = "rk_abc1234567890";
  const long = ` ${"and more ".repeat(10)}`;
  for (const body of [secret, `${secret}${long}`, `{"error": ${secret}}${long}`]) {
    expect(saidOf(body)).toContain("rk_abc1234");
    expect(redact(saidOf(body), [secret])).not.toContain("rk_abc");
  }
});

function saidOf(body: string): string {
  try {
    return String(JSON.parse(body));
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : "";
  }
}

test("a text that was cut in the middle of the secret keeps no part of it", () => {
  const secret = "rk_abc1234567890";
  const text = `${"x".repeat(200)} ${secret}`;
  for (const length of [6, 9, 15]) {
    const cut = text.slice(0, 201 + length);
    expect(redact(cut, [secret])).toBe(`${"x".repeat(200)} [secret]`);
    expect(redact(`${cut}${CUT}`, [secret])).toBe(`${"x".repeat(200)} [secret]${CUT}`);
  }
  expect(redact(`say rk_a${CUT} and rk_a${CUT}`, [secret])).toBe(`say [secret]${CUT} and [secret]${CUT}`);
  expect(redact("say rk_abc", [secret])).toBe("say rk_abc");
});
