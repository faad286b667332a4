/** A URL restores the state of its page, and a number links to the rows that it counts. */
import { expect, test } from "vitest";
import { RollcallClient } from "../../src/sdk/client.ts";
import { inPage, openTab, textOf } from "./browser.ts";
import { stage, tabAt, theBrowser, useBrowser } from "./tabs.ts";

useBrowser();

const { before, after } = stage;
const client = new RollcallClient({ baseUrl: stage.url, apiKey: stage.key });

test("filter, sort and columns are restored from the URL", async () => {
  const asked = "filter=reward%3C0.5+outcome%3Ascored&sort=-turns&columns=reward%2Cturns";
  const { page, wrong } = await tabAt(`/runs/${before}/rollouts?${asked}`);
  const seen = async () => ({
    found: await textOf(page.locator(".found-rollouts")),
    heads: await page.getByRole("columnheader").allInnerTexts(),
    sorted: await textOf(page.locator('[aria-sort="descending"]')),
    rows: await page.locator("[data-row] a").allInnerTexts(),
    filter: await page.getByLabel("Filter", { exact: true }).inputValue(),
  });
  await page.locator("[data-row]").first().waitFor();
  await expect.poll(async () => (await seen()).found).toBe("22 rollouts");
  const first = await seen();
  expect(first).toMatchObject({ filter: "reward<0.5 outcome:scored" });
  expect(first.heads).toEqual(["Reward", "Turns ▼"]);
  await page.reload();
  await page.locator("[data-row]").first().waitFor();
  await expect.poll(seen).toEqual(first);
  expect(wrong).toEqual([]);
});

test("the candidate and the kind of tasks of a comparison are restored from the URL, and so is a turn", async () => {
  const { page } = await tabAt(`/compare?runs=${before},${after}&baseline=${before}`);
  await page.locator("table").first().waitFor();
  expect(await page.getByRole("radio").nth(1).isChecked()).toBe(true);
  await page.getByRole("radio").first().check();
  await page.getByLabel("Show the tasks that").selectOption("flipped");
  await expect.poll(() => page.url()).toContain("only=flipped");
  await page.reload();
  await page.locator("table").first().waitFor();
  expect(await page.getByRole("radio").first().isChecked()).toBe(true);
  expect(await page.getByLabel("Show the tasks that").inputValue()).toBe("flipped");

  await page.goto(`${stage.url}/rollouts/${stage.longRollout}?turn=700`);
  await page.locator('article[data-index="699"] .turn-head').waitFor();
  await page.reload();
  await page.locator('article[data-index="699"] .turn-head').waitFor();
  expect(new URL(page.url()).searchParams.get("turn")).toBe("700");
});

test("each count of a run links to that many rollouts", async () => {
  const { page, wrong } = await tabAt(`/runs/${before}`);
  await page.getByRole("heading", { name: "Outcomes" }).waitFor();
  await page.locator(".histogram").waitFor();
  const links = page.locator('main a[href*="/rollouts?filter="]');
  await expect.poll(() => links.count()).toBeGreaterThan(3);
  const counted: { readonly text: string; readonly href: string }[] = [];
  for (const link of await links.all()) {
    const text = (await textOf(link)).trim();
    if (/^[\d,]+( |$)/.test(text)) counted.push({ text, href: (await link.getAttribute("href")) ?? "" });
  }
  expect(counted.map(({ text }) => text)).toContain("46");
  for (const { text, href } of counted) {
    const n = Number(/^[\d,]+/.exec(text)?.[0].replaceAll(",", ""));
    await page.goto(stage.url + href);
    const found = page.getByText(`${n} ${n === 1 ? "rollout" : "rollouts"}`, { exact: true });
    await expect.poll(() => found.count(), { message: `${text}: ${href}` }).toBe(1);
  }
  expect(wrong).toEqual([]);
});

test("the bins of the histogram match the API, and each links to its rollouts", async () => {
  const { page } = await tabAt(`/runs/${before}`);
  const bins = page.locator(".histogram li button");
  await bins.first().waitFor();
  const texts = await bins.allInnerTexts();
  const { bins: known } = await client.runs.histogram(before, { of: "reward" });
  expect(texts.map((text) => Number(/: ([\d,]+)/.exec(text)?.[1]))).toEqual(known.map(({ n }) => n));
  // Only rewards of 0 and 1.
  expect(texts.map((text) => text.split(":")[0])).toEqual(["0", "1"]);
  await bins.last().click();
  await expect.poll(() => textOf(page.locator(".found-rollouts"))).toBe(`${known.at(-1)?.n} rollouts`);
  expect(await page.getByLabel("Filter", { exact: true }).inputValue()).toBe("reward=1 superseded:false");
});

test("a list keeps its position and chosen row for a reader who comes back from a rollout far down, and starts again with a new filter", async () => {
  const { page } = await tabAt(`/runs/${before}/rollouts`);
  const chosen = page.locator('[aria-selected="true"]');
  const top = async () => Number(await inPage(page, "document.querySelector('.data-table').scrollTop"));
  await page.locator("[data-row]").first().waitFor();
  for (let at = 0; at < 41; at += 1) await page.keyboard.press("j");
  await expect.poll(() => chosen.getAttribute("data-row")).toBe("40");
  const [scrolled, name] = [await top(), await textOf(chosen.locator("a"))];
  expect(scrolled).toBeGreaterThan(500);
  await page.keyboard.press("Enter");
  await page.locator(".turn-list").waitFor();
  await page.goBack();
  await chosen.waitFor();
  expect(await textOf(chosen.locator("a"))).toBe(name);
  expect(await top()).toBe(scrolled);
  await page.getByRole("button", { name: "Reward" }).click();
  await expect.poll(top).toBe(0);
});

test("the report at a public link shows the distribution of rewards, as the run's own page does", async () => {
  const { page, wrong } = await tabAt(`/runs/${before}`);
  const bins = async () => {
    await page.locator(".histogram li").first().waitFor();
    return await page.locator(".histogram li").allInnerTexts();
  };
  const own = await bins();
  await page.goto(stage.report);
  await page.getByText("This link expires").waitFor();
  expect(await bins()).toEqual(own);
  expect(await page.locator(".histogram button:enabled").count()).toBe(0);
  expect(wrong).toEqual([]);
});

test("a link to a report works without sign-in, and its token is in no requested URL", async () => {
  const { page, wrong, close } = await openTab(theBrowser(), stage.url);
  const token = new URL(stage.report).hash.slice(1);
  const asked: string[] = [];
  page.on("request", (request) => {
    const { pathname, search } = new URL(request.url());
    asked.push(pathname + search, request.headers()["referer"] ?? "");
  });
  try {
    await page.goto(stage.report);
    await expect.poll(() => textOf(page.locator("h1"))).toContain("the old model");
    await page.reload();
    await expect.poll(() => textOf(page.locator("h1"))).toContain("the old model");
    expect(asked).toContain("/v1/shared-report");
    expect(asked.filter((one) => one.includes(token))).toEqual([]);
    await page.goto(`${stage.url}/shared#${token.slice(0, -1)}`);
    await expect.poll(() => textOf(page.getByRole("alert"))).toContain("its link has expired");
    expect(wrong.filter((one) => !one.includes("401"))).toEqual([]);
  } finally {
    await close();
  }
});
