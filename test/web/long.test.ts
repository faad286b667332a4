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

/** The limit for the document, whatever the length of the rollout. */
const MOST_ELEMENTS = 3000;
const GAP = `(([a, b]) => b.getBoundingClientRect().top - a.getBoundingClientRect().bottom)(
  document.querySelectorAll("article.turn"))`;
const COUNT = "document.querySelectorAll('*').length";

test("a rollout of 300,000 events opens, jumps to its last turn, and lays out only what is in view", async () => {
  expect(eventsIn(LONG_TURNS)).toBeGreaterThanOrEqual(300_000);
  const { page, wrong } = await tabAt(`/rollouts/${stage.longRollout}`);
  await page.locator('article[data-index="0"] .turn-head').waitFor();
  expect(await inPage(page, COUNT)).toBeLessThan(MOST_ELEMENTS);
  // Each turn begins where the one before it ends.
  await expect.poll(async () => (await inPage(page, GAP)) as number).toBeLessThan(5);
  await page.keyboard.press("]");
  await page.locator(`article[data-index="${LONG_TURNS - 1}"] .turn-head`).waitFor();
  await expect.poll(() => new URL(page.url()).searchParams.get("turn")).toBe(String(LONG_TURNS));
  expect(await inPage(page, COUNT)).toBeLessThan(MOST_ELEMENTS);
  expect(wrong).toEqual([]);
});

test("the memory of a tab with a long rollout does not grow with the number of turns viewed", async () => {
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

/** Numbers far apart and next to each other, including both ends. */
const TYPED = [900, 3, 1100, 640, 641, 20, LONG_TURNS, 1, 555, 554];

test("a typed number leads to that turn, one after another", async () => {
  const { page, wrong } = await tabAt(`/rollouts/${stage.longRollout}`);
  await page.locator('article[data-index="0"] .turn-head').waitFor();
  for (const turn of TYPED) {
    await page.locator(".turn-bar input").fill(String(turn));
    await page.keyboard.press("Enter");
    // Everything above it is loaded too, so it does not move any more.
    await expect.poll(() => inPage(page, placeOf(turn - 1))).toEqual({ focused: true, inView: true, unread: 0 });
    await expect.poll(() => new URL(page.url()).searchParams.get("turn")).toBe(String(turn));
  }
  expect(wrong).toEqual([]);
});

/** `turn`: its index. In view: at the top, or as far up as the end of the list allows. */
function placeOf(turn: number): string {
  return `(() => {
    const list = document.querySelector(".turn-list");
    const article = document.querySelector('article[data-index="${turn}"]');
    const [box, window] = [article?.getBoundingClientRect(), list.getBoundingClientRect()];
    const isAtEnd = list.scrollHeight - list.clientHeight - list.scrollTop < 2 && box?.bottom < window.bottom + 2;
    return {
      focused: document.activeElement === article,
      inView: Math.abs(box?.top - window.top) < 3 || isAtEnd,
      unread: document.querySelectorAll(".turn .waiting").length,
    };
  })()`;
}
