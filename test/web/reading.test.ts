/** Reading with keys alone, reading harmful text, and reading a report without a network. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { rollcall } from "../cli/run-rollcall.ts";
import { inPage, textOf } from "./browser.ts";
import { stage, tabAt, theBrowser, useBrowser } from "./tabs.ts";

useBrowser();

const { before, after, hostile } = stage;
const focused = (page: Page, attribute: string) => inPage(page, `document.activeElement.getAttribute("${attribute}")`);

async function press(page: Page, ...keys: readonly string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key);
}

test("with keys alone: a run's rollout, its judge's reason, a copy of the turn, and the comparison", async () => {
  const { page, wrong } = await tabAt(`/runs/${before}`);
  await page.getByRole("link", { name: "All rollouts" }).waitFor();
  const tabTo = async (name: string) => {
    const isThere = `document.activeElement.textContent === ${JSON.stringify(name)}`;
    for (let pressed = 0; pressed < 60 && (await inPage(page, isThere)) !== true; pressed += 1)
      await press(page, "Tab");
    expect(await inPage(page, "document.activeElement.textContent")).toBe(name);
  };
  await tabTo("All rollouts");
  await press(page, "Enter");
  await page.locator("[data-row]").first().waitFor();
  await press(page, "j", "j");
  await expect.poll(() => focused(page, "data-row")).toBe("1");
  await press(page, "Enter");
  // A review by a person looks alike, and has no model.
  const judged = page.locator(".judgement").filter({ hasText: "Model asked" });
  expect(await textOf(judged.locator("dd pre"))).toMatch(/the reply names/);
  await press(page, "c");
  await page.getByText("Turn 1 was copied").waitFor();
  const copied = await inPage(page, "navigator.clipboard.readText()");
  expect(copied).toMatch(/What is item \d+\?[\s\S]*(It is answer|I do not know)/);
  await press(page, "g", "r");
  await page.locator("[data-row]").first().waitFor();
  // Other tests have made runs: only these two have such a name.
  await page.goto(`${stage.url}/runs?search=model`);
  await expect.poll(() => page.locator("[data-row]", { hasText: "the old model" }).count()).toBe(1);
  const at = async (name: string) =>
    Number(await page.locator("[data-row]", { hasText: name }).getAttribute("data-row"));
  const [old, newer] = [await at("the old model"), await at("the new model")];
  const rows = async (steps: number, key: string) => {
    for (let step = 0; step < steps; step += 1) await press(page, key);
  };
  await rows(newer + 1, "j");
  await expect.poll(() => focused(page, "data-row")).toBe(String(newer));
  await press(page, "x");
  await rows(old - newer, "j");
  await expect.poll(() => focused(page, "data-row")).toBe(String(old));
  await press(page, "x", "c");
  await page.getByRole("heading", { name: "Compare runs" }).waitFor();
  const { searchParams } = new URL(page.url());
  // The oldest is the baseline, although it was marked last.
  expect([searchParams.get("runs"), searchParams.get("baseline")]).toEqual([`${before},${after}`, before]);
  expect(wrong).toEqual([]);
});

test("a judge's output is shown in parts: its judgement, its reason, its whole reply, its model, and its cost", async () => {
  const { page, wrong } = await tabAt(`/runs/${before}/rollouts`);
  await page.locator("[data-row] a").first().click();
  const block = page.locator(".judgement").filter({ hasText: "Model asked" });
  expect(await textOf(block.locator("h3"))).toBe("Judge default");
  const names = await block.locator("dt").allInnerTexts();
  const said = await block.locator("dd").allInnerTexts();
  const facts = Object.fromEntries(names.map((name, at) => [name, said[at]?.trim()]));
  expect(facts).toEqual({
    Verdict: expect.stringMatching(/^(right|wrong) read from its answer$/),
    Reason: expect.stringMatching(/^the reply names/),
    Reply: "The whole reply, as it came",
    "Model asked": "judge",
    Question: expect.stringMatching(/^SHA-256 [0-9a-f]{8}$/),
    Cost: expect.stringMatching(/^\$0\.0\d+: \d+ tokens in, \d+ out, 1 call$/),
  });
  await block.getByText("The whole reply, as it came").click();
  expect(await textOf(block.locator("details[open] pre"))).toMatch(/"reason":\s*"the reply names/);
  expect(wrong).toEqual([]);
});

test("a timeline explains its bars, by their height and in words", async () => {
  const { page } = await tabAt(`/rollouts/${stage.longRollout}`);
  const legend = page.getByRole("list", { name: "Legend of the timeline" });
  await legend.waitFor();
  const heights = await legend.locator("svg[width='10']").evaluateAll((all) => all.map((one) => one.clientHeight));
  expect(new Set(heights).size).toBe(3);
  const said = await legend.locator("li").allInnerTexts();
  expect(said.map((text) => text.trim())).toEqual([
    "a call; its width is its duration",
    "slow: at least half as long as the slowest",
    "with a try or a result that failed",
    "the selected turn",
    "gaps: time of the environment",
  ]);
});

test("a transcript of markup, escapes, direction marks, a line of a megabyte and broken UTF-8 is only text", async () => {
  const { page, wrong } = await tabAt(`/runs/${hostile}/rollouts`);
  await page.locator("[data-row] a").first().click();
  await page.locator("article.turn .message.assistant").waitFor();
  const said = page.locator("article.turn");
  const text = await textOf(said);
  expect(text).toContain("<script>alert('script')</script>");
  for (const mark of ["ESC", "U+202E", "U+2066", "U+0000", "U+200B"]) expect(text).toContain(mark);
  expect(text.length).toBeLessThan(60_000);
  expect(await said.locator("script, img, iframe, a[href^='javascript'], a[href*='attack']").count()).toBe(0);
  await press(page, "m");
  await page.locator(".markdown").first().waitFor();
  expect(
    await page.locator("main").locator("script, img, iframe, a[href^='javascript'], a[href*='attack']").count(),
  ).toBe(0);
  await page.goto(`${stage.url}/runs/${hostile}`);
  // The title is "Run" until the run is loaded.
  await page.getByRole("heading", { level: 1, name: "<b>hostile</b>", exact: true }).waitFor();
  expect(wrong).toEqual([]);
});

test("the report as one file, opened from disk without a network, shows what the page shows", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-report-"));
  try {
    const file = join(folder, "report.html");
    const argv = ["run", "export", before, "--html", "-o", file];
    const { code, stderr } = await rollcall(argv, { ROLLCALL_URL: stage.url, ROLLCALL_API_KEY: stage.key });
    expect(code, stderr).toBe(0);
    expect(readFileSync(file, "utf8")).not.toContain("What is item");
    const { page, wrong } = await tabAt(`/runs/${before}`);
    await page.locator(".histogram").waitFor();
    const offline = await theBrowser().newContext({ offline: true, locale: "en-US" });
    const read = await offline.newPage();
    const faults: string[] = [];
    read.on("pageerror", ({ message }) => faults.push(message));
    read.on("request", (request) => {
      if (!/^(file|data):/.test(request.url())) faults.push(request.url());
    });
    await read.goto(pathToFileURL(file).href);
    await read.locator(".histogram").waitFor();
    expect(await numbersOf(read)).toEqual(await numbersOf(page));
    expect((await numbersOf(read)).stats.join(" ")).toMatch(/Scored\s*46\s*of 48 planned/);
    expect([...faults, ...wrong]).toEqual([]);
    await offline.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

async function numbersOf(page: Page) {
  const texts = async (place: string) => (await page.locator(place).allInnerTexts()).map((text) => text.trim());
  return {
    stats: await texts(".stat"),
    bins: await texts(".histogram li"),
    // The file has no questions of tasks, which name the rollouts on which judges and people differ.
    metrics: await texts(":is(.run .columns ~ * td, .run table td):not(:has(.disagreements))"),
    outcomes: (await texts(".outcome-classes li")).map((text) => text.split("\n")[0]),
  };
}
