/** The tests' own browser, whose pages record errors that a person would not see. */
import { existsSync } from "node:fs";
import chromium from "@sparticuz/chromium";
import { type Browser, type BrowserContext, type Locator, type Page, chromium as playwright } from "playwright-core";
import { RollcallClient } from "../../src/sdk/client.ts";

/** Flags for machines that cannot start a second process: here each tab has its own process, as for users. */
const NOT_HERE = /^--(single-process|no-zygote|disable-web-security|disable-site-isolation-trials)/;

/**
 * Chromium comes with the development dependencies, for Linux on x64; elsewhere the installed Chrome is used. Throws a
 * message with what to install if there is none, or if the system lacks a library.
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

/** A tab, and its errors: of its scripts and console, policy violations, dialogs, requests. */
export interface WatchedPage {
  readonly page: Page;
  /** Empty without errors. */
  readonly wrong: readonly string[];
  close(): Promise<void>;
}

export async function openTab(browser: Browser, origin: string, setting: Setting = {}): Promise<WatchedPage> {
  const context = await newContext(browser, setting);
  return await watched(context, origin);
}

function newContext(browser: Browser, { width = 1280, height = 900, scheme = "light" }: Setting) {
  // The charts need an existing locale, and this Chromium has none by default.
  return browser.newContext({ viewport: { width, height }, colorScheme: scheme, locale: "en-US" });
}

async function watched(context: BrowserContext, origin: string): Promise<WatchedPage> {
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on("console", (message) => {
    // The sign-in page first requests the current user, and gets 401.
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

/** A tab that is signed in with a one-time code, as `rollcall view` does, and then opens the path. */
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

/** The value of an expression in the page, through the developer tools: the page's policy refuses other scripts. */
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

/** The visible text, once it is there. */
export async function textOf(place: Locator): Promise<string> {
  await place.first().waitFor();
  return (await place.allInnerTexts()).join("\n");
}
