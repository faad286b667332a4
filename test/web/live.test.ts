/** A run in progress while a reader looks at it. */
import { expect, test } from "vitest";
import { RollcallClient } from "../../src/sdk/client.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";
import { inPage, textOf } from "./browser.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

const client = new RollcallClient({ baseUrl: stage.url, apiKey: stage.key });
const ALL = 160;

/** A model that answers only as many calls as the test allows. */
async function startHeldModel() {
  let allowed = 0;
  const waiting: (() => void)[] = [];
  const model = await startScriptedModel({
    async reply({ begin }) {
      begin();
      if (allowed === 0) await new Promise<void>((resolve) => waiting.push(resolve));
      else allowed -= 1;
      return "gnihton";
    },
  });
  const release = (calls: number) => {
    const now = waiting.splice(0, calls);
    allowed += calls - now.length;
    for (const go of now) go();
  };
  return { url: model.url, release, stop: () => model.stop() };
}

async function startRun(url: string, num_examples = ALL) {
  return await client.runs.create({
    ...{ environment: "reverse-text", model: "m", endpoint: { base_url: url }, max_concurrent: 40 },
    num_examples,
  });
}

test("a list that grows keeps its position and its chosen row", async () => {
  const model = await startHeldModel();
  try {
    const { id } = await startRun(model.url, 90);
    model.release(60);
    const { page, wrong } = await tabAt(`/runs/${id}/rollouts?filter=status%3Adone&sort=-reward`);
    await expect.poll(() => textOf(page.locator(".found-rollouts"))).toBe("60 rollouts");
    for (let at = 0; at < 31; at += 1) await page.keyboard.press("j");
    const chosen = page.locator('[aria-selected="true"] a').first();
    await expect.poll(() => page.locator('[aria-selected="true"]').getAttribute("data-row")).toBe("30");
    const name = await textOf(chosen);
    const place = () => page.locator('[aria-selected="true"]').boundingBox();
    const y = (await place())?.y ?? 0;
    model.release(ALL);
    await expect.poll(() => textOf(page.locator(".found-rollouts"))).toBe("90 rollouts");
    expect(await textOf(chosen)).toBe(name);
    expect(Math.abs(((await place())?.y ?? 0) - y)).toBeLessThan(40);
    expect(wrong).toEqual([]);
  } finally {
    await model.stop();
  }
});

test("a chosen row keeps its place while more than a page of rows comes in before it, all with the same reward", async () => {
  const model = await startHeldModel();
  try {
    const { id } = await startRun(model.url, 220);
    model.release(110);
    const { page, wrong } = await tabAt(`/runs/${id}/rollouts?filter=status%3Adone&sort=-reward`);
    const found = () => textOf(page.locator(".found-rollouts"));
    await expect.poll(found).toBe("110 rollouts");
    for (let at = 0; at < 101; at += 1) await page.keyboard.press("j");
    const chosen = page.locator('[aria-selected="true"]');
    await expect.poll(() => chosen.getAttribute("data-row")).toBe("100");
    const name = await textOf(chosen.locator("a"));
    const y = (await chosen.boundingBox())?.y ?? 0;
    model.release(220);
    await expect.poll(found).toBe("220 rollouts");
    await expect.poll(async () => Number(await chosen.getAttribute("data-row"))).toBeGreaterThan(200);
    expect(await textOf(chosen.locator("a"))).toBe(name);
    expect(Math.abs(((await chosen.boundingBox())?.y ?? 0) - y)).toBeLessThan(2);
    expect(wrong).toEqual([]);
  } finally {
    await model.stop();
  }
});

test("a run page continues by itself at its scroll position; its stream begins where the run was read, and resumes after its last event", async () => {
  const model = await startHeldModel();
  try {
    const { id } = await startRun(model.url);
    const { page } = await tabAt("/", { height: 500 });
    const asked: (string | undefined)[] = [];
    // The stream ends after its first events, like that of a platform that stops.
    await page.route(`**/v1/runs/${id}/events*`, async (route) => {
      asked.push(route.request().headers()["last-event-id"]);
      if (asked.length > 1) return await route.continue();
      const events = [];
      for await (const event of client.runs.events(id, { after: Number(asked[0]) })) {
        events.push(`id: ${event.id}\nevent: ${event.event}\nretry: 50\ndata: ${JSON.stringify(event.data)}\n\n`);
        if (events.length === 5) break;
      }
      await route.fulfill({ contentType: "text/event-stream", body: events.join("") });
    });
    model.release(10);
    await expect.poll(async () => (await client.runs.get(id)).counts.scored).toBe(10);
    const { last_event = 0 } = await client.runs.get(id);
    await page.goto(`${stage.url}/runs/${id}`);
    await expect.poll(() => asked.length).toBe(1);
    expect(Number(asked[0])).toBeGreaterThanOrEqual(last_event);
    model.release(10);
    const progress = page.locator(".under-way p");
    await progress.waitFor();
    await inPage(page, "scrollTo(0, 200)");
    const scrolled = await inPage(page, "scrollY");
    await expect.poll(() => asked.length).toBeGreaterThan(1);
    expect(Number(asked[1])).toBeGreaterThan(Number(asked[0]));
    await expect.poll(() => textOf(progress)).toMatch(/^20 of 160/);
    model.release(40);
    await expect.poll(() => textOf(progress)).toMatch(/^60 of 160/);
    expect(await inPage(page, "scrollY")).toBe(scrolled);
    model.release(ALL);
    await expect.poll(() => textOf(page.locator(".run-head"))).toMatch(/completed/);
  } finally {
    await model.stop();
  }
});
