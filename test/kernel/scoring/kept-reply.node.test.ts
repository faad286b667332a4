/** What is stored of a judge's reply. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { keptReply } from "../../../src/kernel/scoring/kept-reply.ts";

const READ = { ok: true, value: "good", reason: "because" } as const;
const MOST = LIMITS.judgeReplyCharacters;

test("a reply is kept as it came, unless it is the judgement or the reason itself, or blank", () => {
  const reply = 'I have read it.\n{"reason":"because","verdict":"good"}';
  expect(keptReply(reply, READ)).toBe(reply);
  expect(keptReply("good", READ)).toBeUndefined();
  expect(keptReply("because", READ)).toBeUndefined();
  expect(keptReply(" \n", { ok: false, error: "the reply is empty" })).toBeUndefined();
  expect(keptReply("I cannot judge this.", { ok: false, error: "no object" })).toBe("I cannot judge this.");
  expect(keptReply("x".repeat(MOST), READ)).toHaveLength(MOST);
});

test("a long reply loses its middle, with a mark, and is never longer than the limit", () => {
  const longest = 4 * 1024 * 1024;
  for (const length of [MOST + 1, longest]) {
    const kept = keptReply(`begin ${"x".repeat(length - 10)} end`, READ) ?? "";
    expect(kept.length).toBeLessThanOrEqual(MOST);
    expect(kept.length).toBeGreaterThan(MOST - 100);
    expect(kept).toMatch(/^begin x+\n\[… \d+ characters left out …\]\nx+ end$/);
  }
});

test("a reply with half a surrogate pair is kept as valid Unicode, and a cut never divides a pair", () => {
  expect(keptReply("a\ud800b", READ)).toBe("a\ufffdb");
  for (const before of ["", "x"]) expect(keptReply(before + "😀".repeat(MOST), READ)?.isWellFormed()).toBe(true);
});
