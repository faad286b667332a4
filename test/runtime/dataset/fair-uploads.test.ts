/** Uploads of several organisations in one process. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { Scope } from "../../../src/contract/scope.ts";
import { createDataset } from "../../../src/runtime/dataset/upload.ts";
import { type FairTurns, PASS_STEPS } from "../../../src/runtime/kit/fair-turns.ts";
import { openPlatform } from "../platform.ts";
import { countingTurns, longestPass } from "../turns.ts";
import { jsonLines } from "../upload.ts";

const ROWS = 2000;
const LARGEST = 10_000;

function upload(scope: Scope, turns: FairTurns, characters: number) {
  const row = { question: "q", answer: "x".repeat(characters) };
  const file = new TextEncoder().encode(jsonLines(Array.from({ length: ROWS }, () => row)));
  const body = new ReadableStream({
    type: "bytes",
    start(controller) {
      controller.enqueue(file);
      controller.close();
    },
  });
  const given = { name: null, environment: null, environment_args: {} };
  return createDataset(env, scope, given, body, { idempotencyKey: null, now: Date.now(), turns });
}

test("the rows of uploads are checked in bounded passes, and organisations take turns", {
  timeout: 60_000,
}, async () => {
  const [greedy, fair] = await Promise.all([openPlatform(), openPlatform()]);
  const { turns, seen } = countingTurns();
  const larger = [1, 2, 3].map(() => upload(greedy.scope, turns, LARGEST));
  const small = upload(fair.scope, turns, 100);
  const all = await Promise.all([...larger, small]);
  expect(all.map((made) => made.ok && made.value.dataset.rows)).toEqual([ROWS, ROWS, ROWS, ROWS]);
  expect(longestPass(seen)).toBeLessThanOrEqual(PASS_STEPS + 3 * LARGEST);
  const rows = seen.filter((one) => one !== "loop");
  const last = rows.findLastIndex(({ org }) => org === fair.scope.orgId);
  const behind = rows.slice(0, last).filter(({ org }) => org === greedy.scope.orgId);
  // The small file is over while most of the others is still to come.
  expect(behind.length).toBeLessThan((3 * ROWS) / 2);
});
