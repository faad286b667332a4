import { expect, test } from "vitest";
import { CUT } from "../../src/contract/shown-text.ts";
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

test("what a parser quotes of a body that begins with the secret is taken out", () => {
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

test("a text that was cut in the middle of the secret keeps no begin of it", () => {
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
