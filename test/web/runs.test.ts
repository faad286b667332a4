/** The list of all runs. */
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { RollcallClient } from "../../src/sdk/client.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

test("groups read the next page by themselves, but one that failed only when the reader asks", async () => {
  const first = await new RollcallClient({ baseUrl: stage.url, apiKey: stage.key }).runs.list();
  const error = { message: "not this page", type: "invalid_request_error", code: "invalid_value", param: null };
  const { page } = await tabAt("/");
  let asked = 0;
  await page.route("**/v1/runs?*", async (route) => {
    const isNext = new URL(route.request().url()).searchParams.has("after");
    if (isNext) asked += 1;
    await route.fulfill(isNext ? { status: 400, json: { error } } : { json: { ...first, has_more: true } });
  });
  await page.goto(`${stage.url}/runs?group=environment`);
  await page.getByText("not this page").waitFor();
  await pause(500);
  expect(asked).toBe(1);
  await page.getByRole("button", { name: "Try again" }).click();
  await expect.poll(() => asked).toBe(2);
});
