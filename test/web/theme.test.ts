/** Light and dark: the reader's choice applies on every page, to drawn content and to styled content. */
import { expect, test } from "vitest";
import { inPage } from "./browser.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

const PAPER = { light: "rgb(255, 255, 255)", dark: "rgb(20, 22, 26)" };
const paper = "getComputedStyle(document.documentElement).backgroundColor";
/** A pixel of the timeline at its first turn: dark blue in the light theme, light blue in the dark one. */
const drawn = `(() => {
  const canvas = document.querySelector(".timeline canvas");
  return [...canvas.getContext("2d").getImageData(Math.floor(canvas.width / 2), 40, 1, 1).data].join();
})()`;

test("a chosen theme overrides the system's, also in charts and on pages without a menu", async () => {
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
  // The browser warns because the test reads the canvas.
  expect(wrong.filter((text) => !text.includes("willReadFrequently"))).toEqual([]);
});
