/** The form of a run: few fields first, choices from what exists, and a past run to start from. */
import { expect, test } from "vitest";
import { RollcallClient } from "../../src/sdk/client.ts";
import { textOf } from "./browser.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

const fault = { status: 400, json: { error: { message: "no list today", type: "t", code: "c", param: null } } };

const client = new RollcallClient({ baseUrl: stage.url, apiKey: stage.key });

test("endpoint, model, dataset and judge are chosen from what exists, a model also by its name, and the run starts", async () => {
  const { page, wrong } = await tabAt("/runs/new?environment=judged-qa");
  // Until the list of datasets is read, nothing can be chosen.
  await page.locator("option", { hasText: "items" }).first().waitFor({ state: "attached" });
  await page.getByLabel("Dataset", { exact: true }).selectOption("items");
  await page.getByLabel("Endpoint (required)").selectOption("actors");
  const model = page.getByLabel("Model (required)", { exact: true });
  await model.selectOption("another…");
  await page.getByLabel("Another: Model", { exact: true }).fill("old");
  await page.getByLabel("Endpoint of judge default").selectOption("actors");
  await page.getByLabel("Model of judge default", { exact: false }).last().selectOption("another…");
  await page.getByLabel("Another: Model of judge default").fill("judge");
  await page.getByLabel("Tasks", { exact: true }).fill("2");
  expect(await page.getByLabel("Temperature").isVisible()).toBe(false);
  const command = await textOf(page.getByLabel("CLI", { exact: true }));
  expect(command).toMatch(/^npx --no-install rollcall eval judged-qa@[\d.]+ /);
  expect(command.replaceAll(/\s*\\\s+/g, " ")).toContain(
    "--dataset items -n 2 -e actors -m old --judge default=judge@actors",
  );
  await page.getByRole("button", { name: "Start the run" }).click();
  await page.waitForURL(/\/runs\/run_\w+$/);
  const run = await client.runs.get(page.url().split("/").at(-1) ?? "");
  expect(run).toMatchObject({ model: "old", dataset: stage.dataset, endpoint: { name: "actors" }, num_examples: 2 });
  expect(wrong).toEqual([]);
});

test("while a list is read, its choice is disabled and has its place; a list that cannot be read is a text and an error", async () => {
  const { page, wrong } = await tabAt("/");
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await page.route(/\/v1\/datasets\?/, (route) => released.then(() => route.continue()));
  const endpoints = /\/v1\/endpoints\?/;
  await page.route(endpoints, (route) => route.fulfill(fault));
  await page.goto(`${stage.url}/runs/new?environment=judged-qa`);
  const dataset = page.getByLabel("Dataset", { exact: true });
  await expect.poll(() => dataset.textContent()).toBe("reading…");
  expect(await dataset.isDisabled()).toBe(true);
  const place = await dataset.boundingBox();
  release();
  await dataset.selectOption("items");
  expect(await dataset.boundingBox()).toEqual(place);
  const field = page.locator(".field", { hasText: "Endpoint (required)" }).first();
  expect(await textOf(field.getByRole("alert"))).toMatch(/^What exists could not be read: no list today/);
  await field.getByRole("textbox").fill("actors");
  await page.unroute(endpoints);
  await field.getByRole("button", { name: "Try again" }).click();
  await expect.poll(() => field.getByRole("combobox").inputValue()).toBe("actors");
  expect(await field.getByRole("alert").count()).toBe(0);
  expect(wrong.filter((line) => !line.includes("400"))).toEqual([]);
});

test("if the environments cannot be listed, one is named, and the form is that of this one", async () => {
  const { page, wrong } = await tabAt("/");
  await page.route(/\/v1\/environments(\?|$)/, (route) => route.fulfill(fault));
  await page.goto(`${stage.url}/runs/new`);
  await expect.poll(() => textOf(page.getByRole("alert"))).toContain("no list today");
  await page.getByLabel("Environment").fill("judged-qa");
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByLabel("Dataset", { exact: true }).waitFor();
  expect(await page.locator("#new-environment").inputValue()).toMatch(/^judged-qa@/);
  expect(wrong.filter((line) => !line.includes("400"))).toEqual([]);
});

test("a past run is chosen to start from, and its settings are in the form and in the command", async () => {
  const { page, wrong } = await tabAt("/runs/new");
  const from = page.getByLabel("Start from");
  await from.selectOption({ label: "the old model · judged-qa · old" });
  await page.waitForURL(`**/runs/new?from=${stage.before}`);
  await page.getByText("without the key of its endpoint and the rows that were sent with it").waitFor();
  expect(await page.getByLabel("Base URL (required)").inputValue()).toBe(stage.model);
  expect(await page.getByLabel("Model (required)", { exact: true }).inputValue()).toBe("old");
  expect(await page.locator("#new-environment").inputValue()).toMatch(/^judged-qa@/);
  const command = await textOf(page.getByLabel("CLI", { exact: true }));
  for (const flag of ["-r 2", "--max-retries 0", '"min_scored": 0.5']) expect(command).toContain(flag);
  await page.goBack();
  await expect.poll(() => from.inputValue()).toBe("");
  expect(wrong).toEqual([]);
});
