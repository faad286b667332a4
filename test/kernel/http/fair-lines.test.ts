/** Pages of lines of several organisations in one process. */
import { expect, test } from "vitest";
import { piecesOf } from "../../../src/kernel/http/lines.ts";
import { PASS_STEPS } from "../../../src/kernel/kit/fair-scheduler.ts";
import { countingScheduler, longestPass } from "../counting-scheduler.ts";

const rowsOf = (count: number, characters: number) =>
  Array.from({ length: count }, (_, at) => ({ at, text: "x".repeat(characters) }));

test("lines of pages are made in bounded passes, and organisations take turns", async () => {
  const { scheduler, seen } = countingScheduler();
  const large = [1, 2, 3].map(() => piecesOf("greedy", rowsOf(100, 100_000), scheduler));
  const small = piecesOf("fair", rowsOf(1000, 100), scheduler);
  const bytes = (await Promise.all([...large, small])).map((pieces) => {
    return pieces.reduce((sum, piece) => sum + piece.length, 0);
  });
  expect(bytes[0]).toBeGreaterThan(100 * 100_000);
  expect(longestPass(seen)).toBeLessThanOrEqual(PASS_STEPS + 300_000);
  const lines = seen.filter((one) => one !== "loop");
  const last = lines.findLastIndex(({ org }) => org === "fair");
  expect(lines.slice(0, last).filter(({ org }) => org === "greedy").length).toBeLessThan(30);
});
