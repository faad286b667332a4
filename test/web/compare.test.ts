/** One candidate beside several baselines: the table of differences, the tasks, the outputs, and how runs are chosen. */
import axe from "axe-core";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { textOf as textIn } from "../../src/contract/messages.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { type Answer, type ModelRequest, startScriptedModel } from "../fakes/scripted-model.ts";
import { inPage, textOf } from "./browser.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

const client = new RollcallClient({ baseUrl: stage.url, apiKey: stage.key });
const plain = (text: string) => text.replaceAll(/\s+/g, " ").trim();

const SUMS = Array.from({ length: 12 }, (_, at) => ({ question: `What is ${at} + 100?`, answer: String(at + 100) }));
/** How many of the sums each model has right, from the first on. */
const RIGHT: Readonly<Record<string, number>> = { fresh: 11, nightly: 4, stable: 9, small: 11 };
const MODELS = Object.keys(RIGHT);
const PRICES = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 2_000_000 };

/** `fresh` and `stable` call a tool first, so they take one turn more than the others. */
function replyOf({ model, messages }: ModelRequest): Answer {
  const asked = textIn(messages.findLast(({ role }) => role === "user"));
  const item = Number(/What is (\d+)/.exec(asked)?.[1]);
  const isFirst = messages.every(({ role }) => role !== "tool");
  if (isFirst && (model === "fresh" || model === "stable")) {
    return { tool_calls: [{ id: "a", name: "add", arguments: { a: item, b: 100 } }] };
  }
  const value = item < (RIGHT[model] ?? 0) ? item + 100 : 0;
  return model === "small" ? `I think it is ${value}` : `The tool was used. The sum is ${value}`;
}

const ids: Record<string, string> = {};
const runs = (...names: readonly string[]) => names.map((name) => ids[name]).join(",");

beforeAll(async () => {
  const model = await startScriptedModel({ reply: replyOf });
  try {
    for (const name of MODELS) {
      const { id } = await client.runs.create({
        ...{ name: `sums of ${name}`, environment: "calculator", model: name, dataset: SUMS },
        endpoint: { base_url: model.url, prices: PRICES },
      });
      for await (const _ of client.runs.events(id));
      ids[name] = id;
    }
  } finally {
    await model.stop();
  }
});

/** A folder for screenshots. */
const shots = process.env["SHOTS"];

async function shoot(page: Page, name: string): Promise<void> {
  if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
}

async function seriousFaults(page: Page): Promise<readonly string[]> {
  await inPage(page, `${axe.source}; 0`);
  const found = await inPage(
    page,
    "axe.run(document, {resultTypes: ['violations']}).then((found) => JSON.stringify(found.violations))",
  );
  const all: readonly { readonly id: string; readonly impact: string }[] = JSON.parse(String(found));
  return all.filter(({ impact }) => /serious|critical/.test(impact)).map(({ id }) => id);
}

const differences = (page: Page) => page.getByRole("region", { name: "Differences from each baseline" });
const outputs = (page: Page) => page.getByRole("region", { name: "Outputs side by side" });
const several = () => `/compare?runs=${runs("nightly", "stable", "small", "fresh")}&candidate=${ids["fresh"]}`;

test("a candidate has a row for each baseline, with its difference, corrected p, tasks and cost", async () => {
  const { page, wrong } = await tabAt(several());
  const rows = differences(page).locator("tbody tr");
  await expect.poll(() => rows.count()).toBe(3);
  const [nightly, stable, small] = (await rows.allInnerTexts()).map(plain);
  expect(nightly).toMatch(
    /sums of nightly .*\+0\.58\d \+0\.2\d+ to \+0\.9\d+ .*7 better, 0 worse, 5 the same 7 flipped/,
  );
  expect(stable).toMatch(/sums of stable .*2 better, 0 worse, 10 the same/);
  expect(small).toMatch(/sums of small .*0\.000/);
  expect(nightly).toMatch(/\+\$0\.0\d+ per rollout, \+\$0\.0\d+ in all/);
  const heads = await differences(page).getByRole("columnheader").allInnerTexts();
  expect(heads).toContain("p by Holm");
  const [p, adjusted] = [heads.indexOf("p"), heads.indexOf("p by Holm")];
  const cells = await rows.first().locator("td").allInnerTexts();
  // The smallest of the p values that exist is multiplied by their number.
  expect(Number(cells[adjusted - 1])).toBeGreaterThan(Number(cells[p - 1]));
  expect(wrong).toEqual([]);
});

test("a task has the mean of each run, and shows the outputs of all by turn with the differences of a chosen pair", async () => {
  const { page, wrong } = await tabAt(several());
  const tasks = page.getByRole("region", { name: "Tasks" });
  await expect.poll(() => tasks.getByRole("button").count()).toBe(7);
  expect(plain(await textOf(tasks.locator("thead").first()))).toBe(
    "Task candidate sums of fresh baseline sums of nightly baseline sums of stable baseline sums of small",
  );
  await page.getByLabel("Show the tasks that").selectOption("all");
  await expect.poll(() => tasks.getByRole("button").count()).toBe(12);
  const chosen = tasks.getByRole("button", { name: /What is 10 \+ 100/ });
  await chosen.click();
  await expect.poll(() => chosen.getAttribute("aria-expanded")).toBe("true");
  const row = tasks.getByRole("row").filter({ hasText: "What is 10 + 100" }).first();
  expect(plain(await textOf(row))).toMatch(/10 \+ 100\? 1\.\d+ 0\.\d+ ▲ \+1\.0\d+.* 0\.\d+ ▲ \+1\.0\d+.*= the same/);
  const head = async () => plain(await textOf(outputs(page).locator("thead")));
  await expect.poll(head).toBe("Turn sums of nightly sums of fresh sums of stable sums of small");
  expect(await outputs(page).locator("tbody tr").count()).toBe(2);
  const second = plain(await textOf(outputs(page).locator("tbody tr").nth(1)));
  expect(second).toBe(
    "2 it has no such turn The tool was used. The sum is 110 The tool was used. The sum is 0 it has no such turn",
  );
  await page.getByLabel("Mark what differs between").selectOption({ label: "sums of stable" });
  await page.getByLabel("Differences by").selectOption("sentence");
  await expect.poll(head).toBe("Turn sums of stable sums of fresh sums of nightly sums of small");
  expect([await textOf(outputs(page).locator("del")), await textOf(outputs(page).locator("ins"))]).toEqual([
    "The sum is 0",
    "The sum is 110",
  ]);
  const { searchParams } = new URL(page.url());
  expect([searchParams.get("from"), searchParams.get("to")]).toEqual([ids["stable"], ids["fresh"]]);
  // The same run on both sides exchanges the two.
  await page.getByRole("combobox", { name: "and", exact: true }).selectOption({ label: "sums of stable" });
  await expect.poll(head).toBe("Turn sums of fresh sums of stable sums of nightly sums of small");
  await page.reload();
  await expect.poll(head).toBe("Turn sums of fresh sums of stable sums of nightly sums of small");
  expect(wrong).toEqual([]);
});

test("an older link with one baseline keeps its meaning, and its runs can become baselines of one candidate", async () => {
  const { page, wrong } = await tabAt(`/compare?runs=${runs("nightly", "stable", "fresh")}&baseline=${ids["nightly"]}`);
  const rows = page.getByRole("region", { name: "Differences from the baseline" }).locator("tbody tr");
  await expect.poll(() => rows.count()).toBe(2);
  expect((await rows.allInnerTexts()).map(plain)).toEqual([
    expect.stringMatching(/^sums of stable .*\+0\.\d+ .*5 better, 0 worse/),
    expect.stringMatching(/^sums of fresh .*\+0\.58\d .*7 better, 0 worse/),
  ]);
  const tasks = page.getByRole("region", { name: "Tasks" });
  await page.getByLabel("Show the tasks that").selectOption("worse");
  await page.getByText("No matching tasks.").waitFor();
  await page.getByLabel("Show the tasks that").selectOption("better");
  await expect.poll(() => tasks.getByRole("button").count()).toBe(7);
  await expect.poll(() => outputs(page).getByRole("columnheader").nth(1).textContent()).toBe("sums of nightly");
  await page.getByRole("combobox", { name: "Compare", exact: true }).selectOption("one candidate with its baselines");
  await page.getByRole("radio", { name: "make it the candidate" }).last().check();
  await expect.poll(() => differences(page).locator("tbody tr").count()).toBe(2);
  expect(new URL(page.url()).searchParams.get("candidate")).toBe(ids["fresh"]);
  expect(new URL(page.url()).searchParams.get("baseline")).toBeNull();
  expect(wrong).toEqual([]);
});

test("without runs in the address they are chosen from a list by keyboard, those of the same environment and dataset first", async () => {
  const { page, wrong } = await tabAt("/compare");
  const list = page.getByRole("group", { name: /^Choose/ });
  await list.getByLabel("Search").fill("sums of fresh");
  await expect.poll(() => list.getByRole("checkbox").count()).toBe(1);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await page.getByText("the candidate").waitFor();
  await expect.poll(() => inPage(page, "document.activeElement.type")).toBe("checkbox");
  await list.getByLabel("Search").fill("");
  await expect.poll(async () => (await textOf(list)).includes("Other runs")).toBe(true);
  const items = (await list.locator("li").allInnerTexts()).map(plain);
  const at = (start: string) => items.findIndex((text) => text.startsWith(start));
  expect(at("Same environment, also without an uploaded dataset")).toBe(0);
  expect(at("sums of nightly")).toBeLessThan(at("Other runs"));
  expect(at("the old model")).toBeGreaterThan(at("Other runs"));
  for (const name of ["nightly", "stable"])
    await list.getByRole("checkbox", { name: `sums of ${name}` }).press("Space");
  await expect.poll(() => differences(page).locator("tbody tr").count()).toBe(2);
  expect(new URL(page.url()).searchParams.get("runs")).toBe(runs("fresh", "nightly", "stable"));
  await list.getByRole("checkbox", { name: "sums of stable" }).press("Space");
  await expect.poll(() => differences(page).locator("tbody tr").count()).toBe(1);
  await shoot(page, "choosing");
  await page.getByRole("button", { name: "Close the list of runs" }).press("Enter");
  await expect.poll(() => list.count()).toBe(0);
  expect(wrong).toEqual([]);
});

test("a baseline that does not exist is named, and the others are compared", async () => {
  const { page } = await tabAt(`/compare?runs=run_nope,${runs("nightly", "fresh")}&candidate=${ids["fresh"]}`);
  await expect.poll(() => differences(page).locator("tbody tr").count()).toBe(1);
  expect(plain(await textOf(page.getByRole("alert").first()))).toContain("run_nope");
  const tasks = page.getByRole("region", { name: "Tasks" });
  await expect.poll(() => tasks.getByRole("button").count()).toBe(7);
  expect(plain(await textOf(tasks.locator("thead").first()))).toBe(
    "Task candidate sums of fresh baseline sums of nightly",
  );
});

test.each([380, 1280, 1920])("%d pixels wide, three baselines fit without a serious fault", async (width) => {
  const { page, wrong } = await tabAt(several(), { width });
  await outputs(page).waitFor();
  await shoot(page, `several-${width}`);
  expect(await seriousFaults(page)).toEqual([]);
  expect(Number(await inPage(page, "document.documentElement.scrollWidth - innerWidth"))).toBe(0);
  await page.goto(`${stage.url}/compare`);
  await page.getByRole("checkbox").first().waitFor();
  await shoot(page, `choose-${width}`);
  expect(await seriousFaults(page)).toEqual([]);
  expect(Number(await inPage(page, "document.documentElement.scrollWidth - innerWidth"))).toBe(0);
  expect(wrong).toEqual([]);
});
