/** The suite's one browser, and signed-in tabs that are closed after each test. */
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, inject } from "vitest";
import { launchBrowser, signIn, type WatchedPage } from "./browser.ts";

export const stage = inject("stage");

let browser: Browser;
const open: WatchedPage[] = [];

/** Call it once in a file. */
export function useBrowser(): void {
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((tab) => tab.close()));
  });
  afterAll(() => browser.close());
}

export async function tabAt(path: string, setting: Parameters<typeof signIn>[3] = {}): Promise<WatchedPage> {
  const tab = await signIn(browser, stage, path, setting);
  open.push(tab);
  return tab;
}

export const theBrowser = (): Browser => browser;
