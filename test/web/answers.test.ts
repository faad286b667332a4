/** Questions about runs and rollouts that the pages answer, each in at most three clicks from the start page. */
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { textOf as textIn } from "../../src/contract/messages.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";
import { textOf } from "./browser.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

const client = new RollcallClient({ baseUrl: stage.url, apiKey: stage.key });
const plain = (text: string) => text.replaceAll(/\s+/g, " ");

/** Clicks one after another; the number of them is the number of clicks that a reader needs. */
async function click(page: Page, ...places: readonly ((page: Page) => Locator)[]): Promise<number> {
  for (const place of places) await place(page).first().click();
  return places.length;
}

const link = (name: string) => (page: Page) => page.getByRole("link", { name, exact: true });

test("in one click a reader learns which tasks flipped between two models, and how the answers differ", async () => {
  const model = await startScriptedModel({
    reply: ({ model: name, messages }) => {
      const [, last = ""] = /Count to (\d+)/.exec(textIn(messages.at(-1))) ?? [];
      const said = name === "counter" || Number(last) < 6 ? last : "0";
      return `I have counted. It is \\boxed{${said}}.`;
    },
  });
  try {
    const rows = Array.from({ length: 12 }, (_, at) => ({ question: `Count to ${at + 1}.`, answer: `#### ${at + 1}` }));
    // No other test has runs of this environment.
    const shared = { environment: "gsm8k", endpoint: { base_url: model.url }, dataset: rows };
    for (const name of ["counter", "half-counter"]) {
      const { id } = await client.runs.create({ ...shared, model: name });
      for await (const _ of client.runs.events(id));
    }
  } finally {
    await model.stop();
  }
  const { page, wrong } = await tabAt("/");
  const row = page.getByRole("rowgroup").filter({ hasText: "half-counter" });
  expect(await click(page, () => row.getByRole("link", { name: "Compare 2 models" }))).toBe(1);
  const sides = page.getByRole("region", { name: "Outputs side by side" });
  await sides.waitFor();
  expect(await sides.count()).toBe(1);
  expect(plain(await textOf(sides))).toMatch(/Turn (half-)?counter (half-)?counter 1/);
  expect(await sides.locator("del").count()).toBeGreaterThan(0);
  expect(await sides.locator("ins").count()).toBeGreaterThan(0);
  expect(plain(await textOf(page.locator("main")))).toContain(
    "a test of these tasks would find with a probability of 80 %",
  );
  await page.getByLabel("Differences by").selectOption("sentence");
  await expect.poll(() => new URL(page.url()).searchParams.get("diff")).toBe("sentence");
  expect(await sides.locator("del").count()).toBe(1);
  expect(wrong).toEqual([]);
});

test("in three clicks a reader sees what the judge was asked and what it said", async () => {
  const { page, wrong } = await tabAt("/");
  const clicks = await click(page, link("the new model"), link("All rollouts"), link("0/0"));
  expect(clicks).toBe(3);
  const asked = page.getByRole("region", { name: "What the judge was asked" });
  const text = plain(await textOf(asked));
  expect(text).toContain("Asked, as user:");
  expect(text).toMatch(/What is item \d+\?/);
  expect(plain(await textOf(page.locator(".judgement")))).toMatch(/Verdict (right|wrong)/);
  expect(wrong).toEqual([]);
});

test("a list of rollouts shows the last answer, the expected answer and the judge's word of each", async () => {
  const { page, wrong } = await tabAt(`/runs/${stage.before}/rollouts?filter=reward%3E0`);
  const row = page.locator('[data-row="0"]');
  await expect.poll(async () => plain(await textOf(row))).toMatch(/It is answer \d+\. answer \d+/);
  await expect.poll(async () => plain(await textOf(row))).toContain("right: the reply names the reference answer");
  expect(wrong).toEqual([]);
});

test("in two clicks a reader learns which tool failed most, and with which text", async () => {
  const model = await startScriptedModel({
    reply: ({ messages }) => {
      if (messages.some(({ role }) => role === "tool")) return "I do not know.";
      return {
        tool_calls: [
          { id: "a", name: "add", arguments: { a: 1, b: 2 } },
          { id: "b", name: "multiply", arguments: { a: "two", b: 3 } },
        ],
      };
    },
  });
  try {
    const endpoint = { base_url: model.url };
    const { id } = await client.runs.create({
      ...{ name: "failing tools", environment: "calculator", model: "m", endpoint, num_examples: 3 },
    });
    for await (const _ of client.runs.events(id));
    const { page, wrong } = await tabAt("/");
    const clicks = await click(page, link("failing tools"), (on) => on.getByRole("tab", { name: "Tools" }));
    expect(clicks).toBe(2);
    const said = async () => plain(await textOf(page.getByRole("tabpanel").getByRole("status")));
    await expect
      .poll(said)
      .toMatch(/^The tool multiply failed most: 3 of its 3 calls, 100 %, most often with .*bad arguments/);
    await page.goto(`${stage.url}/runs/${id}/groups/0`);
    const failed = page.getByRole("region", { name: "Failed tool calls" }).locator("tbody tr");
    await expect.poll(async () => plain(await textOf(failed))).toMatch(/^0 turn 1 multiply bad arguments for multiply/);
    await failed.getByRole("link", { name: "turn 1" }).click();
    await page.waitForURL(/\/rollouts\/ro_\w+\?turn=1$/);
    expect(wrong).toEqual([]);
  } finally {
    await model.stop();
  }
});

test("a turn shows how the environment's state changed since the turn before", async () => {
  let answered = 0;
  const model = await startScriptedModel({
    reply: () => {
      answered += 1;
      return { tool_calls: [{ name: "guess", arguments: { number: answered } }] };
    },
  });
  try {
    const { id } = await client.runs.create({
      ...{ environment: "guess-number", model: "m", endpoint: { base_url: model.url }, num_examples: 1 },
    });
    for await (const _ of client.runs.events(id));
    const { data } = await client.rollouts.list(id);
    const { page, wrong } = await tabAt(`/rollouts/${data[0]?.id}?turn=2`);
    const turn = page.locator('article[data-index="1"]');
    await turn.getByRole("button", { name: "State" }).click();
    const state = turn.getByRole("region", { name: "State after turn 2" });
    await expect.poll(async () => plain(await textOf(state))).toContain("changed since turn 1");
    expect(await state.locator("ins").count()).toBeGreaterThan(0);
    expect(wrong).toEqual([]);
  } finally {
    await model.stop();
  }
});

test("the mean of a run with few scores is shown as that of a part, and that of a whole run is not", async () => {
  let asked = 0;
  const model = await startScriptedModel({
    reply: () => {
      asked += 1;
      return asked % 4 === 0 ? "gnihton" : { fault: { kind: "status", status: 400 } };
    },
  });
  try {
    const { id } = await client.runs.create({
      ...{ environment: "reverse-text", model: "m", endpoint: { base_url: model.url }, num_examples: 8 },
      ...{ max_concurrent: 1, min_scored: 0, limits: { max_retries: 0 } },
    });
    for await (const _ of client.runs.events(id));
    const { page } = await tabAt(`/runs/${id}`);
    const stats = page.locator(".stats").first();
    expect(plain(await textOf(stats))).toMatch(/^Mean reward of a part \S+ Only 25 % of the rollouts have a score/);
    await page.goto(`${stage.url}/runs/${stage.before}`);
    await expect.poll(async () => plain(await textOf(stats))).toMatch(/^Mean reward 0/);
  } finally {
    await model.stop();
  }
});
