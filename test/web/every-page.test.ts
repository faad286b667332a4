/** Every page, at three widths and in both themes: no serious accessibility fault, and nothing in the console. */
import axe from "axe-core";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { RollcallClient } from "../../src/sdk/client.ts";
import { inPage } from "./browser.ts";
import { LETTERS, SEARCHING, WHEEL } from "./published.ts";
import { stage, tabAt, useBrowser } from "./tabs.ts";
import { playTraining } from "./trainings.ts";

useBrowser();

const { before, after, hostile, training, longRollout } = stage;
const at = encodeURIComponent;
const paths = [
  ...[
    "/",
    "/sign-in",
    "/runs",
    "/runs?group=environment",
    "/usage?period=week&model=old",
    "/runs/new?environment=judged-qa",
    "/runs/new?kind=training",
    `/runs/new?from=${before}`,
    `/runs/${before}`,
  ],
  ...["groups", "settings", "json"].map((tab) => `/runs/${before}?tab=${tab}`),
  ...[`/runs/${training}`, `/runs/${training}?tab=report`, `/runs/${hostile}`, `/runs/${before}/rollouts`],
  ...[`/runs/${before}/rollouts?filter=x`, `/runs/${before}/groups/1`, `/rollouts/${longRollout}`],
  ...[`/compare?runs=${before},${after}&baseline=${before}`, "/compare", "/environments", "/environments/judged-qa"],
  ...["", "@1.0.0", "?tab=validation", "?tab=versions", "?tab=arguments", "@1.0.0?tab=run"].map(
    (of) => `/environments/${at(LETTERS)}${of}`,
  ),
  ...[`/environments/${at(SEARCHING)}?tab=run`, `/environments/${at(WHEEL)}?tab=run`, `/environments/${at(WHEEL)}`],
  ...[`/environments/${at(SEARCHING)}`, "/environments/judged-qa?tab=results", "/environments?search=guess"],
  ...["/datasets", `/datasets/${stage.dataset}`, "/endpoints", `/endpoints/${stage.endpoint}`, "/fleets"],
  ...[`/fleets/${stage.fleet}`, "/triggers", `/triggers/${stage.trigger}`, "/webhooks", `/webhooks/${stage.webhook}`],
  ...[`/rollouts/${stage.reviewed}`, "/keys", "/usage", stage.report.slice(stage.url.length)],
];

beforeAll(async () => {
  const client = new RollcallClient({ baseUrl: stage.url, apiKey: stage.key });
  const other = await playTraining(client, stage.url, "another training", [{ right: 3 }, { right: 7, misuses: true }]);
  paths.push(
    `/compare?runs=${training},${other}`,
    `/runs/${other}?step=2`,
    `/runs/${other}?tab=tools`,
    `/runs/${other}/groups/5`,
  );
});

interface Violation {
  readonly impact: string;
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

async function violationsIn(page: Page): Promise<readonly Violation[]> {
  await inPage(page, `${axe.source}; 0`);
  const found = await inPage(
    page,
    "axe.run(document, {resultTypes: ['violations']}).then((found) => JSON.stringify(found.violations))",
  );
  return JSON.parse(String(found));
}

/** A folder for a screenshot of each page. */
const shots = process.env["SHOTS"];

for (const scheme of ["light", "dark"] as const) {
  test.each([380, 1280, 1920])(
    `in ${scheme}, %d pixels wide, no page has a serious fault`,
    async (width) => {
      const { page, wrong } = await tabAt("/", { width, scheme });
      const faults: string[] = [];
      for (const path of paths) {
        await page.goto(stage.url + path);
        await page.locator("h1").first().waitFor();
        await expect.poll(() => page.locator(".loading").count()).toBe(0);
        for (const { impact, id, nodes } of await violationsIn(page)) {
          if (!/serious|critical/.test(impact)) continue;
          const [first] = nodes;
          faults.push(`${path}: ${id}, ${nodes.length} times: ${first?.html.slice(0, 200)} ${first?.failureSummary}`);
        }
        const over = await inPage(page, "document.documentElement.scrollWidth - innerWidth");
        if (Number(over) > 0) faults.push(`${path}: ${over} pixels wider than the window`);
        if (shots !== undefined) {
          const name = path.replaceAll(/[^\w]+/g, "-").slice(0, 60);
          await page.screenshot({ path: `${shots}/${scheme}-${width}${name}.png`, fullPage: true });
        }
      }
      expect([...faults, ...wrong]).toEqual([]);
    },
    360_000,
  );
}

test("on a narrow screen the menu is folded, opens without a serious fault, and is folded again on the next page", async () => {
  const { page, wrong } = await tabAt("/usage", { width: 380 });
  const menu = page.getByRole("button", { name: "Menu" });
  const datasets = page.getByRole("link", { name: "Datasets" });
  await menu.waitFor();
  expect(await datasets.isVisible()).toBe(false);
  await menu.click();
  expect(await menu.getAttribute("aria-expanded")).toBe("true");
  expect(await page.getByLabel("Theme").isVisible()).toBe(true);
  const serious = (await violationsIn(page)).filter(({ impact }) => /serious|critical/.test(impact));
  expect(serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)).toEqual([]);
  expect(await inPage(page, "document.documentElement.scrollWidth - innerWidth")).toBe(0);
  if (shots !== undefined) await page.screenshot({ path: `${shots}/menu.png` });
  await datasets.click();
  await page.getByRole("heading", { name: "Datasets" }).waitFor();
  expect(await datasets.isVisible()).toBe(false);
  expect(wrong).toEqual([]);
});
