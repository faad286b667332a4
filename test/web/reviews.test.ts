/** Reviews of rollouts on the page: a person writes one with keys, and finds the judge that disagrees with people. */
import { expect, test } from "vitest";
import { RollcallClient } from "../../src/sdk/client.ts";
import { inPage, textOf } from "./browser.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";

useBrowser();

const client = new RollcallClient({ baseUrl: stage.url, apiKey: stage.key });

/** The rollouts of the run that the judge found right, and those that it found wrong. */
async function judgedRollouts(run: string) {
  const rollouts = (await client.rollouts.list(run, { filter: "outcome:scored" })).data;
  const with_ = (score: number) => rollouts.filter(({ reward }) => reward === score).map(({ id }) => id);
  return { right: with_(1), wrong: with_(0) };
}

test("a review is begun with a key, is refused without a reason, then listed, replaced and deleted", async () => {
  const { right } = await judgedRollouts(stage.after);
  const { page, wrong } = await tabAt(`/rollouts/${right[0]}`);
  const panel = page.getByRole("region", { name: "Review" });
  await panel.getByText("No reviews yet.").waitFor();
  await page.keyboard.press("r");
  await page.keyboard.press("b");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.type("0");
  await page.keyboard.press("Enter");
  // The platform names the field that is missing.
  await panel.getByRole("alert").waitFor();
  expect(await textOf(panel.getByRole("alert"))).toMatch(/why: is required, because the score correct differs/);
  await panel.getByLabel("Why").fill("it names no unit");
  await panel.getByRole("button", { name: "Save review" }).click();
  const written = panel.getByRole("article");
  await written.waitFor();
  expect(await textOf(written)).toMatch(
    /bad key_\w+, you[\s\S]*score correct: 0 the rollout has 1[\s\S]*it names no unit/,
  );
  await panel.getByLabel("Mark").selectOption("unsure");
  await panel.getByRole("button", { name: "Replace review" }).click();
  await expect.poll(() => textOf(written)).toMatch(/unsure key_/);
  expect(await panel.getByRole("article").count()).toBe(1);
  await panel.getByRole("button", { name: "Delete your review" }).click();
  await panel.getByText("No reviews yet.").waitFor();
  // The browser reports the refused request too.
  expect(wrong.filter((line) => !line.includes("400"))).toEqual([]);
});

test("from the list of runs two clicks lead to a rollout on which the judge and people disagree", async () => {
  const { right, wrong: poor } = await judgedRollouts(stage.after);
  const [first = "", second = ""] = right;
  const [third = ""] = poor;
  const why = "read twice";
  await client.reviews.put(first, { judges: { default: "wrong" }, scores: { correct: 1 }, why });
  await client.reviews.put(second, { judges: { default: "right" }, scores: { correct: 1 } });
  await client.reviews.put(third, { judges: { default: "right" }, scores: { correct: 0 }, why });
  const { page, wrong } = await tabAt("/");
  await page.getByRole("link", { name: "the new model" }).first().click();
  const section = page.getByRole("region", { name: "Judges and people" });
  const rows = section.locator("tbody tr");
  await rows.first().waitFor();
  const said = (await rows.allInnerTexts()).map((text) => text.split(/\t|\n/).map((cell) => cell.trim()));
  expect(said.map(([name, kappa]) => [name, kappa])).toEqual([
    ["judge default", "−0.500"],
    ["score correct", "1.000"],
  ]);
  const apart = rows.first().getByRole("listitem");
  await expect
    .poll(() => textOf(apart.first()))
    .toMatch(/^What is item \d+\? (right, people wrong|wrong, people right)$/);
  await rows.first().getByRole("link").first().click();
  await page.getByRole("region", { name: "Review" }).getByText("judge default:").waitFor();
  expect(wrong).toEqual([]);
});

test("all rollouts on which a judge and people differ are shown on request", async () => {
  const { id } = await client.runs.create({
    ...{ name: "much reviewed", environment: "reverse-text", model: "old", endpoint: { base_url: stage.model } },
    num_examples: 7,
  });
  for await (const _ of client.runs.events(id));
  const { data } = await client.rollouts.list(id);
  for (const { id: rollout } of data) await client.reviews.put(rollout, { reward: 1, why: "it is right" });
  const { page, wrong } = await tabAt(`/runs/${id}`);
  const row = page.getByRole("region", { name: "Judges and people" }).locator("tbody tr").first();
  await expect.poll(() => row.getByRole("listitem").count()).toBe(5);
  await row.getByRole("button", { name: "Show 2 more" }).click();
  expect(await row.getByRole("listitem").count()).toBe(7);
  const tasks = await row.getByRole("link").allInnerTexts();
  expect(new Set(tasks).size).toBe(7);
  expect(tasks.join(" ")).toContain("Reverse");
  expect(wrong).toEqual([]);
});

test("score, verdict, reason and review of a rollout are in the first screen, and from there a review is begun", async () => {
  const { page, wrong } = await tabAt(`/rollouts/${stage.reviewed}`, { width: 1280, height: 900 });
  const verdicts = page.getByRole("region", { name: "Scores, judges and reviews" });
  const said = async () => (await textOf(verdicts)).replaceAll(/\s+/g, " ");
  await expect
    .poll(said)
    .toMatch(/Scores correct [01]\.000 .*Judges default (right|wrong) the reply names .*Reviews .*good correct [01]/);
  const box = await verdicts.boundingBox();
  expect((box?.y ?? 900) + (box?.height ?? 0)).toBeLessThan(900);
  await verdicts.getByRole("button", { name: "Write a review" }).click();
  await expect.poll(() => inPage(page, "document.activeElement.getAttribute('name')")).toBe("mark");
  expect(wrong).toEqual([]);
});
