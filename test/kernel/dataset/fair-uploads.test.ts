/** Uploads of several organisations in one process. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Scope } from "../../../src/contract/scope.ts";
import { createDataset } from "../../../src/kernel/dataset/upload.ts";
import { type FairScheduler, PASS_STEPS } from "../../../src/kernel/kit/fair-scheduler.ts";
import { countingScheduler, longestPass } from "../counting-scheduler.ts";
import { openPlatform } from "../platform.ts";
import { jsonLines } from "../upload.ts";

const ROWS = 2000;
const LARGEST = 10_000;

function uploadTexts(scope: Scope, scheduler: FairScheduler, characters: number) {
  const row = { question: "q", answer: "x".repeat(characters) };
  return upload(scope, scheduler, jsonLines(Array.from({ length: ROWS }, () => row)));
}

/** One row with this many names besides its question. */
function rowOfNames(names: number): string {
  const info = Object.fromEntries(Array.from({ length: names }, (_, at) => [`k${at}`, 1]));
  return JSON.stringify({ question: "q", info });
}

function upload(scope: Scope, scheduler: FairScheduler, lines: string) {
  const file = new TextEncoder().encode(lines);
  const body = new ReadableStream({
    type: "bytes",
    start(controller) {
      controller.enqueue(file);
      controller.close();
    },
  });
  const given = { name: null, environment: null, environment_args: {} };
  return createDataset(env, scope, given, body, { idempotencyKey: null, now: Date.now(), scheduler });
}

test("the rows of uploads are checked in bounded passes, and organisations take turns", async () => {
  const [greedy, fair] = await Promise.all([openPlatform(), openPlatform()]);
  const { scheduler, seen } = countingScheduler();
  const larger = [1, 2, 3].map(() => uploadTexts(greedy.scope, scheduler, LARGEST));
  const small = uploadTexts(fair.scope, scheduler, 100);
  const all = await Promise.all([...larger, small]);
  expect(all.map((made) => made.ok && made.value.dataset.rows)).toEqual([ROWS, ROWS, ROWS, ROWS]);
  expect(longestPass(seen)).toBeLessThanOrEqual(PASS_STEPS + 3 * LARGEST);
  const rows = seen.filter((one) => one !== "loop");
  const last = rows.findLastIndex(({ org }) => org === fair.scope.orgId);
  const behind = rows.slice(0, last).filter(({ org }) => org === greedy.scope.orgId);
  // The small file is finished while most rows of the others have not been checked yet.
  expect(behind.length).toBeLessThan((3 * ROWS) / 2);
});

test("a row is counted by its names too, because a name takes longer than its characters", async () => {
  const { scope } = await openPlatform();
  const { scheduler } = countingScheduler();
  const lines = rowOfNames(20_000);
  const before = scheduler.levelOf(scope.orgId);
  expect((await upload(scope, scheduler, lines)).ok).toBe(true);
  expect(scheduler.levelOf(scope.orgId) - before).toBeGreaterThan(2 * lines.length + 40 * 20_000);
});

test("a row has a bounded number of values, and the refusal names its line", async () => {
  const { scope } = await openPlatform();
  const { scheduler } = countingScheduler();
  // The row itself, its question, its info, and the members of info.
  const most = rowOfNames(LIMITS.taskRowValues - 3);
  expect((await upload(scope, scheduler, most)).ok).toBe(true);
  expect(await upload(scope, scheduler, `{"question": "q"}\n${rowOfNames(LIMITS.taskRowValues - 2)}`)).toEqual({
    ok: false,
    error: {
      code: "too_large",
      message: "line 2: a row holds at most 100000 JSON values",
      param: "rows[1]",
    },
  });
});
