/** Published environments: found, read although a stranger wrote them, granted, run, and their results. */
import { expect, test } from "vitest";
import { inPage, textOf } from "./browser.ts";
import { LETTERS, SEARCHING } from "./published.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

const pathOf = (id: string) => `/environments/${encodeURIComponent(id)}`;

test("an environment is found by its description, and the URL keeps the search", async () => {
  const { page, wrong } = await tabAt("/environments");
  await page.locator("[data-row]").first().waitFor();
  await page.getByLabel("Search").fill("GUESS a word");
  await page.waitForURL(/search=GUESS/);
  const found = page.locator("[data-row] a:not([href*='runs/new'])");
  await found.filter({ hasText: "guess-number" }).waitFor({ state: "detached" });
  await found.filter({ hasText: SEARCHING }).waitFor();
  expect(await found.allInnerTexts()).toEqual([LETTERS, SEARCHING]);
  await page.reload();
  await found.filter({ hasText: SEARCHING }).waitFor();
  expect(await found.allInnerTexts()).toEqual([LETTERS, SEARCHING]);
  await page.getByLabel("Search").fill("no such thing");
  await page.getByText("No environment has this text").waitFor();
  await page.getByLabel("Search").fill("letters");
  await page.getByRole("link", { name: LETTERS, exact: true }).click();
  await page.getByRole("heading", { level: 1, name: `${LETTERS}@1.1.0` }).waitFor();
  expect(wrong).toEqual([]);
});

test("a hostile README is rendered without its HTML, its pictures and its scripts, and in parts", async () => {
  const { page, wrong } = await tabAt(pathOf(LETTERS));
  const readme = page.locator(".readme");
  await readme.getByRole("heading", { name: "Guess a letter" }).waitFor();
  const text = await textOf(readme);
  for (const mark of ["U+202E", "U+2066", "U+001B", "U+200B"]) expect(text).toContain(mark);
  expect(text).not.toContain("U+000D");
  expect(text).toContain("long\n\ncode");
  expect(await page.locator("main").locator("script, img, iframe, object, style").count()).toBe(0);
  const links = await readme.locator("a").evaluateAll((all) => all.map((a) => [a.getAttribute("href"), a.rel]));
  expect(links.length).toBeGreaterThan(1);
  for (const [href, rel] of links) {
    expect(href).toMatch(/^https:\/\/attack\.test\//);
    expect(rel).toContain("noopener");
  }
  expect(text).toContain("elsewhere (attack.test)");
  expect(text.length).toBeLessThan(40_000);
  expect(await readme.locator(".markdown").count()).toBeLessThan(5);
  await readme.getByRole("button", { name: "Show more" }).last().click();
  await readme.locator(".markdown").nth(5).waitFor();
  expect(wrong).toEqual([]);
});

test("a version's failed validation, its yank and its reason are shown, and the record has each check", async () => {
  const { page, wrong } = await tabAt(pathOf(LETTERS));
  expect(await textOf(page.locator(".note.warn"))).toContain("failed its validation");
  await page.getByRole("tab", { name: "Validation" }).click();
  const checks = await textOf(page.getByRole("region", { name: "Checks" }));
  expect(checks).toMatch(/variety|rewards/);
  expect(checks).toContain("error");
  expect(await textOf(page.getByRole("region", { name: "Mean reward of each policy" }))).toMatch(/constant\s+1\.000/);
  await page.getByRole("tab", { name: "Versions" }).click();
  const rows = page.getByRole("region", { name: "Versions" }).locator("tbody tr");
  await rows.nth(1).waitFor();
  expect(await textOf(rows.first())).toMatch(/^1\.1\.0\s+latest\s+! failed its validation/);
  expect(await textOf(rows.last())).toContain("its reward counts a wrong guess");
  await rows.last().getByRole("link").click();
  await page.getByRole("heading", { level: 1, name: `${LETTERS}@1.0.0` }).waitFor();
  expect(await textOf(page.locator(".note.warn"))).toContain("its reward counts a wrong guess");
  expect(wrong).toEqual([]);
});

test("what another organisation's environment needs is granted and taken back", async () => {
  const { page, wrong } = await tabAt(pathOf(SEARCHING));
  const needs = page.locator(".needs");
  await needs.filter({ hasText: "secret:KEY ! not granted" }).waitFor();
  await page.getByRole("button", { name: "Grant" }).click();
  const dialog = page.getByRole("dialog");
  expect(await textOf(dialog)).toContain("secret:KEY");
  await dialog.getByRole("button", { name: "Grant" }).click();
  await needs.filter({ hasText: "secret:KEY ✓ may be used" }).waitFor();
  await page.getByRole("button", { name: "Take all grants back" }).click();
  await needs.filter({ hasText: "secret:KEY ! not granted" }).waitFor();
  expect(wrong).toEqual([]);
});

test("New run starts from the version of the page, also if the list of environments does not have it", async () => {
  const { page, wrong } = await tabAt(pathOf(`${LETTERS}@1.0.0`));
  await page.locator("main").getByRole("link", { name: "New run" }).click();
  const chosen = page.locator("#new-environment");
  await chosen.waitFor();
  expect(await chosen.inputValue()).toBe(`${LETTERS}@1.0.0`);
  expect(await textOf(page.getByLabel("CLI", { exact: true }))).toContain(`rollcall eval ${LETTERS}@1.0.0`);
  await page.goto(`${stage.url}/runs/new?environment=${encodeURIComponent(`${LETTERS}@9.9.9`)}`);
  await page.getByText("has no version 9.9.9").waitFor();
  expect(await page.getByRole("button", { name: "Start the run" }).count()).toBe(0);
  expect(wrong.filter((one) => !one.includes("404"))).toEqual([]);
});

test("the results of each model have their interval, what was not scored, and a place that chance may have made", async () => {
  const { page, wrong } = await tabAt("/environments/judged-qa?tab=results");
  const table = page.locator("table.results").filter({ hasText: "old" });
  await table.waitFor();
  const rows = await table.locator("tbody tr").allInnerTexts();
  expect(rows.map((row) => row.split(/\s+/).slice(0, 4).join(" "))).toEqual([...["1 to 2 old", "1 to 2 new"]]);
  const others = page.locator("table.results").filter({ hasText: "<i>m</i>" });
  expect(await others.locator("tbody tr").allInnerTexts()).toEqual([
    expect.stringMatching(/^–\s+<i>m<\/i>\s+no score/),
  ]);
  await page.getByRole("heading", { name: "judge default: <i>judge</i>" }).waitFor();
  expect(rows[0]).toMatch(/0\.522 0\.3\d\d to 0\.7\d\d\s+23\s+46\s+2\s+0\s+0\s+0/);
  await table.getByRole("link", { name: /^0\.522/ }).click();
  await page.getByRole("heading", { level: 1, name: "the old model" }).waitFor();
  await page.goto(`${stage.url}${pathOf(LETTERS)}?tab=results`);
  await page.getByRole("heading", { name: "Version 1.0.0" }).waitFor();
  expect(await inPage(page, "document.querySelectorAll('table.results tbody tr').length")).toBe(1);
  expect(wrong).toEqual([]);
});
