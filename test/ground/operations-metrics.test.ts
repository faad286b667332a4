/** A scrape has every series that docs/operations.md and the dashboard query in Prometheus. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(resolve(ROOT, file), "utf8");
const told = new Set(read("src/telemetry/scrape-metrics.ts").match(/(?<=")rollcall_\w+(?=")/g));
const page = read("docs/operations.md");

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
}
const dashboard: Dashboard = JSON.parse(read("docs/dashboards/rollcall.json"));
const alarms = Array.from(page.matchAll(/^\| [a-z ]+ \| `([^`]+)` \|/gm), ([, query = ""]) => query);

/** A histogram has three series. */
function seriesIn(query: string): string[] {
  const names = query.match(/rollcall_\w+/g) ?? [];
  return names.map((name) => name.replace(/_latency_seconds_(bucket|sum|count)$/, "_latency_seconds"));
}

test("every query of the dashboard names a series of a scrape", () => {
  const queries = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  expect(queries.length).toBeGreaterThan(10);
  for (const query of queries) {
    expect(seriesIn(query).length, query).toBeGreaterThan(0);
    expect(seriesIn(query).filter((name) => !told.has(name))).toEqual([]);
  }
});

test("every series is on the dashboard and in the table of the page", () => {
  const shown = new Set(dashboard.panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => seriesIn(expr))));
  expect([...told].filter((name) => !shown.has(name))).toEqual([]);
  const table = page
    .replaceAll("`_bytes`", "`rollcall_queue_bytes`")
    .replaceAll("`_oldest_seconds`", "`rollcall_queue_oldest_seconds`");
  expect([...told].filter((name) => !table.includes(`\`${name}\``))).toEqual([]);
});

test("every alarm queries a series of a scrape", () => {
  expect(alarms.length).toBeGreaterThan(9);
  for (const query of alarms)
    expect(
      seriesIn(query).filter((name) => !told.has(name)),
      query,
    ).toEqual([]);
});
