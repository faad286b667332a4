/** A browser of the tests' own, and pages of it that note whatever a person would not be shown. */
import { existsSync } from "node:fs";
import chromium from "@sparticuz/chromium";
import { type Browser, type BrowserContext, type Locator, type Page, chromium as playwright } from "playwright-core";
import { RollcallClient } from "../../src/sdk/client.ts";

/** Flags for machines that cannot start a second process: here each tab has one, as with everybody. */
const NOT_HERE = /^--(single-process|no-zygote|disable-web-security|disable-site-isolation-trials)/;

/**
 * Chromium comes with the development dependencies, for Linux on x64; elsewhere it is the Chrome that is installed. Throws
 * with what to install where there is none, or the system lacks a library.
 */
export async function launchBrowser(): Promise<Browser> {
  if (process.platform !== "linux" || process.arch !== "x64") {
    return await playwright.launch({ channel: "chrome", headless: true });
  }
  const executablePath = await chromium.executablePath();
  if (!existsSync(executablePath)) throw new Error(`no Chromium at ${executablePath}: run npm install`);
  const args = chromium.args.filter((flag) => !NOT_HERE.test(flag));
  try {
    return await playwright.launch({ args, executablePath, headless: true });
  } catch (error) {
    const missing = /loading shared libraries: ([^\s:]+)/.exec(String(error))?.[1];
    if (missing === undefined) throw error;
    throw new Error(
      `Chromium does not start, for this system lacks ${missing}: apt-get install libnss3 libnspr4 libexpat1 has it`,
      { cause: error },
    );
  }
}

interface Setting {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: "light" | "dark";
}

/** A tab, and what went wrong in it: errors of its programs and its console, refusals by the policy, dialogs, requests. */
export interface WatchedPage {
  readonly page: Page;
  /** Empty where everything went well. */
  readonly wrong: readonly string[];
  close(): Promise<void>;
}

export async function openTab(browser: Browser, origin: string, setting: Setting = {}): Promise<WatchedPage> {
  const context = await newContext(browser, setting);
  return await watched(context, origin);
}

function newContext(browser: Browser, { width = 1280, height = 900, scheme = "light" }: Setting) {
  // The charts ask for a language that exists, and Chromium has none here by itself.
  return browser.newContext({ viewport: { width, height }, colorScheme: scheme, locale: "en-US" });
}

async function watched(context: BrowserContext, origin: string): Promise<WatchedPage> {
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on("console", (message) => {
    // Whoever is about to sign in asks first who they are, and is nobody.
    const isNobody = page.url().includes("/sign-in") && message.text().includes("401");
    if (["error", "warning"].includes(message.type()) && !isNobody) wrong.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch((error: unknown) => wrong.push(String(error)));
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !/^(data|blob|about):/.test(url)) wrong.push(`request: ${url}`);
  });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin });
  return { page, wrong, close: () => context.close() };
}

/** A tab that is signed in by a code that is good once, as `rollcall view` signs a person in; then at the path. */
export async function signIn(
  browser: Browser,
  platform: { readonly url: string; readonly key: string },
  path: string,
  setting: Setting = {},
): Promise<WatchedPage> {
  const tab = await openTab(browser, platform.url, setting);
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const { code } = await client.sessions.createCode();
  await tab.page.goto(`${platform.url}/sign-in#code=${code}&to=${encodeURIComponent(path)}`);
  await tab.page.waitForSelector(".side");
  return tab;
}

/** The value of an expression in the page, as its developer's tools would say: the page's policy refuses scripts of others. */
export async function inPage(page: Page, expression: string): Promise<unknown> {
  const tools = await page.context().newCDPSession(page);
  try {
    const asked = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await tools.send("Runtime.evaluate", asked);
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return result.value;
  } finally {
    await tools.detach();
  }
}

/** What a person reads there, once it is there. */
export async function textOf(place: Locator): Promise<string> {
  await place.first().waitFor();
  return (await place.allInnerTexts()).join("\n");
}
