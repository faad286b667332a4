/** What a list of rollouts shows by default. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { RollcallClient } from "../../src/sdk/client.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";
import { inPage, textOf } from "./browser.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

const headersOf = async (page: Page) => {
  await page.locator("[data-row]").first().waitFor();
  return await page.getByRole("columnheader").allInnerTexts();
};
/** Pixels by which the content is too wide: of the table, and of each of its headers. */
const OVER = `[...document.querySelectorAll(".data-table, .data-table .head .td")].map((one) => one.scrollWidth - one.clientWidth)`;

test("at 1,280 pixels every default column is completely visible, including what stopped the rollout", async () => {
  const { page, wrong } = await tabAt(`/runs/${stage.training}/rollouts?sort=-turns`, { width: 1280 });
  const headers = await headersOf(page);
  expect(headers).toEqual(["Rollout", "Task", "Last answer", "Expected", "Outcome", "Reward", "Turns ▼", "Stopped by"]);
  expect(await inPage(page, OVER)).toEqual(new Array(headers.length + 1).fill(0));
  expect(wrong).toEqual([]);
});

test("errors have a default column if a rollout of the run failed, after the others", async () => {
  const { page } = await tabAt(`/runs/${stage.before}/rollouts?filter=outcome:failed`);
  expect((await headersOf(page)).slice(-2)).toEqual(["Stopped by", "Error"]);
});

test("a rollout whose answer hit its token limit says so in the list, in its head and at its turn", async () => {
  const model = await startScriptedModel({ reply: () => ({ content: "12 and", finish_reason: "length" }) });
  try {
    const client = new RollcallClient({ baseUrl: stage.url, apiKey: stage.key });
    const request = { environment: "calculator", model: "m", endpoint: { base_url: model.url }, num_examples: 1 };
    const { id } = await client.runs.create(request);
    for await (const _ of client.runs.events(id));
    const { page, wrong } = await tabAt(`/runs/${id}/rollouts`);
    const mark = page.locator("[data-row] .badge", { hasText: "cut off" });
    await mark.waitFor();
    expect(await mark.getAttribute("title")).toBe("an answer was cut off at a token limit");
    await expect.poll(() => textOf(page.locator("[data-row]"))).toContain("12 and");
    expect(await textOf(page.locator("[data-row] .td").last())).toBe("answer without a tool call");
    await page.locator("[data-row] a").first().click();
    await page.getByText("an answer was cut off at a token limit").waitFor();
    expect(await textOf(page.locator(".turn-head"))).toContain("answer cut off at its token limit");
    expect(wrong).toEqual([]);
  } finally {
    await model.stop();
  }
});
