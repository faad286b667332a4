/** The form of a run: few fields first, choices from what exists, and a past run to start from. */
import { expect, test } from "vitest";
import { RollcallClient } from "../../src/sdk/client.ts";
import { textOf } from "./browser.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

const client = new RollcallClient({ baseUrl: stage.url, apiKey: stage.key });

test("endpoint, model, dataset and judge are chosen from what exists, a model also by its name, and the run starts", async () => {
  const { page, wrong } = await tabAt("/runs/new?environment=judged-qa");
  // Until the list of datasets is read, the field is a text.
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
