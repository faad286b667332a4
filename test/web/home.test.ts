/** The first page, the list of runs, and what today cost: how a person finds them. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { RollcallClient } from "../../src/sdk/client.ts";
import { inPage, textOf } from "./browser.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

const client = new RollcallClient({ baseUrl: stage.url, apiKey: stage.key });

/** Usage is copied from the ledger once a minute. */
async function untilCounted(): Promise<void> {
  const counted = async () => {
    const { data } = await client.usage.list({ limit: 1 });
    return data.flatMap(({ results }) => results).reduce((all, { judge_micros }) => all + judge_micros, 0);
  };
  await expect.poll(counted).toBeGreaterThan(0);
}

const section = (page: Page, name: string) =>
  page.locator("section", { has: page.getByRole("heading", { name, exact: true }) });

test("from the first page, one click shows what today cost and where, and a second one only a model", async () => {
  await untilCounted();
  const { page, wrong } = await tabAt("/");
  await page.locator(".stat", { hasText: "Cost of today" }).getByRole("link").click();
  const cost = page.locator(".stat", { hasText: "Cost of today" });
  await expect.poll(() => textOf(cost)).toMatch(/\$0\.0*[1-9]/);
  for (const name of ["By project", "By key", "By model", "By environment"]) {
    await expect.poll(() => textOf(section(page, name))).toMatch(/\$0\.0*[1-9]/);
  }
  expect(await textOf(section(page, "By project"))).toContain("default");
  // Usage is not counted by the model of a judge: its cost is in the row of the model that it judged, with a name.
  expect(await textOf(section(page, "By model").getByRole("row").filter({ hasText: /^new/ }))).toMatch(
    /of this, judges of its rollouts: \$0\.0\d/,
  );
  expect(await section(page, "By model").getByRole("rowheader", { name: "judge", exact: true }).count()).toBe(0);
  const all = await textOf(cost);
  await section(page, "By model").getByRole("button", { name: "new", exact: true }).click();
  await page.getByRole("button", { name: "model: new" }).waitFor();
  await expect.poll(() => textOf(cost)).not.toBe(all);
  expect(page.url()).toContain("model=new");
  await expect.poll(() => textOf(section(page, "By environment"))).toContain("judged-qa");
  expect(await section(page, "By model").count()).toBe(0);
  await page.goBack();
  await expect.poll(() => textOf(cost)).toBe(all);
  expect(wrong).toEqual([]);
});

test("the days of the chart are dates, and a click on one shows that day", async () => {
  const { page, wrong } = await tabAt("/usage?period=week");
  const days = page.locator(".bars", { hasText: "Cost by day" }).getByRole("button");
  await expect.poll(() => days.count()).toBe(31);
  expect(await days.last().getAttribute("aria-label")).toMatch(/^\d+ \w{3,4}: /);
  await days.nth(28).click();
  expect(page.url()).toMatch(/period=\d{4}-\d\d-\d\d/);
  await page.locator("figcaption", { hasText: "by hour (UTC)" }).waitFor();
  expect(wrong).toEqual([]);
});

test("the first page has the line of each environment and model, what failed, and what runs and waits", async () => {
  const { id } = await client.runs.create({
    ...{ name: "held back", environment: "agent", model: "old", endpoint: { base_url: stage.model } },
    ...{ agent: { name: "nobody" }, dataset: [{ prompt: "wait" }] },
  });
  await client.runs.pause(id);
  await client.runs.update(stage.before, { metadata: { gate: "failed" } });
  try {
    const { page, wrong } = await tabAt("/");
    const waiting = section(page, "Running and waiting").locator("li", { hasText: "held back" });
    await expect.poll(() => textOf(waiting)).toMatch(/paused[\s\S]*Nothing is dispatched until it is resumed/);
    const gate = section(page, "Failed in the last 7 days").locator("li", { hasText: "the old model" });
    expect(await textOf(gate)).toContain("gate failed");
    const evals = section(page, "Evals by environment and model");
    const row = evals.locator("tr", { hasText: "the new model" });
    expect(await row.getByRole("img").getAttribute("aria-label")).toMatch(/^one score, 0\.\d/);
    await row.getByRole("link").last().click();
    await page.waitForURL(/\/runs\?environment=judged-qa&model=new$/);
    await expect.poll(() => page.locator("[data-row]").count()).toBe(1);
    expect(wrong).toEqual([]);
  } finally {
    await client.runs.cancel(id);
    await client.runs.update(stage.before, { metadata: {} });
  }
});

test("a search covers names and metadata of every run, and a click on a pair of metadata limits the list to it", async () => {
  await client.runs.update(stage.after, { metadata: { branch: "lr sweep" } });
  const { page, wrong } = await tabAt("/runs");
  await page.locator("[data-row]").first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("branch=LR");
  await expect.poll(() => page.locator("[data-row]").count()).toBe(1);
  await page.getByRole("link", { name: "branch=lr sweep" }).click();
  await page.getByRole("button", { name: "metadata: branch=lr sweep" }).waitFor();
  await page.getByLabel("Group by").selectOption({ label: "branch" });
  await expect.poll(() => textOf(page.locator('[data-row="0"]'))).toMatch(/^lr sweep \(1\)/);
  expect(await textOf(page.locator('[data-row="1"]'))).toContain("the new model");
  expect(wrong).toEqual([]);
});

test("a sort by reward has the highest first, and a mean of part of a run is muted and says of how many", async () => {
  const endpoint = { base_url: stage.model };
  const rows = [0, 23].map((item) => ({ question: `What is item ${item}?`, answer: `answer ${item}` }));
  const dataset = await client.datasets.upload(rows, { name: "two-items" });
  const { id } = await client.runs.create({
    ...{ name: "half scored", environment: "judged-qa", model: "third", endpoint, limits: { max_retries: 0 } },
    // A dataset of its own, so that the results of others do not include it.
    dataset: dataset.id,
    judges: { default: { model: "judge", endpoint } },
  });
  for await (const _ of client.runs.events(id));
  await expect.poll(async () => (await client.runs.list({ search: "half scored" })).data[0]?.status).toBe("failed");
  const { page } = await tabAt("/runs?environment=judged-qa");
  await page.getByRole("button", { name: "Reward, 95 %" }).click();
  await page.waitForURL(/sort=-reward/);
  const rewards = page.locator("[data-row] [role=cell]:nth-child(4)");
  const shown = async () => (await rewards.allInnerTexts()).map((text) => Number.parseFloat(text));
  await expect.poll(async () => (await shown()).length).toBeGreaterThan(1);
  const isSorted = async () => {
    const numbers = (await shown()).filter((one) => !Number.isNaN(one));
    return JSON.stringify(numbers) === JSON.stringify(numbers.toSorted((a, b) => b - a));
  };
  await expect.poll(isSorted).toBe(true);
  const [part, whole] = ["half scored", "the new model"].map((hasText) => page.locator("[data-row]", { hasText }));
  expect(await part?.locator(".soft", { hasText: "1 of 2 scored" }).count()).toBeGreaterThan(0);
  expect(await whole?.getByText(/of \d+ scored/).count()).toBe(0);
});

test("a project without runs shows the first three commands, each of which can be copied", async () => {
  const { id } = await client.projects.create({ name: "empty-project" });
  const { page, wrong } = await tabAt("/keys");
  await inPage(page, `localStorage.setItem("rollcall.project", ${JSON.stringify(id)})`);
  await page.goto(`${stage.url}/`);
  const steps = page.getByRole("region", { name: "First steps" });
  await expect.poll(() => steps.getByRole("listitem").count()).toBe(3);
  expect(await textOf(steps.locator("pre").first())).toBe("npx --no-install rollcall eval calculator -n 5 -r 2");
  await steps.getByRole("button", { name: "Copy command" }).first().click();
  expect(await inPage(page, "navigator.clipboard.readText()")).toContain("rollcall eval calculator");
  expect(wrong).toEqual([]);
});

test("g and a letter go to the first page and to the runs", async () => {
  const { page } = await tabAt("/usage");
  await page.locator("h1").waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/runs");
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await page.getByRole("heading", { name: "Home", level: 1 }).waitFor();
});
