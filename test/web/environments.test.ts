/** Published environments: found, read although a stranger wrote them, granted, run, and their results. */
import { expect, test } from "vitest";
import { RollcallClient } from "../../src/sdk/client.ts";
import { inPage, signIn, textOf } from "./browser.ts";
import { LETTERS, SEARCHING, WHEEL } from "./published.ts";
import { stage, tabAt, theBrowser, useBrowser } from "./tabs.ts";

useBrowser();

const client = new RollcallClient({ baseUrl: stage.url, apiKey: stage.key });
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

test("the page starts an eval of exactly its version, with arguments from its schema", async () => {
  const { page, wrong } = await tabAt(pathOf(`${LETTERS}@1.0.0`));
  const [form, about] = ["New run", "About"].map((name) => page.getByRole("tab", { name }));
  await form?.click();
  await page.getByText("This version was yanked").waitFor();
  await page.getByLabel("max", { exact: true }).fill("9");
  await page.getByLabel("Tasks", { exact: true }).fill("2");
  await page.getByRole("radio", { name: "a URL" }).check();
  await page.getByLabel("Base URL (required)").fill(stage.model);
  await page.getByLabel("Its key").fill("sk-a-key-that-is-not-kept");
  // A reader who looks at another tab finds the form as it was, without the key.
  await about?.click();
  await page.locator(".readme").waitFor();
  await form?.click();
  await page.getByLabel("Base URL (required)").waitFor();
  expect(await page.getByLabel("max", { exact: true }).inputValue()).toBe("9");
  expect(await page.getByLabel("Its key").inputValue()).toBe("");
  const start = page.getByRole("button", { name: "Start the run" });
  await start.click();
  await page.getByText("One field above must be corrected").waitFor();
  await page.keyboard.type("old");
  expect(await page.getByLabel("Model (required)").inputValue()).toBe("old");
  await start.click();
  await page.waitForURL(/\/runs\/run_\w+$/);
  const run = await client.runs.get(page.url().split("/").at(-1) ?? "");
  expect(run).toMatchObject({ kind: "eval", environment: { id: LETTERS, version: "1.0.0" }, model: "old" });
  expect(run).toMatchObject({ environment_args: { max: 9 }, num_examples: 2 });
  expect(wrong).toEqual([]);
});

test("each attempt puts the focus on the first field with an error, also on a folded one", async () => {
  const { page, wrong } = await tabAt(`${pathOf(LETTERS)}?tab=run&model=old&endpoint=actors`);
  const folded = page.locator("details", { hasText: "More options" });
  const seed = page.getByLabel("Sampling seed");
  await page.getByText("More options").click();
  await seed.fill("x");
  await page.getByText("More options").click();
  await seed.waitFor({ state: "hidden" });
  const [start, kind] = [page.getByRole("button", { name: "Start the run" }), page.getByLabel("kind (required)")];
  await start.click();
  await page.getByText("2 fields above must be corrected").waitFor();
  await folded.getByText("must be a number").waitFor();
  await expect.poll(() => inPage(page, "document.activeElement.tagName")).toBe("SELECT");
  await kind.selectOption("none");
  await start.click();
  await expect.poll(() => inPage(page, "document.activeElement.value")).toBe("x");
  expect(wrong).toEqual([]);
});

test("a version that no run can use says why, and what to do", async () => {
  const { page, wrong } = await tabAt(`${pathOf(WHEEL)}?tab=run`);
  await page.getByText("The platform does not play Python environments").waitFor();
  const index = `${stage.url}/python/alice/simple/`;
  await page.getByText(`pip install --index-url ${index} --no-deps py-game==1.0.0-rc.1`).waitFor();
  await page.goto(`${stage.url}${pathOf(`${SEARCHING}@0.9.0`)}?tab=run`);
  await page.getByText("The operator took this version down").waitFor();
  await page.getByRole("link", { name: "another version" }).click();
  await page.getByRole("region", { name: "Versions" }).waitFor();
  expect(await page.getByRole("button", { name: "Start the run" }).count()).toBe(0);
  expect(wrong.filter((one) => !one.includes("404"))).toEqual([]);
});

test("the form is shown once the project has granted what the environment needs", async () => {
  const { page, wrong } = await tabAt(`${pathOf(SEARCHING)}?tab=run`);
  await page.locator(".needs").filter({ hasText: "secret:KEY ! not granted" }).waitFor();
  const start = page.getByRole("button", { name: "Start the run" });
  expect(await start.count()).toBe(0);
  await page.getByRole("button", { name: "Grant" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Grant" }).click();
  await start.waitFor();
  await client.environments.setGrant(SEARCHING, []);
  expect(wrong).toEqual([]);
});

test("a key that may not start runs fills in the form and copies the command, and the page says what it lacks", async () => {
  const scopes = ["runs:read", "environments:read", "endpoints:read", "datasets:read"] as const;
  const { key } = await client.keys.create({ name: "viewer", scopes: [...scopes] });
  const path = `${pathOf(`${LETTERS}@1.0.0`)}?tab=run`;
  const { page, wrong, close } = await signIn(theBrowser(), { url: stage.url, key: key ?? "" }, path);
  await page.getByText("you need a key with the permission runs:write").waitFor();
  await page.getByLabel("max", { exact: true }).fill("9");
  expect(await textOf(page.getByLabel("CLI", { exact: true }))).toContain(
    `npx --no-install rollcall eval ${LETTERS}@1.0.0`,
  );
  expect(await page.getByRole("button", { name: "Start the run" }).isDisabled()).toBe(true);
  expect(wrong).toEqual([]);
  await close();
});

test("the form for all runs uses the version of its link, also if the list of environments does not have it", async () => {
  const { page, wrong } = await tabAt(`${pathOf(`${LETTERS}@1.0.0`)}?tab=run`);
  await page.getByRole("link", { name: "form for all runs" }).click();
  const chosen = page.locator("#new-environment");
  await chosen.waitFor();
  expect(await chosen.inputValue()).toBe(`${LETTERS}@1.0.0`);
  expect(await textOf(page.getByLabel("CLI", { exact: true }))).toContain(
    `npx --no-install rollcall train ${LETTERS}@1.0.0`,
  );
  expect(await chosen.locator("option").allInnerTexts()).not.toContain(`${WHEEL}@1.0.0-rc.1`);
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
  const plain = page.locator("h2:text-is('Version 1.0.0') + section");
  await plain.waitFor();
  expect(await plain.locator("tbody tr").count()).toBe(1);
  expect(wrong).toEqual([]);
});
