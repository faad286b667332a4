/** A chart's point: its values are shown next to the chart, with mouse and keys. */
import { expect, test } from "vitest";
import { RollcallClient } from "../../src/sdk/client.ts";
import { numberText } from "../../src/web/components/format.ts";
import { textOf } from "./browser.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

const MEAN = "train/agg/all/reward/mean";
const LOW = "train/agg/all/reward/ci95_low";
const client = new RollcallClient({ baseUrl: stage.url, apiKey: stage.key });

test("the selected step is named with the values of its series, with mouse and arrow keys, and Enter compares it with the step before", async () => {
  const { data } = await client.runs.metrics(stage.training);
  const measured = new Map(data.map(({ step, values }) => [step, values]));
  const { page, wrong } = await tabAt(`/runs/${stage.training}`);
  const chart = page.getByRole("slider").first();
  const legend = page.locator(".plot .legend").first();
  expect(await textOf(legend)).toMatch(/^step 4, the last/);
  const area = await chart.locator(".u-over").boundingBox();
  await page.mouse.move((area?.x ?? 0) + 2, (area?.y ?? 0) + 20);
  // Which steps have rollouts depends on how fast the model answers.
  const shown = (step: number) => {
    const { [MEAN]: reward = null, [LOW]: low = null } = measured.get(step) ?? {};
    return `mean of the step ${reward === null ? "not measured" : numberText(reward)}${low === null ? "" : " ("}`;
  };
  await expect.poll(() => textOf(legend)).toMatch(/^step 1\n/);
  expect((await textOf(legend)).replaceAll(/\s+/g, " ")).toContain(shown(1));
  await page.mouse.move(0, 0);
  await expect.poll(() => textOf(legend)).toMatch(/^step 4, the last/);
  await chart.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await expect.poll(() => chart.getAttribute("aria-valuetext")).toContain(`step 2: ${shown(2)}`);
  expect(await textOf(legend)).toMatch(/^step 2\n/);
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: /^Step 2/ }).waitFor();
  expect(new URL(page.url()).searchParams.get("step")).toBe("2");
  expect(wrong).toEqual([]);
});

test("solved groups are described by the rewards that count, without the word solve", async () => {
  const { page } = await tabAt(`/runs/${stage.training}`);
  const chart = page.locator(".plot", { hasText: "Share of groups, by the rewards of their rollouts" });
  const shares = (await textOf(chart.locator(".legend li"))).replaceAll(/\s+/g, " ");
  const value = "(?:[\\d.]+|not measured)";
  const said = ["every reward 0 or less", "some reward above 0, not all 1 or more", "every reward 1 or more"];
  expect(shares).toMatch(new RegExp(`^${said.map((one) => `${one} ${value}`).join(" ")}$`));
});
