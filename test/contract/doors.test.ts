/** Fields that are shown whole on pages of a hundred objects have a small maximal size. */
import { expect, test } from "vitest";
import { LIMITS } from "../../src/contract/limits.ts";
import { TriggerPatch } from "../../src/triggers/wire.ts";

/** An object with exactly so many characters of JSON. */
function objectOf(characters: number) {
  return { a: "x".repeat(characters - '{"a":""}'.length) };
}

const SIZED = [
  ["a trigger's run", LIMITS.triggerRunCharacters, (run: object) => TriggerPatch.safeParse({ run })],
] as const;

test.each(SIZED)("%s has a maximal size in characters of JSON", (_what, most, parse) => {
  expect(parse(objectOf(most)).success).toBe(true);
  expect(parse(objectOf(most + 1)).error?.issues[0]?.message).toContain(`at most ${most} characters`);
});

test("a trigger's conditions have a maximal size together", () => {
  const when = (conditions: number) => {
    const values = Array.from({ length: 16 }, (_, at) => `${at}${"x".repeat(500)}`);
    return TriggerPatch.safeParse({
      when: Object.fromEntries(Array.from({ length: conditions }, (_, at) => [`$.a${at}`, values])),
    });
  };
  expect([when(1).success, when(3).success]).toEqual([true, false]);
});
