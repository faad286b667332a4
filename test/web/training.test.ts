/** Answers that the pages of trainings give, each in at most three clicks from the start page. */
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { RollcallClient } from "../../src/sdk/client.ts";
import { inPage, textOf } from "./browser.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";
import { playTraining } from "./trainings.ts";

useBrowser();

const client = new RollcallClient({ baseUrl: stage.url, apiKey: stage.key });
const runs: Record<"dropping" | "steady" | "slow", string> = { dropping: "", steady: "", slow: "" };

beforeAll(async () => {
  const right = (...shares: readonly number[]) => shares.map((share) => ({ right: share }));
  const drop = { right: 2, misuses: true };
  runs.dropping = await playTraining(client, stage.url, "dropping", [...right(3, 5, 7), drop, ...right(8)]);
  runs.steady = await playTraining(client, stage.url, "steady", right(5, 8, 8, 9, 9));
  runs.slow = await playTraining(client, stage.url, "slow", right(2, 2, 3, 3, 4));
});

/** Counts the clicks of the reader. */
function clicksOn(page: Page) {
  let clicks = 0;
  return {
    click: async (name: RegExp, role: "link" | "button" = "link") => {
      clicks += 1;
      await page.getByRole(role, { name }).first().click();
    },
    press: () => {
      clicks += 1;
    },
    count: () => clicks,
  };
}

const plain = (text: string) => text.replaceAll(/\s+/g, " ");

test("in two clicks a reader learns why the reward dropped at a step: scores, tools, tasks and samples", async () => {
  const { page, wrong } = await tabAt("/");
  const reader = clicksOn(page);
  await reader.click(/^dropping$/);
  const chart = page.getByRole("slider", { name: "Mean reward by step" });
  await chart.waitFor();
  const box = await chart.boundingBox();
  expect((box?.y ?? 900) + (box?.height ?? 0)).toBeLessThan(900);
  const area = await chart.locator(".u-over").boundingBox();
  // The five steps are spread over the whole width, so the fourth is at three quarters of it.
  await page.mouse.click((area?.x ?? 0) + (area?.width ?? 0) * 0.75, (area?.y ?? 0) + 40);
  reader.press();
  expect(reader.count()).toBe(2);
  const panel = page.getByRole("region", { name: "Step 4 against step 3" });
  await expect.poll(async () => plain(await textOf(panel))).toContain("The mean reward fell by");
  expect(new URL(page.url()).searchParams.get("step")).toBe("4");
  const causes = panel.getByRole("region", { name: "What changed" });
  await expect
    .poll(async () => plain(await textOf(causes)))
    .toMatch(/Failed calls of the tool multiply rose from 0 % to 100 %/);
  await expect.poll(async () => plain(await textOf(causes))).toMatch(/Most often with bad arguments for multiply/);
  expect(plain(await textOf(causes))).toMatch(/Rollouts with failed calls: \d+, the first \d+\./);
  expect(plain(await textOf(causes))).toMatch(/The score right fell from 0\.700 to 0\.\d+: −0\.\d+ of the reward/);
  expect(plain(await textOf(panel.getByRole("table", { name: /Rollouts that arrived/ })))).toMatch(
    /Mean reward 0\.\d+ 0\.\d+ −0\.\d+/,
  );
  await panel.getByRole("table", { name: /Tasks of step 4/ }).waitFor();
  await panel.getByRole("button", { name: "Step before" }).click();
  await page.getByRole("region", { name: "Step 3 against step 2" }).waitFor();
  await page.goBack();
  await panel.waitFor();
  await causes.getByRole("link", { name: /^the first \d+$/ }).click();
  await page.waitForURL(/rollouts\?filter=id/);
  await page.goBack();
  await panel.getByRole("link", { name: "All rollouts of step 4" }).click();
  await expect.poll(() => new URL(page.url()).searchParams.get("filter")).toBe("step:4 superseded:false");
  await expect.poll(() => textOf(page.locator(".found-rollouts"))).toBe("20 rollouts");
  expect(wrong).toEqual([]);
});

test("in two clicks a reader learns which of several trainings learns fastest", async () => {
  const { page, wrong } = await tabAt("/");
  const reader = clicksOn(page);
  await reader.click(/^steady$/);
  await reader.click(/^Compare with \d other trainings/);
  expect(reader.count()).toBe(2);
  const curves = page.getByRole("region", { name: "Learning curves" });
  const said = async () => plain(await textOf(curves.getByRole("status")));
  await expect.poll(said).toMatch(/^steady learns fastest: it reaches a reward of 0\.\d+ after \d steps?\./);
  await expect
    .poll(async () => plain(await textOf(curves)))
    .toMatch(/0\.\d+ is halfway between 0\.\d+, the lowest reward with which a line begins, and 0\.\d+, the highest/);
  const rows = plain(await textOf(curves.getByRole("table")));
  expect(rows).toContain("slow");
  await page.getByLabel("Reward to reach").fill("5");
  await expect.poll(said).toBe("None of these trainings has reached a reward of 5.");
  await page.getByLabel("Reward to reach").fill("0.5");
  await expect.poll(async () => plain(await textOf(curves))).toContain("You chose 0.5.");
  await page.getByLabel("Draw by").selectOption("tokens");
  await expect.poll(said).toMatch(/^steady learns fastest: .* after \d+ tokens\./);
  expect(new URL(page.url()).searchParams.get("by")).toBe("tokens");
  await page.reload();
  await expect.poll(said).toMatch(/after \d+ tokens\./);
  expect(await inPage(page, "document.documentElement.scrollWidth - innerWidth")).toBe(0);
  expect(wrong).toEqual([]);
});

test("the first page shows the last reward of each training and the line of its rewards", async () => {
  const { page, wrong } = await tabAt("/");
  const row = page.getByRole("table").getByRole("row").filter({ hasText: "dropping" });
  await expect.poll(async () => plain(await textOf(row))).toMatch(/dropping .* 0\.\d{3} step 5, best possible 1\.1/);
  const line = row.getByRole("img");
  expect(await line.getAttribute("aria-label")).toMatch(/^the last 5 steps, smoothed: from 0\.\d+ to 0\.\d+$/);
  expect(wrong).toEqual([]);
});

test("a chart of a training without any measurement is left out", async () => {
  const { page } = await tabAt(`/runs/${runs.steady}`);
  await page.getByText("Turns per rollout").first().waitFor();
  expect(await page.getByText("Nothing was measured yet.").count()).toBe(0);
  expect(await page.locator(".plot", { hasText: "KL divergence" }).count()).toBe(0);
});
