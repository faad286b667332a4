/**
 * A rollout of 300,000 messages, calls and results. How long its reads take is measured by
 * `npm run bench:long-rollout`.
 */
import { expect, test } from "vitest";
import { inPage } from "./browser.ts";
import { eventsIn } from "./long-rollout.ts";
import { LONG_TURNS } from "./stage.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

/** What is in the document, whatever the length of the rollout. */
const MOST_ELEMENTS = 3000;
const GAP = `(([a, b]) => b.getBoundingClientRect().top - a.getBoundingClientRect().bottom)(
  document.querySelectorAll("article.turn"))`;
const COUNT = "document.querySelectorAll('*').length";

test("a rollout of 300,000 events opens, jumps to its last turn, and lays out only what is in view", async () => {
  expect(eventsIn(LONG_TURNS)).toBeGreaterThanOrEqual(300_000);
  const { page, wrong } = await tabAt(`/rollouts/${stage.longRollout}`);
  await page.locator('article[data-index="0"] .turn-head').waitFor();
  expect(await inPage(page, COUNT)).toBeLessThan(MOST_ELEMENTS);
  // One turn begins where the one before it ends.
  await expect.poll(async () => (await inPage(page, GAP)) as number).toBeLessThan(5);
  await page.keyboard.press("]");
  await page.locator(`article[data-index="${LONG_TURNS - 1}"] .turn-head`).waitFor();
  await expect.poll(() => new URL(page.url()).searchParams.get("turn")).toBe(String(LONG_TURNS - 1));
  expect(await inPage(page, COUNT)).toBeLessThan(MOST_ELEMENTS);
  expect(wrong).toEqual([]);
});

test("what the tab keeps of a long rollout does not grow with what was looked at", async () => {
  const { page } = await tabAt(`/rollouts/${stage.longRollout}`);
  await page.locator('article[data-index="0"] .turn-head').waitFor();
  const devtools = await page.context().newCDPSession(page);
  const heap = async () => {
    await devtools.send("HeapProfiler.collectGarbage");
    return (await devtools.send("Runtime.getHeapUsage")).usedSize / 1e6;
  };
  const look = async (from: number, to: number) => {
    for (let turn = from; turn < to; turn += 40) {
      const place = `document.querySelector(".turn-list")`;
      await inPage(page, `${place}.scrollTop = ${place}.scrollHeight * ${turn / LONG_TURNS}`);
      await page.locator(".turn-head").first().waitFor();
    }
  };
  await look(40, 560);
  const half = await heap();
  await look(560, LONG_TURNS);
  expect(await heap()).toBeLessThan(half * 1.5 + 20);
  expect(await inPage(page, COUNT)).toBeLessThan(MOST_ELEMENTS);
});
