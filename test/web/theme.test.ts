/** Light and dark: as the reader chose, on every page, in what is drawn as in what is styled. */
import { expect, test } from "vitest";
import { inPage } from "./browser.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

const PAPER = { light: "rgb(255, 255, 255)", dark: "rgb(20, 22, 26)" };
const paper = "getComputedStyle(document.documentElement).backgroundColor";
/** Of the timeline, where its first turn is: in the light theme a dark blue, in the dark one a light blue. */
const drawn = `(() => {
  const canvas = document.querySelector(".timeline canvas");
  return [...canvas.getContext("2d").getImageData(Math.floor(canvas.width / 2), 40, 1, 1).data].join();
})()`;

test("a theme that is chosen holds over the system's, in charts too, and on pages that have no menu", async () => {
  const { page, wrong } = await tabAt(`/rollouts/${stage.longRollout}`, { scheme: "light" });
  await page.locator(".timeline canvas").waitFor();
  expect(await inPage(page, paper)).toBe(PAPER.light);
  await expect.poll(() => inPage(page, drawn)).toMatch(/^[1-9]/);
  const light = await inPage(page, drawn);
  await page.getByLabel("Theme").selectOption("dark");
  await expect.poll(() => inPage(page, paper)).toBe(PAPER.dark);
  await expect.poll(() => inPage(page, drawn)).not.toBe(light);
  await page.goto(stage.report);
  await page.locator("h1").waitFor();
  expect(await inPage(page, paper)).toBe(PAPER.dark);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(stage.url);
  await page.getByLabel("Theme").selectOption("system");
  await page.emulateMedia({ colorScheme: "light" });
  await expect.poll(() => inPage(page, paper)).toBe(PAPER.light);
  // That the canvas is read here, the browser says itself.
  expect(wrong.filter((text) => !text.includes("willReadFrequently"))).toEqual([]);
});
